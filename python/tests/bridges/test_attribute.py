"""Sensitivities of gradients to an attribute: arrays, and a PyTorch model where there is one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dosimeter import InvalidInput, Run
from dosimeter.attribute import Sensitivity, per_example_gradients


def value(claims, lens: str, quantity: str) -> float:
    found = [
        claim
        for claim in claims
        if claim.secret == "attribute" and claim.lens == lens and claim.quantity == quantity
    ]
    return found[0].value


def test_two_values_known_by_hand() -> None:
    """Gradients 2 and -0.5, clipped to 1 and -0.5: distance 1.5 at every step."""
    sensitivity = Sensitivity(clip_norm=1.0)
    for _ in range(50):
        sensitivity.add([[[2.0], [-0.5]]])
    assert sensitivity.steps == 50
    claims = sensitivity.account(Run(noise_multiplier=2.0, sample_rate=0.1, steps=50))
    mu = 0.1 * math.sqrt(50) * 1.5 / 2.0
    assert value(claims, "closed-form", "bayes-security") == pytest.approx(
        math.erfc(mu / (2 * math.sqrt(2))), rel=1e-9
    )
    kernel = math.exp(1 / 4) + math.exp(0.25 / 4) - 2 * math.exp(-0.5 / 4)
    mu = 0.1 * math.sqrt(50 * kernel)
    assert value(claims, "closed-form-clt", "bayes-security") == pytest.approx(
        math.erfc(mu / (2 * math.sqrt(2))), rel=1e-9
    )


def test_modes_and_approximation_are_ordered() -> None:
    rng = np.random.default_rng(3)
    steps = [rng.normal(size=(4, 6, 10)) for _ in range(20)]
    run = Run(noise_multiplier=1.0, sample_rate=0.05, steps=20)

    def security(**options) -> float:
        sensitivity = Sensitivity(clip_norm=1.0, **options)
        for gradients in steps:
            sensitivity.add(gradients)
        return value(sensitivity.account(run), "closed-form", "bayes-security")

    assert security(mode="dataset") <= security(mode="record")
    assert security(approximate=True) <= security()


def test_bad_shapes_are_named() -> None:
    with pytest.raises(InvalidInput, match="shape"):
        Sensitivity(clip_norm=1.0).add([[1.0, 2.0]])
    with pytest.raises(InvalidInput, match="comma"):
        Sensitivity(clip_norm=1.0).add([[[1.0], [2.0]]], records=["a,b"])
    with pytest.raises(InvalidInput, match="no step"):
        Sensitivity(clip_norm=1.0).to_csv()


def test_a_torch_model() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    inputs, targets = torch.randn(6, 5), torch.tensor([0, 1, 0, 1, 1, 0])
    loss = torch.nn.functional.cross_entropy
    gradients = per_example_gradients(model, loss, inputs, targets)
    # Independent route: one backward pass per record.
    for i in range(6):
        model.zero_grad()
        loss(model(inputs[i : i + 1]), targets[i : i + 1]).backward()
        flat = np.concatenate([p.grad.reshape(-1).numpy() for p in model.parameters()])
        np.testing.assert_allclose(gradients[i], flat, rtol=1e-4, atol=1e-6)

    def candidates(x):
        variants = []
        for attribute in (0.0, 1.0):
            variant = x.clone()
            variant[:, 0] = attribute
            variants.append(variant)
        return variants

    sensitivity = Sensitivity(clip_norm=0.5)
    for _ in range(3):
        sensitivity.record(model, loss, inputs, targets, candidates)
    claims = sensitivity.account(
        Run(noise_multiplier=1.0, sample_rate=0.1, steps=3, clip_norm=0.5)
    )
    assert 0.0 < value(claims, "closed-form-certified", "bayes-security") < 1.0
