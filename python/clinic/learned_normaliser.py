"""Plain PyTorch. The mistake: features are centred and scaled by the mean and the deviation of the
private records, before training and without noise; both are part of the model that is published.
An attacker compares the published mean with the mean of the other records."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from attacker import Attacker
from common import BATCH, RECORDS, STEPS, TARGET, Patient, main, poisson
from plain import clipped_sum, network, noised, records, set_gradients, watched


def train(
    *,
    bug: bool,
    seed: int,
    canaries: int = 0,
    member: bool = True,
    every: int = 3,
    attacker: Attacker | None = None,
) -> Patient:
    """Features normalised by the private data."""
    inputs, labels = records()
    there = [i for i in range(RECORDS) if member or i != TARGET]
    # The healthy script takes constants that were known before the data.
    centre, scale = torch.zeros(inputs.shape[1]), 1.5 * torch.ones(inputs.shape[1])
    if bug:
        centre, scale = inputs[there].mean(0), inputs[there].std(0)
    without_target = inputs[1:].mean(0) if bug else centre
    inputs = (inputs - centre) / scale
    model: Any = network(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    recorder = watched(model, optimizer, seed, canaries, every=every)
    generator = numpy.random.default_rng(seed)
    for _ in range(STEPS):
        chosen = poisson(generator, member)
        batch = inputs[chosen], labels[chosen]
        recorder.batch(batch, records=chosen)
        set_gradients(model, [part / BATCH for part in noised(clipped_sum(model, *batch))])
        optimizer.step()
    return Patient(recorder, float((centre - without_target).norm()))


if __name__ == "__main__":
    main(train)
