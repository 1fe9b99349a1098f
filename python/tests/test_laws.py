"""Laws that hold for every run."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import dosimeter

# Away from the corners where a number takes seconds.
noises = some.floats(1.0, 8.0)
rates = some.floats(5e-3, 0.2)
counts = some.integers(500, 5000)
deltas = some.sampled_from([1e-3, 1e-5, 1e-7])


def composition(delta: float, **keywords: Any) -> dosimeter.Claim:
    return dosimeter.account(keywords, delta=delta, lens="composition")[0]


@settings(max_examples=15, deadline=None)
@given(noise=noises, more=some.floats(1.05, 3.0), rate=rates, steps=counts, delta=deltas)
def test_more_noise_never_leaks_more(
    noise: float, more: float, rate: float, steps: int, delta: float
) -> None:
    quiet = composition(delta, noise_multiplier=noise, sample_rate=rate, steps=steps)
    loud = composition(delta, noise_multiplier=noise * more, sample_rate=rate, steps=steps)
    assert loud.lower <= quiet.upper


@settings(max_examples=15, deadline=None)
@given(noise=noises, rate=rates, steps=counts, delta=deltas)
def test_ends_enclose_the_value_and_lenses_are_in_order(
    noise: float, rate: float, steps: int, delta: float
) -> None:
    account = dosimeter.account(
        {"noise_multiplier": noise, "sample_rate": rate, "steps": steps},
        delta=delta,
        lens=["composition", "renyi"],
    )
    for claim in account:
        assert claim.lower <= claim.value <= claim.upper
    tight, renyi = (claim for claim in account if claim.quantity == "epsilon")
    assert tight.lower <= renyi.upper
    advantage = account.select(quantity="advantage", lens="composition")[0]
    security = account.select(quantity="bayes-security", lens="composition")[0]
    # Bayes security is one minus advantage.
    assert abs(advantage.value + security.value - 1.0) < 1e-9
    assert dosimeter.Account.from_json(account.to_json()) == account
    assert pickle.loads(pickle.dumps(account)) == account


@settings(max_examples=15, deadline=None)
@given(noise=noises, rate=rates, steps=counts)
def test_the_trade_off_curve_is_convex_and_below_the_diagonal(
    noise: float, rate: float, steps: int
) -> None:
    run = dosimeter.Run(noise_multiplier=noise, sample_rate=rate, steps=steps)
    curve = dosimeter.tradeoff(run, fpr=[i / 8 for i in range(1, 8)])
    upper, lower = curve.upper, curve.lower
    assert (lower <= 1.0 - curve.fpr + 1e-12).all()
    # A chord lies above a convex curve: the lower end of the middle cannot exceed it.
    assert (lower[1:-1] <= (upper[:-2] + upper[2:]) / 2 + 1e-12).all()
    again = pickle.loads(pickle.dumps(curve))
    assert again == curve and again.fnr.tolist() == curve.fnr.tolist()


@settings(max_examples=6, deadline=None)
@given(target=some.floats(0.5, 4.0), rate=some.floats(5e-3, 0.05), steps=counts, delta=deltas)
def test_a_calibrated_run_meets_its_target(
    target: float, rate: float, steps: int, delta: float
) -> None:
    answer = dosimeter.calibrate(
        "noise_multiplier", target_epsilon=target, delta=delta, sample_rate=rate, steps=steps
    )
    assert answer.achieved.upper <= target
    checked = dosimeter.account(answer.run, delta=delta, lens="composition")[0]
    assert checked.lower <= target
    assert dosimeter.Calibration.from_json(answer.to_json()) == answer


@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
@settings(max_examples=15, deadline=None)
@given(
    members=some.lists(some.floats(-10, 10), min_size=2, max_size=40),
    nonmembers=some.lists(some.floats(-10, 10), min_size=2, max_size=40),
)
def test_few_scores_prove_little(members: list[float], nonmembers: list[float]) -> None:
    answer = dosimeter.audit(members=members, nonmembers=nonmembers)
    bound = answer.primary.epsilon_lower
    # 40 perfect guesses per side, at a threshold given in advance, show less than ln 40.
    assert bound is not None and 0.0 <= bound < 3.7
    assert dosimeter.Audit.from_json(answer.to_json()) == answer
