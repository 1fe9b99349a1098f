"""Opacus. The mistake: ``poisson_sampling=False``, because batches of one size are faster, and the
epsilon of Poisson batches is claimed all the same."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from attacker import Attacker
from common import BATCH, CLAIM, CLIP, NOISE, STEPS, TARGET, Patient, main
from opacus import PrivacyEngine
from plain import Outside, network, records
from torch.utils.data import DataLoader, Subset, TensorDataset

from dosimeter.torch import Recorder, cross_entropy

LEARNING = 0.5


def train(
    *,
    bug: bool,
    seed: int,
    member: bool = True,
    every: int = 3,
    attacker: Attacker | None = None,
) -> Patient:
    """An Opacus training with a shuffled loader."""
    inputs, labels = records()
    dataset: Any = TensorDataset(inputs, labels)
    if not member:
        dataset = Subset(dataset, [i for i in range(len(inputs)) if i != TARGET])
    twin, model = network(seed), network(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=NOISE,
            max_grad_norm=CLIP,
            poisson_sampling=not bug,
        )
    # Opacus divides by the whole part of the expected batch size.
    recorder = Recorder(
        model, optimizer, claim=CLAIM, loss=cross_entropy, every=every,
        divisor=optimizer.expected_batch_size,
    )
    outside = None
    if attacker is not None:
        outside = Outside(attacker, twin, clipped=True, divisor=optimizer.expected_batch_size)
    done = 0
    while done < STEPS:
        for batch in recorder.watch(loader):
            optimizer.zero_grad()
            cross_entropy(model, batch).mean().backward()
            if outside is not None:
                outside.look(model._module, *batch, (inputs[TARGET], labels[TARGET]))
            optimizer.step()
            if outside is not None:
                outside.see(model._module, LEARNING)
            done += 1
            if done == STEPS:
                break
    return Patient(recorder, 0.0 if attacker is None else attacker.score)


if __name__ == "__main__":
    main(train)
