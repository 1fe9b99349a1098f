"""Plain PyTorch, stopped and resumed from a checkpoint. The mistake: the second session counts its
own steps only, and that count is claimed."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from common import BATCH, CLAIM, NOISE, RATE, RECORDS, STEPS, Patient, main, poisson
from plain import clipped_sum, network, noised, records, set_gradients, target_score, watched

import dosimeter


def train(*, bug: bool, seed: int, canaries: int = 0, member: bool = True) -> Patient:
    """A training in two sessions."""
    inputs, labels = records()
    half = STEPS // 2
    counted = dosimeter.Run(
        noise_multiplier=NOISE, sample_rate=RATE, steps=half, dataset_size=RECORDS
    )
    claim = counted if bug else CLAIM
    generator = numpy.random.default_rng(seed)
    checkpoint: dict[str, Any] | None = None
    for _ in range(2):
        model = network(seed)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        recorder = watched(model, optimizer, seed, canaries, claim)
        if checkpoint is not None:
            model.load_state_dict(checkpoint["model"])
            optimizer.load_state_dict(checkpoint["optimizer"])
        for _ in range(half):
            chosen = poisson(generator, member)
            batch = inputs[chosen], labels[chosen]
            recorder.batch(batch, records=chosen)
            total = noised(clipped_sum(model, *batch))
            set_gradients(model, [part / BATCH for part in total])
            optimizer.step()
        checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    return Patient(recorder, target_score(model, inputs, labels))


if __name__ == "__main__":
    main(train)
