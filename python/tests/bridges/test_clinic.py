"""The clinic: each script with its mistake is accused of it, and none is accused without."""

from __future__ import annotations

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
        if name not in ("hf_trainer", "jax_loop"):
            assert recorder.run() == recorder.recording.claim


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


def test_the_table_of_the_page_is_this_one() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "clinic.md").read_text("utf-8")
    for name, test in PATIENTS.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}`"))
        assert (f"yes: {test}" if test else "no") in row, row
