"""The job array as text and as a program, and the Kubernetes manifest: its parts fit together."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    assert subprocess.run(["bash", "-n", str(SCRIPT)]).returncode == 0
    limits = re.findall(r"^#SBATCH --([a-z-]+)(?:=(\S+))?$", text, re.MULTILINE)
    known = {"job-name", "cpus-per-task", "mem", "time", "requeue", "output"}
    assert {name for name, _ in limits} == known


def manifest() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    text = (SCRIPT.parent / "kuberay.yaml").read_text(encoding="utf-8")
    return {part["kind"]: part for part in yaml.safe_load_all(text)}


def test_the_parts_of_the_kuberay_manifest_fit_together() -> None:
    parts = manifest()
    assert list(parts) == ["ConfigMap", "PersistentVolumeClaim", "RayJob"]
    job = parts["RayJob"]
    assert job["apiVersion"] == "ray.io/v1"
    cluster = job["spec"]["rayClusterSpec"]
    head = cluster["headGroupSpec"]["template"]["spec"]
    # The script that is started is the one in the map, where the map is mounted.
    mounts = {mount["name"]: mount["mountPath"] for mount in head["containers"][0]["volumeMounts"]}
    volumes = {volume.pop("name"): volume for volume in head["volumes"]}
    assert mounts.keys() == volumes.keys()
    assert volumes["script"]["configMap"]["name"] == parts["ConfigMap"]["metadata"]["name"]
    claimed = volumes["scores"]["persistentVolumeClaim"]["claimName"]
    assert claimed == parts["PersistentVolumeClaim"]["metadata"]["name"]
    (name, script), = parts["ConfigMap"]["data"].items()
    assert job["spec"]["entrypoint"] == f"python {mounts['script']}/{name}"
    assert mounts["scores"] in script
    compile(script, name, "exec")
    # Counts are text in `rayStartParams`, numbers elsewhere; workers stay within their bounds.
    assert all(isinstance(v, str) for v in cluster["headGroupSpec"]["rayStartParams"].values())
    (workers,) = cluster["workerGroupSpecs"]
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    (container,) = workers["template"]["spec"]["containers"]
    assert container["image"] == head["containers"][0]["image"] == "IMAGE"
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"


@pytest.mark.skipif(os.name != "posix", reason="bash")
@pytest.mark.parametrize("order", [(2, 4, 1, 3), (1, 2)], ids=["four", "two"])
def test_the_tasks_of_an_array_give_the_bytes_of_one_run(
    order: tuple[int, ...], tmp_path: Path
) -> None:
    command = tmp_path / "bin" / "dosimeter"
    command.parent.mkdir()
    command.write_text(f'#!/bin/bash\nexec "{sys.executable}" -m dosimeter "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IEXEC)
    out = tmp_path / "scores.csv"
    game = ["linear", "--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "4000"]
    for task in order:
        environment = os.environ | {
            "PATH": f"{command.parent}:{os.environ['PATH']}",
            "SLURM_ARRAY_TASK_ID": str(task),
            "SLURM_ARRAY_TASK_COUNT": str(len(order)),
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
