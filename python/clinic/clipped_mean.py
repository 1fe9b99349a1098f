"""Plain PyTorch. The mistake: the mean is clipped, after averaging, and the noise is scaled as if
each record had been: CLIP / BATCH."""

from __future__ import annotations

from typing import Any

import torch
from common import BATCH, CLIP, NOISE, Patient, main
from plain import clipped_sum, loop, noised, set_gradients


def train(*, bug: bool, seed: int, **options: Any) -> Patient:
    """A loop that clips after averaging."""

    def step(model: Any, optimizer: Any, inputs: Any, labels: Any) -> None:
        if bug:
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            mean = [parameter.grad for parameter in model.parameters()]
        else:
            mean = [part / BATCH for part in clipped_sum(model, inputs, labels)]
        set_gradients(model, noised(mean, NOISE * CLIP / BATCH))

    return loop(step, seed=seed, **options)


if __name__ == "__main__":
    main(train)
