"""Opacus with ghost clipping. The mistake: ``make_private`` also returns a criterion that does the
clipping in two passes, and the loop goes on with its own; no record is clipped."""

from __future__ import annotations

import warnings

import torch
from common import BATCH, CLAIM, CLIP, NOISE, STEPS, Patient, main
from opacus import PrivacyEngine
from plain import network, records, target_score
from torch.utils.data import DataLoader, TensorDataset

from dosimeter.torch import Recorder, cross_entropy


def train(*, bug: bool, seed: int) -> Patient:
    """Ghost clipping without its criterion."""
    inputs, labels = records()
    model = network(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=BATCH, shuffle=True)
    plain = torch.nn.CrossEntropyLoss()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, optimizer, criterion, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=optimizer,
            criterion=plain,
            data_loader=loader,
            noise_multiplier=NOISE,
            max_grad_norm=CLIP,
            grad_sample_mode="ghost",
        )
    recorder = Recorder(
        model, optimizer, claim=CLAIM, loss=cross_entropy, every=3,
        divisor=optimizer.expected_batch_size,
    )
    done = 0
    while done < STEPS:
        for batch in recorder.watch(loader):
            optimizer.zero_grad()
            if bug:
                # "Opacus wants the sum": unclipped, and the optimizer adds noise to it.
                (plain(model(batch[0]), batch[1]) * len(batch[0])).backward()
            else:
                criterion(model(batch[0]), batch[1]).backward()
            optimizer.step()
            done += 1
            if done == STEPS:
                break
    return Patient(recorder, target_score(model, inputs, labels))


if __name__ == "__main__":
    main(train)
