"""Plain PyTorch, parameters split over two ranks, as sharded training does. The mistake: both ranks
seed their noise alike, so both halves of the model get the same noise, and the difference between
them has none. (The two ranks take turns in one process here.)"""

from __future__ import annotations

from typing import Any

import numpy
import torch
from common import BATCH, CLIP, NOISE, Patient, main
from plain import clipped_sum, loop, noise_like, set_gradients

RANKS = 2


def between_ranks(flat: Any) -> Any:
    """The difference of the two halves, where noise that both ranks share cancels."""
    first, second = (part.copy() for part in numpy.array_split(flat, RANKS))
    return first[: len(second)] - second


def train(*, bug: bool, seed: int, **options: Any) -> Patient:
    """Two ranks with one seed."""
    ranks = [
        torch.Generator().manual_seed(seed if bug else 1000 * seed + rank) for rank in range(RANKS)
    ]

    def step(model: Any, optimizer: Any, inputs: Any, labels: Any) -> None:
        total = clipped_sum(model, inputs, labels)
        flat = torch.cat([part.reshape(-1) for part in total])
        shards = list(flat.chunk(RANKS))
        for shard, generator in zip(shards, ranks, strict=True):
            shard += noise_like(shard, NOISE * CLIP, generator)
        parts = torch.cat(shards).split([part.numel() for part in total])
        pairs = zip(parts, total, strict=True)
        set_gradients(model, [part.view(old.shape) / BATCH for part, old in pairs])

    return loop(step, seed=seed, **options)


if __name__ == "__main__":
    main(train)
