"""Pieces of a DP-SGD loop in plain PyTorch, as people write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import torch
from common import (
    BATCH, CLAIM, CLASSES, CLIP, NOISE, RATE, STEPS, TARGET, WIDTH, Patient, points, poisson,
)
from torch.func import functional_call, grad, vmap

from dosimeter.torch import GradientCanary, Recorder, cross_entropy


def network(seed: int, middle: Any = None) -> Any:
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(WIDTH, 32), torch.nn.Tanh(), torch.nn.Linear(32, CLASSES)]
    if middle is not None:
        layers.insert(1, middle)
    return torch.nn.Sequential(*layers)


def records() -> tuple[Any, Any]:
    inputs, labels = points()
    return torch.from_numpy(inputs), torch.from_numpy(labels)


def watched(
    model: Any, optimizer: Any, seed: int, canaries: int = 0, claim: Any = CLAIM, every: int = 3
) -> Recorder:
    """The lines that a user adds: a recorder, and gradient canaries if an audit is wanted."""
    inserted = None
    if canaries:
        inserted = GradientCanary(
            optimizer, clip_norm=CLIP, sample_rate=RATE, divisor=BATCH, count=canaries,
            seed=seed, observe="all", noise_multiplier=NOISE,
        )
    return Recorder(
        model, optimizer, claim=claim, loss=cross_entropy, canaries=inserted,
        every=1 if canaries else every,
    )


def clipped_sum(model: Any, inputs: Any, labels: Any) -> list[Any]:
    """The sum of the records' gradients, each scaled to a norm of at most CLIP."""
    values = {name: value.detach() for name, value in model.named_parameters()}

    def loss(given: Any, one: Any, label: Any) -> Any:
        logits = functional_call(model, given, (one.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(logits, label.unsqueeze(0))

    if len(inputs) == 0:
        return [torch.zeros_like(value) for value in values.values()]
    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(values, inputs, labels)
    norms = sum(part.flatten(1).pow(2).sum(1) for part in gradients.values()).sqrt()
    factors = (CLIP / norms).clamp(max=1.0)
    return [torch.einsum("n,n...->...", factors, gradients[name]) for name in values]


def loop(
    step: Callable[[Any, Any, Any, Any], None],
    *,
    seed: int,
    canaries: int = 0,
    member: bool = True,
    middle: Any = None,
    every: int = 3,
) -> Patient:
    """Trains with a step that leaves its gradient in the parameters."""
    inputs, labels = records()
    model = network(seed, middle)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    recorder = watched(model, optimizer, seed, canaries, every=every)
    start = target_score(model, inputs, labels)
    generator = numpy.random.default_rng(seed)
    for _ in range(STEPS):
        chosen = poisson(generator, member)
        batch = inputs[chosen], labels[chosen]
        recorder.batch(batch, records=chosen)
        optimizer.zero_grad()
        step(model, optimizer, *batch)
        optimizer.step()
    return Patient(recorder, target_score(model, inputs, labels) - start)


def target_score(model: Any, inputs: Any, labels: Any) -> float:
    """Minus the loss of the record that is asked about."""
    target = slice(TARGET, TARGET + 1)
    training = model.training
    model.eval()
    with torch.no_grad():
        found = -float(cross_entropy(model, (inputs[target], labels[target])))
    model.train(training)
    return found


def set_gradients(model: Any, gradients: list[Any]) -> None:
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        parameter.grad = gradient


def noised(total: list[Any], scale: float = NOISE * CLIP) -> list[Any]:
    return [part + scale * torch.randn_like(part) for part in total]
