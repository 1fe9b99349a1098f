"""Pieces of a DP-SGD loop in plain PyTorch, as people write them."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch
from attacker import Attacker
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
    attacker: Attacker | None = None,
) -> Patient:
    """Trains with a step that leaves its gradient in the parameters."""
    inputs, labels = records()
    model = network(seed, middle)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    recorder = watched(model, optimizer, seed, canaries, every=every)
    generator = numpy.random.default_rng(seed)
    for _ in range(STEPS):
        chosen = poisson(generator, member)
        batch = inputs[chosen], labels[chosen]
        recorder.batch(batch, records=chosen)
        others = chosen[chosen != TARGET]
        both = [others, numpy.concatenate(([TARGET], others))]
        sums = [silent_sum(step, model, inputs[k], labels[k]) for k in both] if attacker else []
        optimizer.zero_grad()
        step(model, optimizer, *batch)
        if attacker is not None:
            attacker.see(flat_sum(model), *sums)
        optimizer.step()
    return Patient(recorder, 0.0 if attacker is None else attacker.score)


def silent_sum(step: Callable[..., None], model: Any, inputs: Any, labels: Any) -> Any:
    """The sum that a step would leave behind if there were no noise; the model stays as it is."""
    twin = copy.deepcopy(model)
    with silence():
        step(twin, torch.optim.SGD(twin.parameters(), lr=0.0), inputs, labels)
    return flat_sum(twin)


def flat_sum(model: Any) -> Any:
    """The gradient in the parameters, times the public divisor, as one vector."""
    return BATCH * _flat(parameter.grad for parameter in model.parameters())


class Outside:
    """What an attacker learns of a loop whose step it cannot call, such as Opacus': the parameters
    before and after. A twin of the model gives the sums without noise."""

    def __init__(self, attacker: Attacker, twin: Any, *, clipped: bool, divisor: float) -> None:
        self.attacker, self.twin, self.clipped, self.divisor = attacker, twin, clipped, divisor

    def look(self, module: Any, inputs: Any, labels: Any, target: tuple[Any, Any]) -> None:
        """The batch of the next step; the target may be in it."""
        self.twin.load_state_dict(module.state_dict())
        others = (inputs != target[0]).any(1)
        rest = inputs[others], labels[others]
        joined = torch.cat([target[0][None], rest[0]]), torch.cat([target[1][None], rest[1]])
        self.sums = [self._sum(*rest), self._sum(*joined)]
        self.before = _flat(self.twin.parameters())

    def _sum(self, inputs: Any, labels: Any) -> Any:
        if self.clipped:
            return _flat(clipped_sum(self.twin, inputs, labels))
        losses = cross_entropy(self.twin, (inputs, labels)).sum()
        return _flat(torch.autograd.grad(losses, list(self.twin.parameters())))

    def see(self, module: Any, learning_rate: float) -> None:
        """The step was taken."""
        moved = self.before - _flat(module.parameters())
        self.attacker.see(moved * (self.divisor / learning_rate), *self.sums)


def _flat(parts: Any) -> Any:
    return torch.cat([part.detach().reshape(-1) for part in parts]).double().numpy()


def set_gradients(model: Any, gradients: list[Any]) -> None:
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        parameter.grad = gradient


_silent = False


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Steps inside add no noise and draw none."""
    global _silent
    _silent = True
    try:
        yield
    finally:
        _silent = False


def noise_like(part: Any, scale: float, generator: Any = None) -> Any:
    if _silent:
        return torch.zeros_like(part)
    return scale * torch.randn(part.shape, generator=generator)


def noised(total: list[Any], scale: float = NOISE * CLIP) -> list[Any]:
    return [part + noise_like(part, scale) for part in total]
