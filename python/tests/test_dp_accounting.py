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
        noise_multiplier=1.5,
        dataset_size=1000,
        batch_size=50,
        steps=7,
        sampling="fixed-size",
        adjacency="substitute",
    ),
    Run(noise_multiplier=1.0, sample_rate=0.01, steps=10, adjacency="substitute"),
    Run(noise_multiplier=5.0, steps=20, sampling="full", adjacency="substitute"),
    Run(
        noise_multiplier=2.0,
        dataset_size=1000,
        batch_size=50,
        steps=40,
        sampling="truncated-poisson",
        max_batch_size=60,
    ),
]


@pytest.mark.parametrize("run", RUNS)
def test_a_run_survives_the_round_trip(run: Run) -> None:
    event = bridge.to_event(run)
    again = bridge.from_event(event, adjacency=run.adjacency, replacement_units=True)
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
    with pytest.raises(Unsupported, match="describes one record"):
        bridge.to_event({**RUNS[0].flags(), "group_size": 3})


def test_fixed_size_batches_are_handed_over_in_the_right_units() -> None:
    """dp_accounting's numbers for our events are never below what is proven to leak."""
    keywords = {"noise_multiplier": 1.0, "dataset_size": 50_000, "batch_size": 500, "steps": 1000}
    replaced = Run(**keywords, sampling="fixed-size", adjacency="substitute")
    relation = bridge.neighboring_relation(replaced)
    rdp = theirs.rdp.RdpAccountant(neighboring_relation=relation)
    told = rdp.compose(bridge.to_event(replaced)).get_epsilon(1e-5)
    ours = dosimeter.account(replaced, delta=1e-5, lens="composition")[0]
    assert ours.at_least is not None and ours.at_least < told
    # The event's own definition of noise is in units of the clip norm.
    event = theirs.SampledWithoutReplacementDpEvent(50_000, 500, theirs.GaussianDpEvent(1.0))
    many = theirs.SelfComposedDpEvent(event, 1000)
    assert bridge.from_event(many, adjacency="substitute") == replaced
    accountant = bridge.Accountant(relation).compose(many)
    assert accountant.get_epsilon(1e-5) == ours.upper
    # Adding or removing a record: exactly Poisson batches at half of the noise.
    removed = Run(**keywords, sampling="fixed-size")
    found = bridge.from_event(bridge.to_event(removed))
    assert found == Run(noise_multiplier=0.5, sample_rate=0.01, steps=1000)
    exact = dosimeter.account(removed, delta=1e-5, lens="composition")[0]
    assert dosimeter.account(found, delta=1e-5, lens="composition")[0].value == exact.value
    with pytest.raises(Unsupported, match="substitute"):
        bridge.to_event({**keywords, "sampling": "fixed-size", "adjacency": "zero-out"})


def test_a_replaced_record_in_full_batches_has_twice_the_sensitivity() -> None:
    run = Run(noise_multiplier=2.0, steps=4, sampling="full", adjacency="substitute")
    relation, event = bridge.neighboring_relation(run), bridge.to_event(run)
    ours = dosimeter.account(run, delta=1e-5, lens="composition")[0]
    pld = theirs.pld.PLDAccountant(relation).compose(event).get_epsilon(1e-5)
    assert ours.lower <= pld <= ours.upper * (1 + 1e-3)
    # The Rényi accountant would count it once; it refuses the event.
    assert not theirs.rdp.RdpAccountant(neighboring_relation=relation).supports(event)


def test_what_has_no_event_is_refused() -> None:
    plain = {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 10}
    for more, name in (
        ({"count_noise": 10.0}, "several releases"),
        ({"stopped": "on-output", "max_steps": 20}, "stopped"),
        ({"sampling": "balls-and-bins"}, "balls-and-bins"),
        ({"sampling": "cyclic-poisson", "cycle_length": 5, "matrix": {"bands": 5}}, "correlated"),
    ):
        with pytest.raises(Unsupported, match=name):
            bridge.to_event({**plain, **more})
    cyclic = bridge.to_event({**plain, "sampling": "cyclic-poisson", "cycle_length": 4})
    assert cyclic.count == 3


def test_a_truncated_event_is_below_theirs() -> None:
    run = RUNS[-1]
    pld = theirs.pld.PLDAccountant(bridge.neighboring_relation(run))
    loose = pld.compose(bridge.to_event(run)).get_epsilon(1e-5)
    ours = bridge.Accountant().compose(bridge.to_event(run)).get_epsilon(1e-5)
    assert ours == dosimeter.account(run, delta=1e-5, lens="composition")[0].upper
    assert 0.5 * loose < ours < loose
