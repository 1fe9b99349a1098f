"""Hugging Face's Trainer: a callback that records and audits (needs ``transformers`` and
``accelerate``).

::

    from dosimeter.trainer import PrivacyCallback

    callback = PrivacyCallback(claim=run, loss=language_loss, dataset_size=len(dataset),
                               canaries=dict(count=1000, seed=7))
    trainer = DPTrainer(model, args, train_dataset=dataset, callbacks=[callback])
    callback.watch(trainer).train()
    print(callback.recorder)
    print(callback.recorder.audit(delta=1e-5, claim=run))

The Trainer itself is not private; the callback tests the one that you made private.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import TrainerCallback

from ._torch_gradients import GradientCanary
from ._torch_recorder import NO_DIVISOR, Recorder, expected_batch
from ._torch_records import Loss
from .errors import InvalidInput, Unsupported
from .runs import RunLike, as_run

__all__ = ["PrivacyCallback", "language_loss"]


def language_loss(model: Any, batch: Any) -> Any:
    """The mean cross-entropy of each sequence's next tokens; labels of -100 do not count."""
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    logits = model(**inputs).logits[:, :-1]
    targets = batch["labels"][:, 1:]
    losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, reduction="none", ignore_index=-100
    )
    counted = (targets != -100).sum(1).clamp(min=1)
    return losses.sum(1) / counted


class PrivacyCallback(TrainerCallback):  # type: ignore[misc]
    """Puts a :class:`dosimeter.torch.Recorder` on a Trainer, with gradient canaries if asked for.

    ``canaries`` are keywords of :class:`dosimeter.torch.GradientCanary`; clip norm and sample rate
    are those of the claim unless they are given. ``divisor`` is the expected batch size unless it is
    given: the sample rate times ``dataset_size``, which the claim may know.
    ``callback.watch(trainer)`` shows it the batches.

    The recorder is ``callback.recorder`` once training has begun. Refused by name:
    ``max_grad_norm`` other than 0, because the Trainer would scale the noise with it.
    """

    def __init__(
        self,
        *,
        claim: RunLike,
        loss: Loss | None = language_loss,
        dataset_size: int | None = None,
        divisor: float | None = None,
        every: int = 100,
        canaries: Mapping[str, Any] | None = None,
        false_alarm: float = 1e-4,
    ) -> None:
        self.claim = as_run(claim)
        self.options: dict[str, Any] = {
            "claim": self.claim,
            "loss": loss,
            "dataset_size": dataset_size,
            "divisor": divisor,
            "every": every,
            "false_alarm": false_alarm,
        }
        self.canaries = canaries
        self._recorder: Recorder | None = None

    @property
    def recorder(self) -> Recorder:
        """What was recorded."""
        if self._recorder is None:
            raise InvalidInput("training has not begun; there is no recorder yet")
        return self._recorder

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **_: Any
    ) -> None:
        if args.max_grad_norm:
            raise Unsupported(
                f"max_grad_norm {args.max_grad_norm} makes the Trainer scale the noisy gradient; "
                "clipping for privacy is done record by record: set max_grad_norm=0"
            )
        inner = getattr(optimizer, "optimizer", optimizer)
        inserted = None
        if self.canaries is not None:
            divisor = self.options["divisor"]
            usual: dict[str, Any] = {
                "clip_norm": self.claim.clip_norm,
                "sample_rate": float(self.claim.phases[0].sample_rate),
                "divisor": divisor or expected_batch(self.claim, self.options["dataset_size"]),
            }
            chosen = usual | dict(self.canaries)
            if chosen["divisor"] is None:
                raise InvalidInput(NO_DIVISOR)
            inserted = GradientCanary(inner, **chosen)
        self._recorder = Recorder(model, inner, canaries=inserted, **self.options)

    def watch(self, trainer: Any) -> Any:
        """Shows the recorder the batches of a trainer: every call of ``training_step``."""
        step = trainer.training_step

        def told(model: Any, inputs: Any, *rest: Any, **named: Any) -> Any:
            tensors = {name: value for name, value in inputs.items() if torch.is_tensor(value)}
            self.recorder.batch(tensors)
            return step(model, inputs, *rest, **named)

        trainer.training_step = told
        return trainer
