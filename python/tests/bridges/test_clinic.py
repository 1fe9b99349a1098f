"""The clinic: each script with its mistake is accused of it, and none is accused without."""

from __future__ import annotations

import csv
import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
pytest.importorskip("jax")
pytest.importorskip("transformers")

import dosimeter  # noqa: E402

pytestmark = [pytest.mark.bridge, pytest.mark.filterwarnings("ignore::UserWarning")]
torch.set_num_threads(1)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "clinic"))

#: Script, and what the recorder must accuse it of; None where it cannot.
PATIENTS = {
    "forgotten_noise": "noise",
    "noise_of_the_mean": "noise",
    "realised_batch": "normaliser",
    "clipped_batch": "sum",
    "clipped_mean": "sum",
    "accumulation": "sum",
    "batch_norm": "mixed records",
    "shuffled_loader": "records",
    "ghost_clipping": "sum",
    "same_seed": "repeated noise",
    "jax_loop": "noise of another step",
    "resumed": "steps",
    "resumed_noise": "noise of another step",
    "hf_trainer": "sum",
    "learned_normaliser": None,
}
HEALTHY_SEEDS = 20


def treat(name: str, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name).train(**options)


@pytest.mark.parametrize("name", PATIENTS)
def test_the_mistake_is_found(name: str) -> None:
    for seed in range(3):
        recorder = treat(name, bug=True, seed=seed).recorder
        accused = {finding.test for finding in recorder.findings() if finding.accused}
        if PATIENTS[name] is None:
            assert not accused
        else:
            assert PATIENTS[name] in accused, recorder


@pytest.mark.parametrize("name", PATIENTS)
def test_no_healthy_script_is_accused(name: str) -> None:
    for seed in range(100, 100 + HEALTHY_SEEDS):
        recorder = treat(name, bug=False, seed=seed).recorder
        assert not recorder.accused, (seed, recorder)
        assert recorder.run() == recorder.recording.claim, (seed, recorder)


@pytest.mark.parametrize("name", ["forgotten_noise", "noise_of_the_mean"])
def test_gradient_canaries_of_one_run_refute_missing_noise(name: str) -> None:
    common = importlib.import_module("common")
    statuses = {}
    for bug in (False, True):
        recorder = treat(name, bug=bug, seed=3, canaries=400).recorder
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dosimeter.DosimeterWarning)
            answer = recorder.audit(delta=1e-5, claim=common.CLAIM)
        assert answer.verdict is not None
        statuses[bug] = answer.verdict.status
    assert statuses[True] == "contradiction" and statuses[False] != "contradiction", statuses


@pytest.mark.parametrize("name", ["clipped_batch", "learned_normaliser"])
def test_many_trainings_refute_a_mistake_and_no_healthy_script(name: str, tmp_path: Path) -> None:
    audits = importlib.import_module("audits")
    rows = [audits.audited(name, bug, 50, tmp_path) for bug in (True, False)]
    assert [row["verdict"] == "contradiction" for row in rows] == [True, False], rows


DOCS = Path(__file__).resolve().parents[3] / "docs"


def page_rows() -> dict[str, list[str]]:
    lines = (DOCS / "clinic.md").read_text("utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "| `" in line]
    return {row[0].strip("`"): row for row in rows}


def test_the_table_of_the_page_is_this_one() -> None:
    page = page_rows()
    assert set(page) == set(PATIENTS)
    for name, test in PATIENTS.items():
        assert page[name][4] == (f"yes: {test}" if test else "no"), name


def test_the_audits_of_the_page_are_those_of_the_results() -> None:
    """Every mistake that changes the law by a factor of two or more is found by one of the two."""
    page = page_rows()
    with (DOCS / "results" / "clinic-audits.csv").open(encoding="utf-8", newline="") as file:
        results = {(row["script"], row["mistake"]): row for row in csv.DictReader(file)}
    assert all(results[name, "no"]["verdict"] != "contradiction" for name in PATIENTS)
    for name in PATIENTS:
        row = results[name, "yes"]
        found = row["verdict"] == "contradiction"
        shown = f"{int(100 * float(row['epsilon_lower'])) / 100:.2f}"
        words = f"{'yes' if found else 'no'}: {row['trainings']} trainings show {shown}"
        assert page[name][5].startswith(words), (name, words)
        assert found or PATIENTS[name] is not None, name


def test_the_gallery_shows_what_the_scripts_do() -> None:
    gallery = importlib.import_module("gallery")
    page = (DOCS / "gallery.md").read_text("utf-8")
    entries = page.split("\n## ")[1:]
    assert len(entries) == len(gallery.PATIENTS)
    for text, (script, bug, words) in zip(entries, gallery.PATIENTS, strict=True):
        assert text.startswith(f"`{script}`") and words in text
        shown = {line for line in text.splitlines() if line.startswith(("ACCUSED", "passed"))}
        fresh = gallery.treated(script, bug).findings()
        # Numbers may move with the version of PyTorch; what is accused may not.
        assert {line.split(":")[0] for line in shown} == {str(f).split(":")[0] for f in fresh}
