"""What a recorder accuses with: its tests hold their false-alarm rate, and find what they are for."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import dosimeter
from dosimeter import _evidence
from dosimeter.recording import Check, Recording, repeated

RECORDS, BATCH, STEPS = 500, 25, 60


def claim(**changes: Any) -> dosimeter.Run:
    keys: dict[str, Any] = {
        "noise_multiplier": 1.0, "sample_rate": BATCH / RECORDS, "steps": STEPS,
        "dataset_size": RECORDS,
    }
    return dosimeter.Run(**(keys | changes))


def excess(count: int, trials: int, level: float) -> bool:
    """More than the level by more than four standard errors."""
    return count > trials * level + 4 * math.sqrt(trials * level)


def test_bounds_are_p_values() -> None:
    """Under the null hypothesis each is at most a level with that probability at most."""
    generator = numpy.random.default_rng(0)
    trials = 2000
    bounds: dict[str, list[float]] = {"chi": [], "count": [], "dispersion": [], "rare": [],
                                      "angle": [], "energy": []}
    for _ in range(trials):
        bounds["chi"].append(_evidence.chi_square_below(generator.chisquare(40), 40))
        bounds["count"].append(_evidence.binomial(int(generator.binomial(300, 0.1)), 300, 0.1))
        bounds["dispersion"].append(
            _evidence.dispersion(generator.binomial(200, 0.1, size=20), 200, 0.1)
        )
        # Counts that are mostly zero, where a normal approximation would be wrong.
        bounds["rare"].append(_evidence.dispersion(generator.binomial(50, 0.002, size=30), 50, 0.002))
        one, other = generator.normal(size=(2, 64))
        cosine = float(one @ other / numpy.linalg.norm(one) / numpy.linalg.norm(other))
        bounds["angle"].append(_evidence.alignment(cosine, 64))
        energies = 7.0 * generator.chisquare(100, size=10)
        bounds["energy"].append(
            _evidence.weighted_energy(energies, [1.0, 2.0] * 5, [100.0] * 10)
        )
    for name, found in bounds.items():
        for level in (0.05, 0.005):
            assert not excess(sum(p <= level for p in found), trials, level), name
        assert min(found) < 0.1, f"{name} never comes near: it cannot find anything"


def healthy(generator: numpy.random.Generator, **options: Any) -> Recording:
    recording = Recording(claim(), **options)
    train(recording, generator)
    return recording


def train(
    recording: Recording,
    generator: numpy.random.Generator,
    *,
    noise: float = 1.0,
    factor: float = 1.0,
    realised: bool = False,
    parameters: int = 200,
    batches: Any = None,
    steps: int = STEPS,
) -> None:
    for step in range(steps):
        if batches is None:
            batch = numpy.flatnonzero(generator.random(RECORDS) < BATCH / RECORDS)
        else:
            batch = batches[step]
        recording.step(records=batch)
        if step % 3:
            continue
        summed = 0.5 * len(batch) * numpy.ones(parameters) / math.sqrt(parameters)
        divided = BATCH / max(len(batch), 1) if realised else 1.0
        sent = divided * (factor * summed + noise * generator.normal(size=parameters))
        residual = sent - summed
        norm = float(numpy.linalg.norm(summed))
        recording.check(
            Check(
                step=step, degrees=parameters, energy=float(residual @ residual),
                along=float(residual @ summed) / norm, signal=norm, size=len(batch),
                repeated=repeated(
                    lambda a, b, r=residual: r[a:b], parameters, starts=[0], window=25
                ),
            )
        )


def test_healthy_trainings_are_accused_as_rarely_as_stated() -> None:
    generator = numpy.random.default_rng(1)
    level, trials = 0.2, 150
    accused = sum(healthy(generator, false_alarm=level).accused for _ in range(trials))
    assert not excess(accused, trials, level), accused
    # And with the default, never.
    assert not any(healthy(generator).accused for _ in range(20))


def accusations(recording: Recording) -> set[str]:
    return {finding.test for finding in recording.findings() if finding.accused}


@pytest.mark.parametrize(
    ("mistake", "found"),
    [
        ({"noise": 0.5}, "noise"),
        ({"noise": 0.9}, "noise"),
        ({"noise": 0.0}, "noise"),
        ({"factor": 2.0}, "sum"),
        ({"factor": 0.5}, "sum"),
        ({"realised": True}, "normaliser"),
        ({"steps": STEPS + 1}, "steps"),
    ],
)
def test_mistakes_are_found(mistake: dict[str, Any], found: str) -> None:
    for seed in range(5):
        recording = Recording(claim())
        train(recording, numpy.random.default_rng(seed), **mistake)
        assert found in accusations(recording), repr(recording)


def shuffled(generator: numpy.random.Generator, drop: bool = False) -> list[Any]:
    batches: list[Any] = []
    size = 24 if drop else BATCH
    while len(batches) < STEPS:
        order = generator.permutation(RECORDS)
        last = RECORDS // size * size if drop else RECORDS
        batches += [order[start : start + size] for start in range(0, last, size)]
    return batches[:STEPS]


def test_ways_to_draw_batches_are_recognised() -> None:
    generator = numpy.random.default_rng(3)
    everything = numpy.arange(RECORDS)
    fixed = [generator.permutation(RECORDS)[:BATCH] for _ in range(STEPS)]
    bins: list[Any] = []
    while len(bins) < STEPS:
        thrown = generator.integers(20, size=RECORDS)
        bins += [everything[thrown == place] for place in range(20)]
    schemes = {
        "shuffle": shuffled(generator),
        "fixed-size": fixed,
        "full": [everything] * STEPS,
        "balls-and-bins": bins,
        "in-order": [everything[BATCH * (step % 20) :][:BATCH] for step in range(STEPS)],
        "unknown": [generator.integers(RECORDS, size=BATCH) for _ in range(STEPS)],
    }
    for name, batches in schemes.items():
        recording = Recording(claim())
        train(recording, generator, batches=batches)
        assert recording.sampling == name, repr(recording)
        assert recording.accused
    dropped = Recording(claim())
    train(dropped, generator, batches=shuffled(generator, drop=True))
    assert dropped.sampling == "shuffle"
    poisson = healthy(generator)
    assert poisson.sampling == "poisson" and poisson.run() == claim()
    # The same batch at every step: each record's count gives it away.
    repeats = Recording(claim())
    train(repeats, generator, batches=[everything[:BATCH]] * STEPS)
    assert {"records", "neighbouring batches"} <= accusations(repeats)


def test_the_run_that_happened() -> None:
    generator = numpy.random.default_rng(4)
    recording = Recording(claim())
    train(recording, generator, noise=0.5)
    assert recording.run().noise_multiplier == pytest.approx(0.5, rel=0.05)
    told = recording.compare(delta=1e-5)
    assert told["accused"] and told["happened"]["epsilon"] > 2 * told["claimed"]["epsilon"]
    silent = Recording(claim())
    train(silent, generator, noise=0.0)
    with pytest.raises(dosimeter.Unsupported, match="no noise"):
        silent.run()
    # Where the sum is not one of clipped gradients, no epsilon is stated, not even the claimed one.
    unclipped = Recording(claim())
    train(unclipped, generator, factor=2.0)
    assert "sum" in accusations(unclipped)
    with pytest.raises(dosimeter.Unsupported, match="sum"):
        unclipped.run()
    assert unclipped.compare(delta=1e-5)["happened"]["run"] is None
    mixed = Recording(claim())
    train(mixed, generator, batches=shuffled(generator))
    run = mixed.run()
    assert (run.sampling, run.steps, run.noise_multiplier) == ("shuffle", STEPS, 1.0)
    assert mixed.compare(delta=1e-5)["happened"]["run"]["sampling"] == "shuffle"


def test_a_resumed_training_is_recorded_as_a_whole() -> None:
    generator = numpy.random.default_rng(5)
    whole, first, second = (Recording(claim()) for _ in range(3))
    batches = [numpy.flatnonzero(generator.random(RECORDS) < 0.05) for _ in range(STEPS)]
    train(whole, numpy.random.default_rng(6), batches=batches)
    train(first, numpy.random.default_rng(6), batches=batches, steps=30)
    second.load_state_dict(first.state_dict())
    for batch in batches[30:]:
        second.step(records=batch)
    assert second.steps == whole.steps == STEPS
    assert (second.sizes, second.sampling) == (whole.sizes, whole.sampling)


def test_noise_that_repeats_is_found_at_any_distance() -> None:
    generator = numpy.random.default_rng(7)
    noise = generator.normal(size=200_000)
    sizes = {"starts": [0], "window": 1024}
    assert repeated(lambda a, b: noise[a:b], len(noise), **sizes) > 1e-3
    noise[123_457 : 123_457 + 1024] = noise[:1024]
    assert repeated(lambda a, b: noise[a:b], len(noise), **sizes) < 1e-50


def test_what_cannot_be_recorded_is_refused() -> None:
    phases = [dosimeter.Phase(noise_multiplier=1.0, sample_rate=0.1, steps=5)] * 2
    with pytest.raises(dosimeter.InvalidInput, match="one phase"):
        Recording(dosimeter.Run(phases=phases))
    recording = Recording(claim())
    with pytest.raises(dosimeter.InvalidInput, match="no step"):
        recording.run()
    with pytest.raises(dosimeter.InvalidInput, match="500 records"):
        recording.step(records=[RECORDS])
