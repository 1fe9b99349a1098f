"""Attribute inference: how sensitive a record's gradient is to a secret attribute.

At every step of training a record's clipped gradient is computed for each candidate value of the
attribute; how far apart these gradients are decides what an attacker who sees the training can
infer about the attribute (Cherubin et al. 2024). A :class:`Sensitivity` collects them, from arrays
(:meth:`Sensitivity.add`) or from a PyTorch model (:meth:`Sensitivity.record`), and answers through the
same core as the command ``dosimeter account --attribute-sensitivity``.

The numbers are computed from records along one training. They are estimates or heuristic, never
proven; publishing them reveals nothing about the attribute's value, but can reveal who is in the data.

>>> import numpy as np
>>> from dosimeter import Run
>>> from dosimeter.attribute import Sensitivity
>>> sensitivity = Sensitivity(clip_norm=1.0)
>>> rng = np.random.default_rng(0)
>>> for step in range(100):
...     gradients = rng.normal(size=(5, 3, 20))  # records, candidate values, parameters
...     sensitivity.add(gradients, records=range(5))
>>> claims = sensitivity.account(Run(noise_multiplier=1.0, sample_rate=0.01, steps=100))
>>> [claim.lens for claim in claims.select(secret="attribute", quantity="bayes-security")]
['closed-form', 'closed-form-clt', 'closed-form-certified']
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ._names import ABOUT_ATTRIBUTES
from .claims import Account, account
from .errors import InvalidInput
from .runs import Run

if TYPE_CHECKING:
    import torch

__all__ = ["Sensitivity", "per_example_gradients"]

#: What the sensitivities are maxima over; see the guide on record-level inference.
Mode = Literal["batch", "dataset", "record"]

#: Up to this many candidate values every pair is kept with its lengths and inner product, from which
#: the corrected form is computed; beyond, the diameter alone.
_FEW = 4


class Sensitivity:
    """Gradient sensitivities of one training, step by step.

    ``mode`` is ``"record"`` (each record on its own, the worst is reported; every record must be
    added at every step), ``"dataset"`` (the worst record of all at each step) or ``"batch"`` (the worst
    of the sampled batch, as published, which is not a bound). ``approximate`` takes twice the largest
    distance from the centroid in place of the diameter: cheaper for many candidate values, and on the
    safe side.
    """

    def __init__(
        self, *, clip_norm: float, mode: Mode = "record", approximate: bool = False
    ) -> None:
        if not clip_norm > 0:
            raise InvalidInput(f"clip norm {clip_norm} is not above 0")
        self.clip_norm = float(clip_norm)
        self.mode: Mode = mode
        self.approximate = approximate
        self._rows: list[tuple[int, str, tuple[float, ...]]] = []
        self._steps = 0

    @property
    def steps(self) -> int:
        """Steps that were added."""
        return self._steps

    def add(
        self, gradients: npt.ArrayLike, *, records: Iterable[Hashable] | None = None
    ) -> None:
        """Adds a step: gradients of shape (records, candidate values, parameters), not clipped."""
        array = np.asarray(gradients, dtype=np.float64)
        if array.ndim != 3 or array.shape[1] < 2:
            raise InvalidInput(
                f"gradients have shape {array.shape}; give (records, candidate values, parameters) "
                "with at least two candidate values"
            )
        names = [str(name) for name in (range(len(array)) if records is None else records)]
        if len(names) != len(array):
            raise InvalidInput(f"{len(names)} records are named, but {len(array)} have gradients")
        self._steps += 1
        norms = np.linalg.norm(array, axis=2)
        factors = np.minimum(1.0, self.clip_norm / np.maximum(norms, 1e-300))
        clipped = array * factors[:, :, None]
        found = [self._values(gram) for gram in _grams(clipped)]
        if self.mode == "record":
            for name, values in zip(names, found, strict=True):
                self._rows += [(self._steps, _checked(name), value) for value in values]
        else:
            # The largest distance of any record; its K is the worst that the distance allows.
            farthest = max(_distance(value) for values in found for value in values)
            self._rows.append((self._steps, "", (farthest,)))

    def _values(self, gram: npt.NDArray[np.float64]) -> list[tuple[float, ...]]:
        """One distance, or the lengths and inner product of every pair of few candidates."""
        squares = np.maximum(np.diag(gram), 0.0)
        if self.approximate:
            spread = squares - 2.0 * gram.mean(axis=1) + gram.mean()
            return [(2.0 * float(np.sqrt(max(float(spread.max()), 0.0))),)]
        if self.mode == "record" and len(gram) <= _FEW:
            lengths = np.sqrt(squares)
            return [
                (float(lengths[i]), float(lengths[j]), float(gram[i, j]))
                for i in range(len(gram))
                for j in range(i)
            ]
        distances = squares[:, None] + squares[None, :] - 2.0 * gram
        return [(float(np.sqrt(max(float(distances.max()), 0.0))),)]

    def record(
        self,
        model: torch.nn.Module,
        loss: Callable[[Any, Any], Any],
        inputs: torch.Tensor,
        targets: torch.Tensor,
        candidates: Callable[[torch.Tensor], Sequence[torch.Tensor]],
        *,
        records: Iterable[Hashable] | None = None,
    ) -> None:
        """Adds a step of a PyTorch model at its present parameters.

        ``candidates`` maps the inputs to one copy for each candidate value of the attribute, e.g.
        ``lambda x: [with_age(x, age) for age in ages]``; targets are kept. Call it before each
        optimiser step, with all records (or, in the mode ``"batch"``, with the sampled ones).
        """
        variants = [
            per_example_gradients(model, loss, variant, targets) for variant in candidates(inputs)
        ]
        self.add(np.stack(variants, axis=1), records=records)

    def to_csv(self) -> str:
        """The sensitivities as ``dosimeter account --attribute-sensitivity`` reads them."""
        if not self._rows:
            raise InvalidInput("no step was added")
        widths = {len(value) for _, _, value in self._rows}
        if len(widths) > 1:
            raise InvalidInput("the number of candidate values changed between steps")
        columns = "norm_a,norm_b,inner" if widths == {3} else "sensitivity"
        lines = [f"step,record,{columns}"]
        for step, name, value in self._rows:
            lines.append(f"{step},{name}," + ",".join(repr(number) for number in value))
        return "\n".join(lines) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes :meth:`to_csv` to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_csv())

    def account(self, run: Run, **questions: Any) -> Account:
        """Claims about the attribute under the closed-form lenses (and about membership)."""
        known = {
            "attribute_sensitivity": {"text": self.to_csv()},
            "attribute_mode": self.mode,
            "lens": ABOUT_ATTRIBUTES,
        }
        return account(run, **(known | questions))


def per_example_gradients(
    model: torch.nn.Module,
    loss: Callable[[Any, Any], Any],
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> npt.NDArray[np.float32]:
    """Each record's gradient over all trainable parameters, flattened: (records, parameters).

    ``loss(output, target)`` is the loss of a batch of one. The model must not mix records (no
    batch normalisation), as DP-SGD requires anyway.
    """
    from torch.func import functional_call, grad, vmap

    parameters = {k: v.detach() for k, v in model.named_parameters() if v.requires_grad}
    rest = {k: v.detach() for k, v in model.named_parameters() if not v.requires_grad}
    rest.update({k: v.detach() for k, v in model.named_buffers()})

    def of_one(weights: Any, x: Any, y: Any) -> Any:
        output = functional_call(model, {**weights, **rest}, (x.unsqueeze(0),))
        return loss(output, y.unsqueeze(0))

    each = vmap(grad(of_one), in_dims=(None, 0, 0))(parameters, inputs, targets)
    flat = [gradient.reshape(len(inputs), -1).cpu().numpy() for gradient in each.values()]
    return np.concatenate(flat, axis=1)


def _grams(clipped: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Inner products of every record's clipped gradients."""
    grams: npt.NDArray[np.float64] = np.einsum("rap,rbp->rab", clipped, clipped)
    return grams


def _distance(value: tuple[float, ...]) -> float:
    if len(value) == 1:
        return value[0]
    a, b, inner = value
    return float(np.sqrt(max(a * a + b * b - 2.0 * inner, 0.0)))


def _checked(name: str) -> str:
    if "," in name or "\n" in name or "\r" in name:
        raise InvalidInput(f"the record's name {name!r} has a comma or a line break in it")
    return name
