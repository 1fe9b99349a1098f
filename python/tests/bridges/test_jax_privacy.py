"""jax-privacy: plans and parameters as runs, scores for its auditor."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

pytest.importorskip("jax_privacy")

import dosimeter  # noqa: E402
from dosimeter import jax_privacy as bridge  # noqa: E402

pytestmark = pytest.mark.bridge


def test_an_execution_plan_is_a_run() -> None:
    from jax_privacy.experimental import execution_plan

    config = execution_plan.BandMFExecutionPlanConfig(
        strategy=numpy.array([1.0]),
        iterations=100,
        epsilon=None,
        delta=None,
        noise_multiplier=1.3,
        sampling_prob=0.05,
    )
    run = bridge.from_plan(config.plan)
    assert run == dosimeter.Run(noise_multiplier=1.3, sample_rate=0.05, steps=100)
    accountant = config.accountant.compose(config.plan.dp_event)
    ours = dosimeter.account(run, delta=1e-5)[0]
    assert ours.lower <= accountant.get_epsilon(1e-5) <= ours.upper * (1 + 1e-3)


def test_parameters_are_a_run_and_back() -> None:
    from jax_privacy.accounting import analysis
    from jax_privacy.accounting.accountants import PldAccountantConfig

    params = analysis.DpParams(
        noise_multipliers=1.2, num_samples=10_000, delta=1e-6, batch_size=100
    )
    run = bridge.from_params(params, num_updates=500)
    assert (run.noise_multiplier, run.sample_rate, run.steps) == (1.2, 0.01, 500)
    again = bridge.to_params(run, delta=1e-6)
    assert (again.noise_multipliers, again.num_samples, again.batch_size) == (1.2, 10_000, 100)
    theirs = analysis.DpsgdTrainingAccountant(PldAccountantConfig()).compute_epsilon(
        num_updates=500, dp_params=again
    )
    ours = dosimeter.account(run, delta=1e-6)[0]
    assert ours.lower <= theirs <= ours.upper * (1 + 1e-3)
    users = analysis.DpParams(
        noise_multipliers=1.2, num_samples=10_000, delta=1e-6, batch_size=100, examples_per_user=4
    )
    with pytest.raises(dosimeter.Unsupported, match="examples_per_user"):
        bridge.from_params(users, num_updates=500)


@pytest.mark.parametrize("groups, largest", [(4, None), (None, 120), (4, 120)])
def test_cycles_and_truncation_are_read(groups: int | None, largest: int | None) -> None:
    from jax_privacy.accounting import analysis
    from jax_privacy.accounting.accountants import PldAccountantConfig

    params = analysis.DpParams(
        noise_multipliers=2.0,
        num_samples=10_000,
        delta=1e-5,
        batch_size=100,
        cycle_length=groups,
        truncated_batch_size=largest,
    )
    run = bridge.from_params(params, num_updates=400)
    assert run.sampling == ("truncated-poisson" if largest else "cyclic-poisson")
    assert run.max_batch_size == largest
    theirs = analysis.DpsgdTrainingAccountant(PldAccountantConfig()).compute_epsilon(
        num_updates=400, dp_params=params
    )
    ours = dosimeter.account(run, delta=1e-5, lens="composition")[0]
    # Their truncation is looser; without it the pair is the same.
    assert (0.8 * theirs < ours.upper <= theirs) if largest else (
        ours.lower <= theirs <= ours.upper * (1 + 1e-3)
    )
    if groups is None or largest is None:
        again = bridge.to_params(run, delta=1e-5)
        assert (again.cycle_length, again.truncated_batch_size) == (groups, largest)
        assert (again.num_samples, again.batch_size) == (10_000, 100)


def test_the_auditor_gets_our_scores_and_we_get_its(tmp_path: Path) -> None:
    from jax_privacy import auditing

    run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.1, steps=20)
    game = dosimeter.attack("linear", run=run, trials=2000, out=tmp_path / "scores.csv")
    theirs = bridge.auditor(game)
    ours = bridge.audit_auditor(theirs, delta=1e-5)
    assert ours.to_dict()["members"] == 2000
    assert ours.to_dict()["bounds"] == game.audit(delta=1e-5).to_dict()["bounds"]
    # At one threshold given in advance theirs is Clopper and Pearson's bound with the confidence split
    # over the two rates. Ours is an exact test of both counts together: never below, and true.
    threshold = float(numpy.median(game.read()[0]))
    fixed = game.audit(delta=1e-5, threshold=f"fixed:{threshold!r}", direction="forward")
    reference = theirs.epsilon_clopper_pearson(
        0.05, 1e-5, one_sided=True, threshold_strategy=auditing.Explicit(threshold)
    )
    truth = dosimeter.account(run, delta=1e-5, lens="composition")[0].upper
    bound = fixed.primary.epsilon_lower
    assert bound is not None and 0.0 < reference <= bound <= truth
