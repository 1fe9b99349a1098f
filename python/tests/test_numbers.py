"""The same numbers as the command line, bit for bit."""

from __future__ import annotations

import math
import json
from pathlib import Path
from typing import Any

import numpy
import pytest

import dosimeter
from conftest import Program

RUNS: list[tuple[list[str], dict[str, object]]] = [
    (
        ["--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "1000"],
        {"noise_multiplier": 1, "sample_rate": 0.01, "steps": 1000},
    ),
    (
        ["--noise-multiplier", "0.8", "--dataset-size", "50000", "--batch-size", "512"]
        + ["--epochs", "3.5", "--clip-norm", "0.3"],
        {
            "noise_multiplier": 0.8,
            "dataset_size": 50_000,
            "batch_size": 512,
            "epochs": 3.5,
            "clip_norm": 0.3,
        },
    ),
    (
        ["--noise-multiplier", "20", "--steps", "1e3", "--sampling", "full"]
        + ["--adjacency", "substitute"],
        {"noise_multiplier": 20, "steps": 1e3, "sampling": "full", "adjacency": "substitute"},
    ),
    (
        ["--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "1000"]
        + ["--sampling", "shuffle", "--dataset-size", "60000"],
        {
            "noise_multiplier": 1,
            "sample_rate": 0.01,
            "steps": 1000,
            "sampling": "shuffle",
            "dataset_size": 60_000,
        },
    ),
    (
        ["--noise-multiplier", "2", "--sample-rate", "0.02", "--steps", "50"]
        + ["--group-size", "2"],
        {"noise_multiplier": 2, "sample_rate": 0.02, "steps": 50, "group_size": 2},
    ),
]


@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
@pytest.mark.parametrize(("flags", "keywords"), RUNS)
def test_account_is_the_commands_document(
    flags: list[str], keywords: dict[str, object], program: Program
) -> None:
    questions = ["--delta", "1e-5,1e-7", "--epsilon", "1", "--fpr", "0.001", "--prior", "0.1"]
    printed = program.json("account", *flags, *questions, "--directions")
    ours = dosimeter.account(
        keywords, delta=[1e-5, 1e-7], epsilon=1, fpr=numpy.array([0.001]), prior=0.1,
        directions=True,
    )
    assert ours.to_dict() == printed
    # And the order of the keys, so that a stored document does not change with its writer.
    assert json.dumps(ours.to_dict()) == json.dumps(printed)


def test_single_quantities_are_the_commands(run: dosimeter.Run, program: Program) -> None:
    flags = ["--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "1000"]
    printed = program.json("account", *flags, "--delta", "1e-5", "--quantity", "epsilon")
    ours = dosimeter.account(run, delta=1e-5, quantity="epsilon")
    assert ours.to_dict() == printed and {claim.quantity for claim in ours} == {"epsilon"}


def test_phases_and_files_compose_as_the_command_does(program: Program, tmp_path: Path) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text("[run]\nnoise_multiplier = 1.0\nsample_rate = 0.01\nsteps = 100\n")
    second.write_text("[run]\nnoise_multiplier = 2.0\nsample_rate = 0.02\nsteps = 50\n")
    printed = program.json("account", str(first), str(second), "--delta", "1e-5")
    ours = dosimeter.account(dosimeter.Run.from_file(first, second), delta=1e-5)
    assert ours.to_dict() == printed
    phases = dosimeter.Run(
        phases=[
            dosimeter.Phase(noise_multiplier=1.0, sample_rate=0.01, steps=100),
            {"noise_multiplier": 2.0, "sample_rate": 0.02, "steps": 50},
        ]
    )
    assert phases == ours.run and phases.total_steps == 150
    again = dosimeter.account(phases, delta=1e-5)
    assert [claim.upper for claim in again] == [claim.upper for claim in ours]


@pytest.mark.parametrize(
    ("solve", "flags", "keywords"),
    [
        (
            "noise_multiplier",
            ["--target-epsilon", "2", "--delta", "1e-5", "--sample-rate", "0.01"]
            + ["--steps", "1000"],
            {"target_epsilon": 2, "delta": 1e-5, "sample_rate": 0.01, "steps": 1000},
        ),
        (
            "steps",
            ["--target-tpr", "0.05", "--fpr", "0.01", "--noise-multiplier", "1"]
            + ["--sample-rate", "0.01"],
            {"target_tpr": 0.05, "fpr": 0.01, "noise_multiplier": 1, "sample_rate": 0.01},
        ),
        (
            "sample_rate",
            ["--target-bayes-security", "0.9", "--noise-multiplier", "0.8", "--steps", "500"],
            {"target_bayes_security": 0.9, "noise_multiplier": 0.8, "steps": 500},
        ),
    ],
)
def test_calibrate_is_the_commands_document(
    solve: dosimeter.calibration.Unknown,
    flags: list[str],
    keywords: dict[str, float],
    program: Program,
) -> None:
    printed = program.json("calibrate", "--solve", solve.replace("_", "-"), *flags)
    ours = dosimeter.calibrate(solve, **keywords)  # type: ignore[arg-type]
    assert ours.to_dict() == printed


def test_curves_are_the_commands_documents(run: dosimeter.Run, program: Program) -> None:
    flags = ["--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "1000"]
    lenses = ["composition", "last-iterate"]
    asked = ["--lens", ",".join(lenses), "--points", "9"]
    printed = program.json("curve", "tradeoff", *flags, *asked)
    curve = dosimeter.tradeoff(run, lens=lenses, points=9)
    assert curve.to_dict() == printed
    assert curve.fnr.tolist() == [point["fnr"] for point in printed["points"]]
    assert curve.lines[1].upper.tolist() == [
        point["upper"] for point in printed["others"][0]["points"]
    ]
    assert dosimeter.profile(run, points=9, direction="add").to_dict() == program.json(
        "curve", "profile", *flags, "--points", "9", "--direction", "add"
    )
    assert dosimeter.steps(run, points=5, delta=1e-6).to_dict() == program.json(
        "curve", "steps", *flags, "--points", "5", "--delta", "1e-6"
    )
    svg = program("curve", "tradeoff", *flags, *asked, "--format", "svg").stdout
    assert dosimeter.figure(curve).svg.strip() == svg.strip()


def test_an_attack_and_its_audit_are_the_commands(
    run: dosimeter.Run, program: Program, tmp_path: Path
) -> None:
    flags = ["--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "1000"]
    theirs, ours = tmp_path / "theirs.csv", tmp_path / "ours.csv"
    program("attack", "linear", *flags, "--trials", "3000", "--seed", "7", "--out", str(theirs))
    game = dosimeter.attack("linear", run=run, trials=3000, seed=7, out=ours, threads=2)
    assert ours.read_bytes() == theirs.read_bytes()
    claim = tmp_path / "run.toml"
    claim.write_text("[run]\nnoise_multiplier = 1.0\nsample_rate = 0.01\nsteps = 1000\n")
    printed = program.json(
        "audit", str(theirs), "--delta", "1e-5", "--claim", str(claim), "--method", "all"
    )
    with pytest.warns(dosimeter.DosimeterWarning, match="bayes"):
        audited = game.audit(delta=1e-5, claim=run, method="all")
    assert audited.to_dict() == printed
    verdict = audited.verdict
    assert verdict is not None and verdict.status == "consistent"
    # Arrays instead of a file: the same scores, so the same bounds.
    members, nonmembers = game.read()
    from_arrays = dosimeter.audit(members=members, nonmembers=nonmembers, delta=1e-5)
    assert from_arrays.primary == audited.primary


def test_plan_and_status_are_the_commands(program: Program, tmp_path: Path) -> None:
    flags = ["--noise-multiplier", "0.8", "--sample-rate", "0.1", "--steps", "50"]
    assert dosimeter.plan(
        target_epsilon=2, delta=1e-5, run={"noise_multiplier": 0.8, "sample_rate": 0.1, "steps": 50}
    ) == program.json("plan", "--target-epsilon", "2", "--delta", "1e-5", *flags)
    out = tmp_path / "scores.csv"
    program("attack", "zeroing", *flags, "--trials", "10", "--out", str(out))
    assert dosimeter.status(out) == program.json("status", str(out))


def test_golden_values() -> None:
    """The reference of the published comparison, to the eleven digits that it has."""
    value = dosimeter.account(
        {"noise_multiplier": 1, "sample_rate": 0.01, "steps": 1000}, delta=1e-5
    )[0]
    assert value.lower <= 1.82823666651 + 5e-12 and value.upper >= 1.82823666651 - 5e-12
    assert value.upper - value.lower < 1e-9


def test_a_renyi_filter_has_the_epsilon_of_its_budget() -> None:
    """Ten full batches with noise 2 spend 10 alpha/8 at order alpha."""
    order, delta = 8.0, 1e-5
    run = dosimeter.Run(
        noise_multiplier=2, sampling="full", steps=10,
        stopped="renyi-filter", renyi_order=order, renyi_budget=10,
    )
    assert (run.stopped, run.renyi_order, run.renyi_budget) == ("renyi-filter", 8.0, 10.0)
    assert dosimeter.Run.from_json(run.to_json()) == run == dosimeter.Run(**run.flags())
    want = 10 + math.log(1 - 1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    account = dosimeter.account(run, delta=delta, quantity="epsilon")
    assert [claim.lens for claim in account] == ["composition"]
    assert account[0].upper == pytest.approx(want, rel=1e-11)
    with pytest.raises(dosimeter.InvalidInput, match="more than the budget"):
        dosimeter.account(dosimeter.Run(**run.flags() | {"renyi_budget": 9}), delta=delta)


#: Settings of runs beyond a rate.
BATCHES: list[dict[str, Any]] = [
    {"sampling": "shuffle", "permutation": "kept", "adjacency": "zero-out"},
    {"sampling": "fixed-size"},
    {"sampling": "cyclic-poisson", "cycle_length": 4},
    {"count_noise": 0.5},
    {"releases": [{"noise": 2.0, "sensitivity": 1.0}]},
    {"stopped": "on-output", "max_steps": 1000},
    {"sampling": "cyclic-poisson", "cycle_length": 4, "matrix": {"bands": 4}},
]


@pytest.mark.parametrize("keywords", BATCHES)
@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
def test_every_setting_of_a_run_reaches_every_question(keywords: dict[str, Any]) -> None:
    """The same number from the run's keywords, from its document, and from its file's keys."""
    plain: dict[str, Any] = {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 1000}
    run = dosimeter.Run(**plain | keywords)
    assert run != dosimeter.Run(**plain) and dosimeter.Run(**run.flags()) == run
    for key in keywords.keys() - {"count_noise", "releases", "matrix"}:
        assert getattr(run, key) == keywords[key] and key in repr(run)
    account = dosimeter.account(run, delta=1e-5, lens="composition", quantity="epsilon")
    claim = account[0]
    again = dosimeter.Run.from_json(run.to_json())
    assert again == run and hash(again) == hash(run)
    assert dosimeter.account(again, delta=1e-5, quantity="epsilon", lens="composition")[0].value == (
        claim.value
    )
    assert dosimeter.check(run, max_epsilon=claim.upper, delta=1e-5).passed
    assert not dosimeter.check(run, max_epsilon=0.9 * claim.lower, delta=1e-5).passed
    compared = dosimeter.compare({"a": run}, delta=1e-5, lens="composition", quantity="epsilon")
    assert compared.runs["a"][0].upper == claim.upper
    profile = dosimeter.profile(run, epsilon=[claim.upper])
    assert profile.delta[0] <= 1e-5 * (1 + 1e-6)
    if "stopped" not in keywords:
        found = dosimeter.calibrate(
            "noise_multiplier",
            target_epsilon=claim.upper,
            delta=1e-5,
            **{key: value for key, value in (plain | keywords).items() if "noise_m" not in key},
        )
        assert found.solution == pytest.approx(1.0, rel=1e-5)


@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
def test_one_run_in_every_way_to_draw_its_batches() -> None:
    run = {"noise_multiplier": 4.0, "dataset_size": 10_000, "batch_size": 100, "epochs": 3}
    found = dosimeter.compare([run], every_sampling=True, delta=1e-5, quantity="epsilon")
    assert list(found.runs) == [
        "poisson", "shuffle (fresh)", "shuffle (kept)", "fixed-size", "balls-and-bins", "in-order",
    ]
    assert set(found.left_out) == {"truncated-poisson", "cyclic-poisson"}
    assert "max_batch_size" in found.left_out["truncated-poisson"].replace("-", "_")
    for name, account in found.runs.items():
        assert account.run.adjacency == "zero-out" and name.startswith(account.run.sampling)
        alone = dosimeter.account(account.run, delta=1e-5, lens="composition", quantity="epsilon")
        assert alone[0].upper == account[0].upper
    epsilon = {name: account[0].upper for name, account in found.runs.items()}
    assert epsilon["poisson"] < epsilon["fixed-size"] < epsilon["shuffle (fresh)"]
    assert dosimeter.Comparison.from_json(found.to_json()) == found
