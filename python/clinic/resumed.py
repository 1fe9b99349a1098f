"""Plain PyTorch, stopped and resumed from a checkpoint. The mistake: the second session counts its
own steps only, and that count is claimed."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from common import BATCH, CLAIM, NOISE, RATE, RECORDS, STEPS, TARGET, Patient, main, poisson
from plain import clipped_sum, flat_sum, network, noised, records, set_gradients, silent_sum, watched

import dosimeter

#: What the second session claims.
COUNTED = dosimeter.Run(
    noise_multiplier=NOISE, sample_rate=RATE, steps=STEPS // 2, dataset_size=RECORDS
)


def train(*, bug: bool, **options: Any) -> Patient:
    """A training whose first session is not counted."""
    return sessions(claim=COUNTED if bug else CLAIM, restored=True, **options)


def sessions(
    *,
    claim: dosimeter.Run,
    restored: bool,
    seed: int,
    canaries: int = 0,
    member: bool = True,
    every: int = 3,
    attacker: Any = None,
) -> Patient:
    """A training in two sessions, with the state of the generator restored or not."""
    inputs, labels = records()
    half = STEPS // 2
    generator = numpy.random.default_rng(seed)
    checkpoint: dict[str, Any] | None = None

    def step(model: Any, optimizer: Any, inputs: Any, labels: Any) -> None:
        total = noised(clipped_sum(model, inputs, labels))
        set_gradients(model, [part / BATCH for part in total])

    for _ in range(2):
        model = network(seed)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        recorder = watched(model, optimizer, seed, canaries, claim, every)
        if checkpoint is not None:
            model.load_state_dict(checkpoint["model"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            if restored:
                torch.set_rng_state(checkpoint["random"])
        for _ in range(half):
            chosen = poisson(generator, member)
            others = chosen[chosen != TARGET]
            both = [others, numpy.concatenate(([TARGET], others))]
            sums = [silent_sum(step, model, inputs[k], labels[k]) for k in both] if attacker else []
            recorder.batch((inputs[chosen], labels[chosen]), records=chosen)
            step(model, optimizer, inputs[chosen], labels[chosen])
            if attacker is not None:
                attacker.see(flat_sum(model), *sums)
            optimizer.step()
        checkpoint = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }
    return Patient(recorder, 0.0 if attacker is None else attacker.score)


if __name__ == "__main__":
    main(train)
