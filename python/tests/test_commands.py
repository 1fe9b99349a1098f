"""Reports, comparisons, tables of trainings and memorisation: the command's documents, and a
report's bytes."""

from __future__ import annotations

import json
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest

import dosimeter
from conftest import REPOSITORY, Program
from dosimeter._toml import write_toml

TABLE = REPOSITORY / "crates" / "tuning" / "tests" / "reference" / "table.csv"

#: Made-up people and numbers.
TUNED = [
    {"prompt": "Ada Quill's locker is", "target": " 4417", "completion": " 4417, by the door",
     "secret": "ada", "attribute": "4417"},
    {"prompt": "Cy Marsh's locker is", "target": " 8850", "completion": " 1234", "secret": "cy",
     "attribute": "8850"},
    {"prompt": "Di Holt writes", "target": " true crime", "completion": "  True Crime novels",
     "secret": "di", "attribute": ["true crime", "crime fiction"]},
]


@pytest.fixture
def scores(run: dosimeter.Run, tmp_path: Path) -> Path:
    out = tmp_path / "scores.csv"
    dosimeter.attack("linear", run=run, trials=500, seed=3, out=out)
    return out


@pytest.mark.parametrize("format", ["html", "md"])
def test_a_report_has_the_bytes_of_the_commands(
    format: Any, run: dosimeter.Run, scores: Path, tmp_path: Path, program: Program,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The page names its own command, so the words have to be the same.
    monkeypatch.chdir(tmp_path)
    name = f"report.{format}"
    flags = ["--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "1000"]
    end = ["--delta", "1e-5", "--format", format, "--out", name]
    program("report", "scores.csv", *flags, *end)
    theirs = Path(name).read_bytes()
    Path(name).unlink()
    page = dosimeter.report(run, scores="scores.csv", delta=1e-5, format=format, out=name)
    assert page.path.read_bytes() == theirs
    # A file instead of keywords, and the public page.
    Path("run.toml").write_text("[run]\nnoise_multiplier = 1\nsample_rate = 0.01\nsteps = 1e3\n")
    program("report", "run.toml", "--public", *end)
    theirs = Path(name).read_bytes()
    Path(name).unlink()
    public = dosimeter.report("run.toml", delta=1e-5, public=True, format=format, out=name)
    assert public.path.read_bytes() == theirs


def test_a_report_is_read_and_shown(run: dosimeter.Run, scores: Path, tmp_path: Path) -> None:
    page = dosimeter.report(run, scores=[scores], delta=1e-5, out=tmp_path / "report.html")
    document = page.to_dict()
    assert document["schema"] == "dosimeter.report/1"
    epsilon = dosimeter.account(run, delta=1e-5)[0]
    assert json.dumps(epsilon.upper) in page.text
    assert page._repr_html_().startswith("<iframe srcdoc=") and "report.html" in repr(page)
    assert dosimeter.Report.from_json(page.to_json()) == page == pickle.loads(pickle.dumps(page))
    # What was not given is called a default on the page; what was given is not.
    said = dosimeter.Run(**{**run.flags(), "dataset_size": None})
    both = [
        dosimeter.report(one, delta=1e-5, format="md", out=tmp_path / "r.md").text
        for one in (run, said, pickle.loads(pickle.dumps(run)))
    ]
    assert "default" in both[0] and both[0] != both[1] and both[0] == both[2]
    with pytest.raises(dosimeter.InvalidInput, match="needs a delta"):
        dosimeter.report(run, out=tmp_path / "none.html")


def test_a_report_of_several_phases(tmp_path: Path) -> None:
    phase = {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 100}
    run = dosimeter.Run(phases=[phase, phase | {"noise_multiplier": 2.0}])
    page = dosimeter.report(run, delta=1e-5, out=tmp_path / "report.html")
    assert repr(dosimeter.account(run, delta=1e-5)[0].upper) in page.text


def test_a_comparison_is_the_commands(program: Program, tmp_path: Path) -> None:
    paths = {}
    for name, noise in (("small", 0.8), ("large", 1.6)):
        paths[name] = tmp_path / f"{name}.toml"
        paths[name].write_text(
            f"[run]\nnoise_multiplier = {noise}\nsample_rate = 0.01\nsteps = 100\n"
        )
    printed = program.json("compare", *map(str, paths.values()), "--delta", "1e-5")
    ours = dosimeter.compare(paths, delta=1e-5)
    claims = [one["account"]["claims"] for one in printed["runs"]]
    assert [one.to_dict()["claims"] for one in ours.runs.values()] == claims


@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
def test_tables_of_trainings_are_the_commands(program: Program) -> None:
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    frame = pandas.read_csv(TABLE)
    table = pyarrow.Table.from_pandas(frame)
    for question, options in (
        ("regress", {}),
        ("rank", {}),
        ("select", {"epsilon": 8}),
        ("profiles", {"epsilon": 8, "dataset_size": 33508}),
    ):
        flags = [word for key, value in options.items()
                 for word in (f"--{key.replace('_', '-')}", str(value))]
        printed = program.json("tune", question, str(TABLE), *flags)
        # What is slow is asked of one form.
        for form in (TABLE, frame, table) if question != "profiles" else (frame,):
            assert dosimeter.tune(question, form, **options) == printed, (question, type(form))
    with pytest.raises(dosimeter.InvalidInput, match="a file, a pandas frame or an Arrow table"):
        dosimeter.tune("rank", 3)


@pytest.mark.filterwarnings("ignore:with 3 secrets the interval")
def test_memorisation_is_the_commands(program: Program, tmp_path: Path) -> None:
    path, base = tmp_path / "tuned.jsonl", tmp_path / "base.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in TUNED))
    base.write_text("".join(json.dumps(row | {"completion": " red"}) + "\n" for row in TUNED))
    for metric, options in (("vmr", {}), ("air", {"match": "contains"})):
        flags = [word for key, value in options.items() for word in (f"--{key}", value)]
        printed = program.json("memorize", metric, str(path), "--base", str(base), *flags)
        ours = dosimeter.memorize(metric, path, base=base, **options)
        assert ours == printed and ours["schema"] == "dosimeter.memorize/1"
    with pytest.warns(dosimeter.DosimeterWarning, match="base|un-tuned"):
        dosimeter.memorize("vmr", path)


@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
def test_a_model_of_our_own(program: Program, tmp_path: Path) -> None:
    data = REPOSITORY / "crates" / "language" / "tests" / "data" / "stories260K"
    secrets = tmp_path / "secrets.jsonl"
    row = {"prompt": "Once upon a time", "target": ", there was a little girl named Lily."}
    secrets.write_text(json.dumps(row) + "\n")
    ours = dosimeter.memorize(
        "vmr", model=data / "stories260K.bin", tokenizer=data / "tok512.bin", secrets=secrets
    )
    assert ours["score"]["value"] == 1.0


def test_questions_beyond_the_run(run: dosimeter.Run, program: Program) -> None:
    flags = ["--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "1000"]
    printed = program.json(
        "account", *flags, "--delta", "1e-5", "--candidates", "10", "--attack-prior", "0.2"
    )
    ours = dosimeter.account(run, delta=1e-5, candidates=10, attack_prior=[0.2])
    assert ours.to_dict() == printed
    assert ours.select(quantity="attack-accuracy") and ours.select(quantity="reconstruction")
    full = dosimeter.Run(noise_multiplier=20, steps=1000, sampling="full")
    hidden = dosimeter.account(
        full, delta=1e-5, lens="hidden-state", learning_rate=0.1, smoothness=1, strong_convexity=0.5
    )
    proven = dosimeter.account(full, delta=1e-5, lens="composition")
    assert hidden[0].upper < proven[0].upper
    with pytest.raises(dosimeter.InvalidInput, match="nonsense"):
        dosimeter.account(run, nonsense=3)


@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
def test_the_columns_of_a_frame_that_say_how_scores_came_about_are_kept(
    program: Program, tmp_path: Path
) -> None:
    pandas = pytest.importorskip("pandas")
    # Canaries of one training are not trainings of their own.
    frame = pandas.DataFrame(
        {"score": [0.1, 0.9] * 50, "member": [0, 1] * 50, "run": [7] * 100, "canary": range(100)}
    )
    path = tmp_path / "scores.csv"
    frame.to_csv(path, index=False)
    printed = program.json("audit", str(path), "--delta", "1e-5")
    ours = dosimeter.audit(frame, delta=1e-5)
    assert ours.to_dict() == printed and ours.design == "one-run"
    assert "<svg" in ours.figure().svg
    with pytest.raises(dosimeter.InvalidInput):
        dosimeter.audit(frame, delta=1e-5, design="runs")
    # Two canaries in two trainings each are neither.
    mixed = frame.assign(run=[1, 2] * 50, canary=[1, 1, 2, 2] * 25)
    with pytest.raises(dosimeter.InvalidInput):
        dosimeter.audit(mixed, delta=1e-5)


def test_games_of_any_name_reach_the_core(run: dosimeter.Run, tmp_path: Path) -> None:
    """Games that train models need no code here: their names, tables and keys are passed on."""
    tables = {"run": run.flags(), "data": {"name": "adult"}}
    with pytest.raises(dosimeter.InvalidInput, match="no-such-game"):
        dosimeter.attack("no-such-game", run=tables, out=tmp_path / "s.csv", device="cpu")
    document = {
        "schema": "dosimeter.attack/1", "game": "gradient", "parameters": {}, "seed": 0,
        "trials": 3, "plan": "x", "state": "complete", "scores": "s.csv", "exact": [],
        "warnings": [], "models": 6,
    }
    game = dosimeter.Attack.from_dict(document)
    assert game.details == {"models": 6} and game.to_dict() == document
    assert dosimeter.Attack.from_json(game.to_json()) == game


@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
def test_a_game_that_trains_models(program: Program, tmp_path: Path) -> None:
    tables = {
        "run": {"noise_multiplier": 1.0, "batch_size": 64, "steps": 4, "seed": 1},
        "data": {"name": "adult"},
        "model": {"kind": "softmax"},
        "optimizer": {"kind": "sgd", "learning_rate": 0.1},
    }
    known = [*program.start, "attack", "gradient", "--help"]
    if subprocess.run(known, capture_output=True).returncode != 0:
        pytest.skip("this build plays simulated games only")
    toml = write_toml(tables, tmp_path / "run.toml")
    theirs, ours = tmp_path / "theirs.csv", tmp_path / "ours.csv"
    flags = ["--trials", "4", "--device", "cpu", "--out", str(theirs)]
    program("attack", "gradient", str(toml), *flags)
    for run in (tables, toml):
        game = dosimeter.attack("gradient", run=run, trials=4, out=ours, device="cpu")
        assert game.state == "complete" and game.game == "gradient"
        assert ours.read_bytes() == theirs.read_bytes()
    members, nonmembers = game.read()
    assert len(members) == len(nonmembers) == 4
