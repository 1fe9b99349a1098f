"""The job array as text and as a program: four tasks give the bytes of one run."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import dosimeter
from conftest import REPOSITORY

SCRIPT = REPOSITORY / "docs" / "cluster" / "audit.sbatch"


def test_the_text_of_the_job_array() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/bash\n") and "#SBATCH --requeue" in text
    assert '"${SLURM_ARRAY_TASK_ID}/${SLURM_ARRAY_TASK_COUNT}"' in text
    # Directives end at the first command.
    body = text[text.index("set -euo pipefail") :]
    assert "#SBATCH" not in body
    manifest = (SCRIPT.parent / "kuberay.yaml").read_text(encoding="utf-8")
    assert "kind: RayJob" in manifest and "nvidia.com/gpu" in manifest
    assert not re.search(r"^\t", manifest, re.MULTILINE)


@pytest.mark.skipif(os.name != "posix", reason="bash")
def test_four_tasks_give_the_bytes_of_one_run(tmp_path: Path) -> None:
    command = tmp_path / "bin" / "dosimeter"
    command.parent.mkdir()
    command.write_text(f'#!/bin/bash\nexec "{sys.executable}" -m dosimeter "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IEXEC)
    out = tmp_path / "scores.csv"
    game = ["linear", "--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "4000"]
    for task in (2, 4, 1, 3):
        environment = os.environ | {
            "PATH": f"{command.parent}:{os.environ['PATH']}",
            "SLURM_ARRAY_TASK_ID": str(task),
            "SLURM_ARRAY_TASK_COUNT": "4",
            "SLURM_CPUS_PER_TASK": "1",
        }
        subprocess.run(
            ["bash", str(SCRIPT), str(out), *game, "--trials", "40000"],
            env=environment,
            check=True,
            capture_output=True,
        )
    whole = tmp_path / "whole.csv"
    run = {"noise_multiplier": 1, "sample_rate": 0.01, "steps": 4000}
    dosimeter.attack("linear", run=run, trials=40_000, out=whole)
    assert out.read_bytes() == whole.read_bytes()
    # A wrong flag is not taken for a shard that waits for others.
    failed = subprocess.run(
        ["bash", str(SCRIPT), str(out), "linear", "--nonsense"], env=environment, capture_output=True
    )
    assert failed.returncode == 2
