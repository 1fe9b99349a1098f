"""Plain PyTorch, gradients of records one by one from a common forward pass. The mistake: batch
normalisation in the model, through which every record changes the gradients of all others."""

from __future__ import annotations

from typing import Any

import torch
from common import BATCH, CLIP, Patient, main
from plain import loop, noised, set_gradients


def train(*, bug: bool, seed: int, **options: Any) -> Patient:
    """A loop whose model mixes records."""

    def step(model: Any, optimizer: Any, inputs: Any, labels: Any) -> None:
        parameters = list(model.parameters())
        total = [torch.zeros_like(parameter) for parameter in parameters]
        losses = torch.nn.functional.cross_entropy(model(inputs), labels, reduction="none")
        for loss in losses:
            gradient = torch.autograd.grad(loss, parameters, retain_graph=True)
            norm = sum(part.pow(2).sum() for part in gradient).sqrt()
            for sofar, part in zip(total, gradient, strict=True):
                sofar += part * (CLIP / norm).clamp(max=1.0)
        set_gradients(model, [part / BATCH for part in noised(total)])

    middle = torch.nn.BatchNorm1d(32) if bug else torch.nn.LayerNorm(32)
    return loop(step, seed=seed, middle=middle, **options)


if __name__ == "__main__":
    main(train)
