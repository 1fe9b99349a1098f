"""Plain PyTorch with gradient accumulation. The mistake: each micro-batch of eight is clipped as
if it were one record, so eight records share one bound and a loud one takes all of it."""

from __future__ import annotations

from typing import Any

import torch
from common import BATCH, CLIP, Patient, main
from plain import clipped_sum, loop, noised, set_gradients

MICRO = 8


def train(*, bug: bool, seed: int, **options: Any) -> Patient:
    """A loop that clips micro-batches."""

    def step(model: Any, optimizer: Any, inputs: Any, labels: Any) -> None:
        total = [torch.zeros_like(parameter) for parameter in model.parameters()]
        for start in range(0, len(inputs), MICRO):
            part = slice(start, start + MICRO)
            if bug:
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(inputs[part]), labels[part])
                (loss * MICRO).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP * MICRO)
                added = [parameter.grad for parameter in model.parameters()]
            else:
                added = clipped_sum(model, inputs[part], labels[part])
            for sofar, more in zip(total, added, strict=True):
                sofar += more
        set_gradients(model, [part / BATCH for part in noised(total)])

    return loop(step, seed=seed, **options)


if __name__ == "__main__":
    main(train)
