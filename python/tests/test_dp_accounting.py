"""Events of dp_accounting, both ways, and its accountants on ours."""

from __future__ import annotations

import pytest

import dosimeter
from dosimeter import Phase, Run, Unsupported

theirs = pytest.importorskip("dp_accounting")
from dosimeter import dp_accounting as bridge  # noqa: E402

RUNS = [
    Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000),
    Run(noise_multiplier=5.0, steps=20, sampling="full"),
    Run(
        phases=[
            Phase(noise_multiplier=1.0, sample_rate=0.01, steps=10),
            Phase(noise_multiplier=2.0, sample_rate=0.02, steps=30),
        ]
    ),
    Run(
        noise_multiplier=1.5, dataset_size=1000, batch_size=50, steps=7, sampling="fixed-size"
    ),
    Run(noise_multiplier=1.0, sample_rate=0.01, steps=10, adjacency="substitute"),
]


@pytest.mark.parametrize("run", RUNS)
def test_a_run_survives_the_round_trip(run: Run) -> None:
    event = bridge.to_event(run)
    again = bridge.from_event(event, adjacency=run.adjacency)
    assert again == run
    assert bridge.to_event(again) == event


def test_our_epsilon_lies_below_their_pessimistic_one() -> None:
    run = RUNS[0]
    accountant = theirs.pld.PLDAccountant(bridge.neighboring_relation(run))
    pessimistic = accountant.compose(bridge.to_event(run)).get_epsilon(1e-5)
    ours = dosimeter.account(run, delta=1e-5)[0]
    # Their grid errs upwards here by a few parts in a million.
    assert ours.lower <= pessimistic <= ours.upper * (1 + 1e-4)
    rdp = theirs.rdp.RdpAccountant().compose(bridge.to_event(run)).get_epsilon(1e-5)
    assert ours.upper < rdp


def test_events_made_elsewhere_are_read() -> None:
    gaussian = theirs.GaussianDpEvent(1.1)
    step = theirs.PoissonSampledDpEvent(0.02, gaussian)
    builder = theirs.DpEventBuilder()
    builder.compose(step, 30)
    builder.compose(theirs.NoOpDpEvent())
    builder.compose(step, 12)
    builder.compose(gaussian, 2)
    run = bridge.from_event(builder.build())
    assert run.sampling == "poisson" and run.total_steps == 44
    assert run.phases[0] == Phase(noise_multiplier=1.1, sample_rate=0.02, steps=42)
    assert run.phases[1].sample_rate == 1.0
    nested = theirs.SelfComposedDpEvent(theirs.ComposedDpEvent([step, gaussian]), 3)
    assert bridge.from_event(nested).total_steps == 6


def test_what_is_no_dp_sgd_is_refused_by_name() -> None:
    for event, name in (
        (theirs.LaplaceDpEvent(1.0), "LaplaceDpEvent"),
        (theirs.PoissonSampledDpEvent(0.1, theirs.LaplaceDpEvent(1.0)), "LaplaceDpEvent"),
        (theirs.NoOpDpEvent(), "no step"),
    ):
        with pytest.raises(Unsupported, match=name):
            bridge.from_event(event)
    with pytest.raises(Unsupported, match="shuffle"):
        bridge.to_event({**RUNS[0].flags(), "sampling": "shuffle"})
    with pytest.raises(Unsupported, match="about one record"):
        bridge.to_event({**RUNS[0].flags(), "group_size": 3})
