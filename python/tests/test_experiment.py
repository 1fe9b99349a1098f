"""Trainings of a user's own as experiments: the same files, and nothing lost or done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import pytest

import dosimeter


def train(member: bool, seed: int, shift: float = 2.0) -> float:
    return float(numpy.random.default_rng(seed).normal(shift * member))


def two(member: bool, seed: int) -> list[float]:
    return [float(member), 2.0 * member]


RUN = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.5, steps=4)


def test_an_experiment_is_played_extended_and_audited(tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    game = dosimeter.experiment(train, run=RUN, settings={"shift": 3.0})
    played = game.run(trials=20, out=out)
    assert played.state == "complete" and played.plan == game.plan
    first = out.read_text()
    assert first.startswith("# design: runs\nscore,member,run,seed\n")
    # The same call finds nothing to do; more trials extend the same rows.
    stamp = out.stat().st_mtime_ns
    assert game.run(trials=20, out=out).scores == out and out.stat().st_mtime_ns == stamp
    game.run(trials=200, out=out)
    assert out.read_text().startswith(first)
    members, nonmembers = game.read()
    assert len(members) == len(nonmembers) == 200
    rows = [line.split(",") for line in out.read_text().splitlines()[2:]]
    assert len({row[3] for row in rows}) == len({row[2] for row in rows}) == 400
    score, member, _, seed = rows[7]
    assert float(score) == train(member == "1", int(seed), 3.0)
    answer = game.audit(delta=1e-5)
    assert answer.design == "runs" and answer.primary.epsilon_lower > 1.0
    assert answer.verdict is not None
    claim = json.loads((tmp_path / "scores.csv.run.json").read_text())
    assert dosimeter.Run.from_json(claim) == RUN
    told = dosimeter.status(out)
    assert told["kind"] == "experiment" and told["merged"] and told["chunks"]["all"] == 400


def test_shards_and_processes_give_the_same_bytes(tmp_path: Path) -> None:
    alone = tmp_path / "alone.csv"
    game = dosimeter.experiment(train, seed=5, chunk=3)
    game.run(trials=10, out=alone)
    together = tmp_path / "together.csv"
    assert game.run(trials=10, out=together, shard="2/2").state == "incomplete"
    assert dosimeter.status(together)["chunks"]["done"] == 3
    game.run(trials=10, out=together, shard="1/2")
    game.run(trials=10, out=together)
    assert together.read_bytes() == alone.read_bytes()


def test_several_scores_share_the_error(tmp_path: Path) -> None:
    game = dosimeter.experiment(two, scores=("last", "all"))
    game.run(trials=30, out=tmp_path / "scores.csv")
    header = (tmp_path / "scores.csv").read_text().splitlines()[1]
    assert header == "score,member,run,seed,score_all"
    assert (game.read("all")[0] == 2.0).all()
    answers = game.audit_all(delta=0.0)
    assert set(answers) == {"last", "all"}
    assert all(answer.primary.confidence == pytest.approx(0.975) for answer in answers.values())
    with pytest.raises(dosimeter.InvalidInput, match="no score `first`"):
        game.audit(score="first", delta=0.0)


def test_another_plan_is_another_experiment(tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    game = dosimeter.experiment(train)
    game.run(trials=2, out=out)
    other = dosimeter.experiment(train, settings={"shift": 1.0})
    assert other.plan != game.plan
    with pytest.raises(dosimeter.InvalidInput, match="another plan"):
        other.run(trials=2, out=out)
    other.run(trials=2, out=out, force=True)
    assert dosimeter.experiment(train, version="2").plan != game.plan
    assert dosimeter.experiment(train, seed=1).plan != game.plan


def test_a_failure_is_raised_and_what_is_done_stays(tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    broken = {"now": True}
    calls: Counter[int] = Counter()

    def sometimes(member: bool, seed: int) -> float:
        calls[seed] += 1
        if len(calls) == 5 and broken["now"]:
            raise ZeroDivisionError("the fifth training")
        return float(member)

    game = dosimeter.experiment(sometimes)
    with pytest.raises(ZeroDivisionError, match="the fifth"):
        game.run(trials=4, out=out)
    told = dosimeter.status(out)
    assert told["chunks"] == {"all": 8, "done": 4, "missing": 3, "failed": 1, "unusable": 0}
    broken["now"] = False
    game.run(trials=4, out=out)
    assert len(calls) == 8 and sorted(calls.values()) == [1] * 7 + [2]
    with pytest.raises(dosimeter.InvalidInput, match="NaN"):
        dosimeter.experiment(lambda member, seed: float("nan")).run(trials=1, out=tmp_path / "n")
    with pytest.raises(dosimeter.InvalidInput, match="2 scores"):
        dosimeter.experiment(two).run(trials=1, out=tmp_path / "t")
    with pytest.raises(dosimeter.InvalidInput, match="another process"):
        dosimeter.experiment(sometimes).run(trials=1, out=tmp_path / "p", workers=2)


DRIVER = """
import os, sys, time
sys.path.insert(0, {folder!r})
import slow, dosimeter
if __name__ == "__main__":
    game = dosimeter.experiment(slow.train, version="slow")
    game.run(trials=12, out={out!r}, workers=2)
"""
SLOW = """
import os, time
def train(member, seed):
    time.sleep(0.05)
    with open(os.path.join({folder!r}, "log"), "a") as log:
        log.write(f"{{os.getpid()}} {{seed}}\\n")
    return seed / 2**32 + member
"""


def test_driver_and_workers_are_killed_five_times(tmp_path: Path) -> None:
    """The scores are those of an undisturbed experiment, and every training is in them once."""
    (tmp_path / "slow.py").write_text(SLOW.format(folder=str(tmp_path)))
    out = tmp_path / "scores.csv"
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER.format(folder=str(tmp_path), out=str(out)))

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, str(driver)])

    def trainings() -> list[str]:
        log = tmp_path / "log"
        return log.read_text().splitlines() if log.exists() else []

    for attempt in range(5):
        process = start()
        seen, give_up = len(trainings()), time.monotonic() + 120
        while len(trainings()) < seen + 2 and process.poll() is None:
            assert time.monotonic() < give_up
            time.sleep(0.01)
        # A worker dies, then the driver.
        workers = {int(line.split()[0]) for line in trainings()[seen:]}
        for worker in list(workers)[:1]:
            if attempt % 2 == 0 and process.poll() is None:
                try:
                    os.kill(worker, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        time.sleep(0.1)
        process.kill()
        process.wait()
    assert start().wait(timeout=300) == 0
    undisturbed = [
        f"{dosimeter._core.training_seed(0, index) / 2**32 + (index % 2 == 0)!r},"
        f"{int(index % 2 == 0)},{index},{dosimeter._core.training_seed(0, index)}"
        for index in range(24)
    ]
    assert out.read_text().splitlines()[2:] == undisturbed
    # No worker outlives a driver that was killed.
    workers = {int(line.split()[0]) for line in trainings()}
    give_up = time.monotonic() + 60
    while any(map(_is_alive, workers)):
        assert time.monotonic() < give_up, workers
        time.sleep(0.1)


def _is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "fragile.py").write_text(
        "import os\n"
        "def train(member, seed):\n"
        f"    mark = os.path.join({str(tmp_path)!r}, str(seed))\n"
        "    if seed % 3 == 0 and not os.path.exists(mark):\n"
        "        open(mark, 'w').close()\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return float(member)\n"
    )
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import fragile, dosimeter\n"
        "if __name__ == '__main__':\n"
        "    game = dosimeter.experiment(fragile.train)\n"
        f"    print(game.run(trials=5, out={str(tmp_path / 'scores.csv')!r}, workers=2).state)\n"
    )
    driver = tmp_path / "driver.py"
    driver.write_text(script)
    done = subprocess.run([sys.executable, str(driver)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == "complete", done.stderr


SCRIPT = """#!/bin/sh
echo "a line of the training"
echo "$2 $4" >> {log}
echo "{{\\"scores\\": [$2.5, $4]}}"
"""


def test_any_program_is_a_training(tmp_path: Path, program: Any) -> None:
    log, out = tmp_path / "log", tmp_path / "scores.csv"
    script = tmp_path / "train.sh"
    script.write_text(SCRIPT.format(log=log))
    script.chmod(0o755)
    words = ["--", str(script), "--member", "{member}", "--seed", "{seed}"]
    flags = ["attack", "command", "--scores", "2", "--out", str(out)]
    claim = ["--noise-multiplier", "1", "--sample-rate", "0.5", "--steps", "4"]
    program(*flags, *claim, "--trials", "4", "--shard", "1/2", *words, code=4)
    assert len(log.read_text().splitlines()) == 4
    program(*flags, *claim, "--trials", "4", *words)
    # Extended, and no training done twice.
    program(*flags, *claim, "--trials", "6", "--threads", "2", *words)
    told = log.read_text().split()[1::2]
    assert len(told) == len(set(told)) == 12
    lines = out.read_text().splitlines()
    assert lines[:2] == ["# design: runs", "score,member,run,seed,score_2"]
    for index, line in enumerate(lines[2:]):
        score, member, run, seed, second = line.split(",")
        assert (float(score), member, run) == (int(member) + 0.5, str((index + 1) % 2), str(index))
        assert float(second) == int(seed) == dosimeter._core.training_seed(0, index)
    document = program.json("status", str(out))
    assert document["kind"] == "attack command" and document["merged"]
    claimed = dosimeter.Run.from_file(tmp_path / "scores.csv.run.json")
    assert claimed == RUN
    for bad, message in (
        (["--", "true", "{member}"], "{seed}"),
        (["--", "true", "{member}", "{seed}"], "not JSON"),
        (["--", "false", "{member}", "{seed}"], "ended with"),
    ):
        fresh = ["attack", "command", "--trials", "1", "--out", str(tmp_path / "bad.csv"), "--force"]
        failed = subprocess.run(
            [*program.start, *fresh, *bad], capture_output=True, text=True, check=False
        )
        assert failed.returncode != 0 and message in failed.stderr, failed.stderr


def test_trainings_are_added_until_the_claim_is_decided(tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    loud = dosimeter.experiment(train, run=RUN, settings={"shift": 5.0}, chunk=10)
    answer = loud.until_decided(trials=2000, out=out, delta=1e-5, claim_epsilon=1.0)
    assert answer.decision == "refuted" and answer.epsilon_lower > 1.0
    assert 20 < answer.trials < 2000
    # The scores are those of an experiment of that size, and the same call plays no more.
    rows = out.read_text()
    whole = dosimeter.experiment(train, run=RUN, settings={"shift": 5.0}, chunk=10)
    whole.run(trials=answer.trials // 2, out=tmp_path / "whole.csv")
    assert rows == (tmp_path / "whole.csv").read_text()
    assert loud.until_decided(trials=2000, out=out, delta=1e-5, claim_epsilon=1.0) == answer
    silent = dosimeter.experiment(train, run=RUN, settings={"shift": 0.0}, chunk=10)
    answer = silent.until_decided(trials=100, out=tmp_path / "silent.csv", delta=1e-5)
    assert answer.decision in ("out-of-reach", "budget-spent") and answer.refuted_at is None
    with pytest.raises(dosimeter.InvalidInput, match="nothing to decide"):
        dosimeter.experiment(train).until_decided(trials=9, out=out, delta=1e-5)
    with pytest.raises(dosimeter.InvalidInput, match="shard"):
        silent.until_decided(trials=9, out=out, delta=1e-5, shard="1/2")
