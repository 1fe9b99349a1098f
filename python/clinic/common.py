"""What the scripts of the clinic share: records, a claim, and how each reports itself.

The records are made up, so that the clinic needs no download: points of four classes. The
numbers are small, so that a training takes a second.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

import dosimeter

RECORDS, WIDTH, CLASSES = 2000, 20, 4
BATCH, STEPS = 64, 60
CLIP, NOISE = 1.0, 1.0
RATE = BATCH / RECORDS

#: What every script says about itself.
CLAIM = dosimeter.Run(
    noise_multiplier=NOISE, sample_rate=RATE, steps=STEPS, clip_norm=CLIP, dataset_size=RECORDS
)
#: The record that an audit with many trainings asks about: far from all others, wrongly labelled.
TARGET = 0


@dataclass
class Patient:
    """A training that is over."""

    #: A recorder or a recording.
    recorder: Any
    #: What an attacker concludes about the target; larger when it looks like it was there.
    score: float = 0.0


def points(count: int = RECORDS, seed: int = 0) -> tuple[Any, Any]:
    """Inputs and labels: four clouds, and the target far out."""
    generator = numpy.random.default_rng(seed)
    centres = numpy.random.default_rng(1).normal(size=(CLASSES, WIDTH))
    labels = generator.integers(CLASSES, size=count)
    inputs = centres[labels] + generator.normal(size=(count, WIDTH))
    inputs[TARGET] = -8.0 * centres[0]
    labels[TARGET] = 0
    return inputs.astype(numpy.float32), labels.astype(numpy.int64)


def poisson(generator: numpy.random.Generator, member: bool = True, rate: float = RATE) -> Any:
    """The numbers of the records of a batch: a coin for each; without the target if it is out."""
    chosen = numpy.flatnonzero(generator.random(RECORDS) < rate)
    return chosen if member else chosen[chosen != TARGET]


def main(train: Callable[..., Patient]) -> None:
    """The command line of a script: ``python script.py [--bug] [--seed N]``."""
    parser = argparse.ArgumentParser(description=train.__doc__)
    parser.add_argument("--bug", action="store_true", help="train with the mistake")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    print(train(bug=chosen.bug, seed=chosen.seed).recorder)
