"""Ray: the same bytes as a local run, on several nodes, with one of them lost; parts of GPUs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")

import dosimeter  # noqa: E402
from conftest import REPOSITORY  # noqa: E402
from dosimeter.ray import Cluster  # noqa: E402

pytestmark = pytest.mark.bridge

GAME: dict[str, Any] = {
    "run": {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 4000},
    "trials": 150_000,
    "seed": 11,
}


@pytest.fixture
def two_nodes() -> Any:
    from ray.cluster_utils import Cluster as Nodes

    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1})
    second = nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    nodes.wait_for_nodes()
    yield nodes, second
    ray.shutdown()
    nodes.shutdown()


def test_a_lost_node_changes_no_byte(two_nodes: Any, tmp_path: Path) -> None:
    nodes, second = two_nodes
    local = tmp_path / "local.csv"
    dosimeter.attack("linear", out=local, **GAME)
    out = tmp_path / "cluster.csv"
    told: list[tuple[int, int]] = []
    lost = threading.Event()

    def lose(done: int, of: int) -> None:
        told.append((done, of))
        if done >= 3 and not lost.is_set():
            lost.set()
            # While its next task is running.
            nodes.remove_node(second, allow_graceful=False)

    game = dosimeter.attack("linear", out=out, engine="ray", progress=lose, **GAME)
    assert lost.is_set() and game.state == "complete"
    assert told[0][0] == 0 and told[-1] == (told[-1][1], told[-1][1]) and told[-1][1] > 6
    assert out.read_bytes() == local.read_bytes()
    # The same call again finds everything there; more trials extend it.
    told.clear()
    again = dosimeter.attack("linear", out=out, engine="ray", progress=lose, **GAME)
    assert again == game and told == []
    longer = GAME | {"trials": 200_000}
    dosimeter.attack("linear", out=out, engine="ray", cluster=Cluster(chunks_per_task=3), **longer)
    dosimeter.attack("linear", out=local, **longer)
    assert out.read_bytes() == local.read_bytes()


def test_a_sweep_is_the_same_everywhere() -> None:
    ray.init(num_cpus=2, log_to_driver=False)
    try:
        runs = {
            f"{noise} {steps}": {"noise_multiplier": noise, "sample_rate": 0.01, "steps": steps}
            for noise in (0.8, 1.0, 2.0)
            for steps in (200, 1000, 5000)
        }
        questions: dict[str, Any] = {"delta": 1e-5, "lens": ["composition", "last-iterate"]}
        told: list[tuple[int, int]] = []
        swept = dosimeter.compare(
            runs, engine="ray", progress=lambda done, of: told.append((done, of)), **questions
        )
        assert swept == dosimeter.compare(runs, **questions)
        assert list(swept.runs) == list(runs) and told[-1] == (9, 9)
        with pytest.raises(dosimeter.InvalidInput, match="moments"):
            dosimeter.compare(runs, engine="ray", lens="moments")  # type: ignore[arg-type]
    finally:
        ray.shutdown()


def test_an_interrupted_cluster_run_is_resumed_locally(tmp_path: Path) -> None:
    ray.init(num_cpus=1, log_to_driver=False)
    try:
        out = tmp_path / "scores.csv"

        class Enough(Exception):
            pass

        def stop(done: int, of: int) -> None:
            if done == 2:
                raise Enough

        with pytest.raises(Enough):
            dosimeter.attack("linear", out=out, engine="ray", progress=stop, **GAME)
        assert dosimeter.status(out)["chunks"]["done"] >= 2 and not out.exists()
        with pytest.raises(dosimeter.InvalidInput, match="force"):
            dosimeter.attack("zeroing", out=out, engine="ray", **GAME)
        with pytest.raises(dosimeter.InvalidInput, match="cluster"):
            dosimeter.attack("linear", out=out, engine="ray", shard="1/2", **GAME)
        finished = dosimeter.attack("linear", out=out, **GAME)
        assert finished.state == "complete"
    finally:
        ray.shutdown()


def test_the_script_of_the_kuberay_manifest_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    yaml = pytest.importorskip("yaml")
    text = (REPOSITORY / "docs" / "cluster" / "kuberay.yaml").read_text(encoding="utf-8")
    script = next(yaml.safe_load_all(text))["data"]["audit.py"]
    monkeypatch.setenv("TRIALS", "100_000")
    monkeypatch.setenv("SCORES", str(tmp_path))
    ray.init(num_cpus=2, log_to_driver=False)
    try:
        exec(compile(script, "audit.py", "exec"), {"__name__": "__main__"})
    finally:
        ray.shutdown()
    told = capsys.readouterr().out
    assert "chunks" in told and "status='consistent'" in told
    run = {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 1000}
    dosimeter.attack("linear", run=run, trials=100_000, out=tmp_path / "local.csv")
    assert (tmp_path / "scores.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()


def test_a_training_of_ones_own_is_played_on_a_cluster(tmp_path: Path) -> None:
    import random

    shift = 2.0

    # A closure: Ray sends what a process could not import.
    def train(member: bool, seed: int) -> float:
        return random.Random(seed).gauss(shift * member, 1.0)

    game = dosimeter.experiment(train, version="1")
    game.run(trials=6, out=tmp_path / "local.csv")
    ray.init(num_cpus=2, log_to_driver=False)
    try:
        played = game.run(
            trials=6, out=tmp_path / "cluster.csv", engine="ray", cluster=Cluster(num_cpus=0.5)
        )
    finally:
        ray.shutdown()
    assert played.state == "complete"
    assert (tmp_path / "cluster.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()

    def broken(member: bool, seed: int) -> float:
        raise ZeroDivisionError("no such training")

    ray.init(num_cpus=1, log_to_driver=False)
    try:
        with pytest.raises(Exception, match="no such training"):
            dosimeter.experiment(broken).run(trials=1, out=tmp_path / "b.csv", engine="ray")
    finally:
        ray.shutdown()


SLOW = """
import os, random, time
import ray

def train(member, seed, log):
    start = time.time()
    gpus = ray.get_gpu_ids()
    time.sleep(1.5)
    with open(log, "a") as lines:
        lines.write(f"{os.getpid()} {gpus} {start} {time.time()} {seed}\\n")
    return random.Random(seed).gauss(2.0 * member, 1.0)
"""
DRIVER = """
import sys
sys.path.insert(0, {folder!r})
import slow, dosimeter
from dosimeter.ray import Cluster
game = dosimeter.experiment(slow.train, settings={{"log": {log!r}}}, version="slow")
# Ray ends a worker after each task on a GPU, unless it is told how many it may serve.
cluster = Cluster(address={address!r}, num_cpus=0.25, num_gpus=0.25, options={{"max_calls": 0}})
game.run(trials=20, out={out!r}, engine="ray", cluster=cluster)
"""


def test_parts_of_gpus_lost_nodes_and_killed_drivers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four trainings per GPU (which Ray only counts here). A node is lost and replaced, a worker and
    the driver are killed, five times in all: the scores are those of an undisturbed experiment."""
    from ray.cluster_utils import Cluster as Nodes

    (tmp_path / "slow.py").write_text(SLOW)
    log, out = tmp_path / "log", tmp_path / "scores.csv"
    # Nodes hand it on to their workers.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0})
    second = nodes.add_node(num_cpus=1, num_gpus=1)
    text = DRIVER.format(
        folder=str(tmp_path), log=str(log), address=nodes.address, out=str(out)
    )
    (tmp_path / "driver.py").write_text(text)

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, str(tmp_path / "driver.py")])

    def lines() -> list[str]:
        return log.read_text().splitlines() if log.exists() else []

    def more(process: subprocess.Popen[bytes], count: int) -> None:
        seen, give_up = len(lines()), time.monotonic() + 300
        while len(lines()) < seen + count and process.poll() is None:
            assert time.monotonic() < give_up
            time.sleep(0.05)

    try:
        process = start()
        for loss in ("driver", "worker", "driver", "node", "driver"):
            more(process, 4)
            assert process.poll() is None, "the experiment ended before it was disturbed"
            if loss == "worker":
                os.kill(int(lines()[-1].split()[0]), signal.SIGKILL)
            elif loss == "node":
                nodes.remove_node(second, allow_graceful=False)
                second = nodes.add_node(num_cpus=1, num_gpus=1)
            else:
                process.kill()
                process.wait()
                process = start()
        assert process.wait(timeout=300) == 0
    finally:
        nodes.shutdown()
    expected = [
        (dosimeter._core.training_seed(0, index), index % 2 == 0) for index in range(40)
    ]
    rows = [line.split(",") for line in out.read_text().splitlines()[2:]]
    assert [(int(row[3]), row[1] == "1") for row in rows] == expected
    import random

    for row, (seed, member) in zip(rows, expected, strict=True):
        assert float(row[0]) == random.Random(seed).gauss(2.0 * member, 1.0)
    # Each training was given one GPU, and up to four were on it at a time, never more.
    told = [line.split() for line in lines()]
    assert all(fields[1] == "[0]" for fields in told)
    spans = [(float(fields[2]), float(fields[3])) for fields in told]
    at_once = max(sum(a <= b0 < b for a, b in spans) for b0, _ in spans)
    assert 2 <= at_once <= 4, at_once
