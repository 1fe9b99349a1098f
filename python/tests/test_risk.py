"""Risk functions: against closed forms, and each against the others."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy
import pytest

import dosimeter
from dosimeter import risk

GAUSSIAN = {"noise_multiplier": 10.0, "sample_rate": 1.0, "num_steps": 100}  # mu = 1


def test_the_gaussian_mechanism_has_its_closed_form() -> None:
    normal = NormalDist()
    advantage = risk.get_advantage_for_dpsgd(**GAUSSIAN)
    exact = normal.cdf(0.5) - normal.cdf(-0.5)
    assert exact <= advantage <= exact * (1 + 1e-8)
    alphas = numpy.array([0.001, 0.01, 0.1, 0.5])
    betas = risk.get_beta_for_dpsgd(**GAUSSIAN, alpha=alphas)
    assert isinstance(betas, numpy.ndarray)
    for alpha, beta in zip(alphas, betas, strict=True):
        exact = normal.cdf(normal.inv_cdf(1 - alpha) - 1.0)
        assert exact * (1 - 1e-8) - 1e-12 <= beta <= exact * (1 + 1e-12)
    assert risk.get_beta_for_dpsgd(**GAUSSIAN, alpha=1.0) == 0.0
    assert 0.99 < float(risk.get_beta_for_dpsgd(**GAUSSIAN, alpha=0.0)) <= 1.0


def test_bayes_risk_is_the_minimum_over_the_curve() -> None:
    for prior in (0.1, 0.5, 0.8):
        found = risk.get_bayes_risk_for_dpsgd(1.0, 0.01, 1000, prior)
        alphas = numpy.linspace(1e-4, 1 - 1e-4, 2001)
        betas = risk.get_beta_for_dpsgd(1.0, 0.01, 1000, alphas)
        # Both ways of calling one error the false positive; neither does better than `found`.
        best = min(
            ((1 - prior) * alphas + prior * betas).min(),
            (prior * alphas + (1 - prior) * betas).min(),
        )
        trivial = min(prior, 1 - prior)
        # The curve's lower end gives away up to its certified width.
        assert found <= min(best, trivial) + 1e-7
        assert found >= min(best, trivial) - 2e-4
    assert math.isclose(
        risk.get_bayes_risk_for_dpsgd(1.0, 0.01, 1000),
        (1 - risk.get_advantage_for_dpsgd(1.0, 0.01, 1000)) / 2,
        rel_tol=1e-8,
    )


def test_calibrations_meet_their_targets() -> None:
    noise = risk.find_noise_multiplier_for_advantage(0.16, 0.01, 1000)
    assert risk.get_advantage_for_dpsgd(noise, 0.01, 1000) <= 0.16 * (1 + 1e-9)
    noise = risk.find_noise_multiplier_for_err_rates(0.01, 0.95, 0.01, 1000)
    assert float(risk.get_beta_for_dpsgd(noise, 0.01, 1000, 0.01)) >= 0.95 * (1 - 1e-9)
    with pytest.raises(dosimeter.InvalidInput, match="outside"):
        risk.get_beta_for_dpsgd(1.0, 0.01, 1000, [0.5, 1.5])
    with pytest.raises(dosimeter.InvalidInput, match="prior"):
        risk.get_bayes_risk_for_dpsgd(1.0, 0.01, 1000, 0.0)
