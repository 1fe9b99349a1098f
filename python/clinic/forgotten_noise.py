"""Plain PyTorch. The mistake: the noise was switched off for a test, and stayed off."""

from __future__ import annotations

from typing import Any

from common import BATCH, Patient, main
from plain import clipped_sum, loop, noised, set_gradients


def train(*, bug: bool, seed: int, **options: Any) -> Patient:
    """A loop that forgets its noise."""
    debugging = bug

    def step(model: Any, optimizer: Any, inputs: Any, labels: Any) -> None:
        total = clipped_sum(model, inputs, labels)
        if not debugging:
            total = noised(total)
        set_gradients(model, [part / BATCH for part in total])

    return loop(step, seed=seed, **options)


if __name__ == "__main__":
    main(train)
