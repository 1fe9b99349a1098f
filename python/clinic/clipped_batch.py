"""Plain PyTorch. The mistake: ``clip_grad_norm_`` clips the gradient of the whole batch, which
bounds the sum and not what one record adds to it."""

from __future__ import annotations

from typing import Any

import torch
from common import BATCH, CLIP, Patient, main
from plain import clipped_sum, loop, noised, set_gradients


def train(*, bug: bool, seed: int, **options: Any) -> Patient:
    """A loop that clips the batch in place of the records."""

    def step(model: Any, optimizer: Any, inputs: Any, labels: Any) -> None:
        if bug:
            logits = model(inputs)
            torch.nn.functional.cross_entropy(logits, labels, reduction="sum").backward()
            # "At most CLIP per record": the batch may have as much as all of them.
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP * BATCH)
            total = [parameter.grad for parameter in model.parameters()]
        else:
            total = clipped_sum(model, inputs, labels)
        set_gradients(model, [part / BATCH for part in noised(total)])

    return loop(step, seed=seed, **options)


if __name__ == "__main__":
    main(train)
