"""Plain PyTorch, stopped and resumed from a checkpoint. The mistake: the script seeds its generator at
the beginning, as good scripts do, and the checkpoint does not hold the generator's state. So the
second session draws the noise of the first again, and it cancels in the difference of two updates."""

from __future__ import annotations

from typing import Any

from common import CLAIM, Patient, main
from resumed import sessions


def train(*, bug: bool, **options: Any) -> Patient:
    """A second session with the noise of the first."""
    return sessions(claim=CLAIM, restored=not bug, **options)


if __name__ == "__main__":
    main(train)
