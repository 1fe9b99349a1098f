"""Plain PyTorch. The mistake: sum and noise are divided by the size of the batch that was drawn,
which is a secret; its size shows in the update."""

from __future__ import annotations

from typing import Any

from common import BATCH, Patient, main
from plain import clipped_sum, loop, noised, set_gradients


def train(*, bug: bool, seed: int, **options: Any) -> Patient:
    """A loop that divides by the realised batch size."""

    def step(model: Any, optimizer: Any, inputs: Any, labels: Any) -> None:
        divisor = max(len(inputs), 1) if bug else BATCH
        total = noised(clipped_sum(model, inputs, labels))
        set_gradients(model, [part / divisor for part in total])

    return loop(step, seed=seed, **options)


if __name__ == "__main__":
    main(train)
