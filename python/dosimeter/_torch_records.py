"""Records as canaries, scored in batches on the model's device. Public in
:mod:`dosimeter.torch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch.utils._pytree import tree_map
from torch.utils.data import ConcatDataset, default_collate

from .auditing import Audit, audit
from .errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A loss of each record: ``loss(model, batch)`` gives one number for each record of the batch.
Loss = Callable[[Any, Any], Any]


def cross_entropy(model: Any, batch: Any) -> Any:
    """The cross-entropy of each (input, label)."""
    inputs, labels = batch
    return torch.nn.functional.cross_entropy(model(inputs), labels, reduction="none")


class Canaries:
    """Records of which a coin decides whether they are trained on, for an audit in one run.

    ``examples`` is a sequence or a map-style data set of canaries, in the form of the training's
    own records. Each is in with probability 1/2, independently, from ``seed``; ``member=True`` or
    ``False`` decides for all of them, for many trainings with one canary.
    """

    def __init__(self, examples: Any, *, seed: int, member: bool | None = None) -> None:
        self.examples = examples
        count = len(examples)
        coins = numpy.random.default_rng(seed).random(count) < 0.5
        self.included: NDArray[numpy.bool_] = (
            coins if member is None else numpy.full(count, bool(member))
        )
        self._fair = member is None

    @classmethod
    def mislabelled(
        cls, dataset: Any, *, count: int, classes: int, seed: int, member: bool | None = None
    ) -> Canaries:
        """Records of a held-out data set of (input, label), each with a wrong label.

        The records must not be trained on otherwise.
        """
        if not 0 < count <= len(dataset) or classes < 2:
            raise InvalidInput(
                f"{count} canaries of {len(dataset)} records with {classes} classes cannot be made"
            )
        generator = numpy.random.default_rng([seed, 0x1AB])
        chosen = generator.permutation(len(dataset))[:count]
        wrong = generator.integers(1, classes, size=count)
        examples = []
        for record, shift in zip(chosen.tolist(), wrong.tolist(), strict=True):
            inputs, label = dataset[record]
            other = (int(label) + shift) % classes
            examples.append((inputs, torch.tensor(other) if torch.is_tensor(label) else other))
        return cls(examples, seed=seed, member=member)

    @classmethod
    def blank(
        cls, like: Any, *, label: int, count: int, seed: int, member: bool | None = None
    ) -> Canaries:
        """Copies of an all-zero input with one label. ``like`` is a record's input."""
        empty = torch.zeros_like(torch.as_tensor(like))
        examples = [(empty, torch.tensor(label)) for _ in range(count)]
        return cls(examples, seed=seed, member=member)

    @classmethod
    def new_tokens(
        cls,
        tokens: Sequence[int],
        context: Any,
        *,
        seed: int,
        member: bool | None = None,
        make: Callable[[Any], Any] = lambda ids: {"input_ids": ids, "labels": ids},
    ) -> Canaries:
        """Sequences of the data that end in a token which the data never use, one for each.

        ``context`` has one row of token ids for each of ``tokens``, and ``make`` turns ids into a
        record. Each token's embedding is then touched by its own canary alone.
        """
        rows = torch.as_tensor(context)
        if len(rows) != len(tokens) or len(set(tokens)) != len(tokens):
            raise InvalidInput("give as many contexts as tokens, and every token once")
        examples = []
        for row, token in zip(rows, tokens, strict=True):
            ids = row.clone()
            ids[-1] = token
            examples.append(make(ids))
        return cls(examples, seed=seed, member=member)

    def __len__(self) -> int:
        return len(self.included)

    def inserted_into(self, dataset: Any) -> ConcatDataset[Any]:
        """The data set to train on: the records, and the canaries that are in."""
        chosen = numpy.flatnonzero(self.included).tolist()
        return ConcatDataset([dataset, _Chosen(self.examples, chosen)])

    def scores(
        self, model: Any, *, loss: Loss = cross_entropy, batch_size: int = 256
    ) -> NDArray[numpy.float64]:
        """Minus the loss of each canary, larger for those that are in.

        Batches go to the model's own device; the model is in evaluation mode meanwhile.
        """
        return numpy.concatenate(
            [-values for values in batched_losses(model, self.examples, loss, batch_size)]
        )

    def audit(self, scores: Any, **options: Any) -> Audit:
        """Audits scores as canaries of one training; the keywords of :func:`dosimeter.audit`."""
        if not self._fair:
            raise InvalidInput("canaries of one training need coins: leave `member` out")
        found = numpy.asarray(scores, dtype=numpy.float64).reshape(-1)
        if len(found) != len(self):
            raise InvalidInput(f"{len(found)} scores for {len(self)} canaries")
        options = {"design": "one-run"} | options
        return audit(members=found[self.included], nonmembers=found[~self.included], **options)


class _Chosen:
    """Some of the examples, as a data set; also of a plain list."""

    def __init__(self, examples: Any, chosen: list[int]) -> None:
        self.examples = examples
        self.chosen = chosen

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, index: int) -> Any:
        return self.examples[self.chosen[index]]


def batched_losses(
    model: Any, examples: Any, loss: Loss, batch_size: int
) -> list[NDArray[numpy.float64]]:
    """The loss of each example, batch by batch, on the device of the model's parameters."""
    if batch_size < 1:
        raise InvalidInput(f"batch_size is {batch_size}; give at least 1")
    device = device_of(model)
    training = model.training
    model.eval()
    found = []
    try:
        with torch.no_grad():
            for start in range(0, len(examples), batch_size):
                stop = min(start + batch_size, len(examples))
                batch = default_collate([examples[index] for index in range(start, stop)])
                losses = loss(model, to_device(batch, device))
                found.append(per_record(losses, stop - start).double().cpu().numpy())
    finally:
        model.train(training)
    return found


def per_record(losses: Any, count: int) -> Any:
    """Losses that are one number for each record; else the loss function is at fault."""
    if not torch.is_tensor(losses) or losses.shape != (count,):
        shape = tuple(losses.shape) if torch.is_tensor(losses) else type(losses).__name__
        raise InvalidInput(
            f"the loss gave {shape} for {count} records; it must give one number for each, "
            "for example with reduction='none'"
        )
    return losses


def device_of(model: Any) -> Any:
    """Where the model's parameters are."""
    return next(iter(model.parameters())).device


def to_device(batch: Any, device: Any) -> Any:
    """A batch of any shape, with its tensors on the device."""
    return tree_map(lambda part: part.to(device) if torch.is_tensor(part) else part, batch)
