"""Plain PyTorch. The mistake: noise with the scale for the mean is added to the sum, and then
everything is divided by the batch size once more."""

from __future__ import annotations

from typing import Any

from common import BATCH, CLIP, NOISE, Patient, main
from plain import clipped_sum, loop, noised, set_gradients


def train(*, bug: bool, seed: int, **options: Any) -> Patient:
    """A loop that adds the mean's noise to the sum."""

    def step(model: Any, optimizer: Any, inputs: Any, labels: Any) -> None:
        scale = NOISE * CLIP / BATCH if bug else NOISE * CLIP
        total = noised(clipped_sum(model, inputs, labels), scale)
        set_gradients(model, [part / BATCH for part in total])

    return loop(step, seed=seed, **options)


if __name__ == "__main__":
    main(train)
