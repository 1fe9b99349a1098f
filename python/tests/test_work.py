"""Long work: the interpreter stays free, Ctrl-C is heard, progress is told, work resumes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import dosimeter
from conftest import Program
from dosimeter._toml import to_toml

LONG = {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 2000}


def test_the_interpreter_is_free_meanwhile(tmp_path: Path) -> None:
    done = threading.Event()

    def play() -> None:
        dosimeter.attack("linear", run=LONG, trials=60_000, out=tmp_path / "s.csv", threads=1)
        done.set()

    thread = threading.Thread(target=play)
    thread.start()
    turns = 0
    while not done.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    # One turn would mean that this thread waited for the whole game.
    assert turns > 20


def test_progress_is_told_and_can_stop_the_work(tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    told: list[tuple[int, int]] = []

    class Enough(Exception):
        pass

    def stop_early(done: int, of: int) -> None:
        told.append((done, of))
        if done == 2:
            raise Enough

    with pytest.raises(Enough):
        dosimeter.attack("linear", run=LONG, trials=60_000, out=out, threads=1, progress=stop_early)
    assert not out.exists() and told[0][0] == 0 and told[-1][0] < told[-1][1]
    before = dosimeter.status(out)["chunks"]["done"]
    assert before >= 2
    resumed: list[tuple[int, int]] = []
    game = dosimeter.attack(
        "linear", run=LONG, trials=60_000, out=out, threads=1,
        progress=lambda done, of: resumed.append((done, of)),
    )
    assert game.state == "complete" and resumed[0][0] == before
    whole = tmp_path / "whole.csv"
    dosimeter.attack("linear", run=LONG, trials=60_000, out=whole, threads=2)
    assert whole.read_bytes() == out.read_bytes()


def test_a_bar_is_drawn_where_tqdm_is_installed(
    run: dosimeter.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tqdm")
    dosimeter.attack("linear", run=run, trials=100, out=tmp_path / "s.csv", progress=True)
    assert "100%" in capsys.readouterr().err
    dosimeter.compare([run, run], delta=1e-5, lens="composition", progress=True)
    assert "2/2" in capsys.readouterr().err


def test_a_shard_alone_is_incomplete_and_two_are_whole(tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    first = dosimeter.attack("linear", run=LONG, trials=60_000, out=out, shard="1/2")
    assert first.state == "incomplete" and first.scores is None
    with pytest.raises(dosimeter.Incomplete):
        first.read()
    second = dosimeter.attack("linear", run=LONG, trials=60_000, out=out, shard="2/2")
    assert second.state == "complete" and second.scores == out


def test_another_plan_in_the_way_is_an_error(tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    dosimeter.attack("linear", run=LONG, trials=100, out=out)
    with pytest.raises(dosimeter.InvalidInput, match="force"):
        dosimeter.attack("linear", run=LONG, trials=100, seed=1, out=out)
    dosimeter.attack("linear", run=LONG, trials=100, seed=1, out=out, force=True)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_stops_a_game_that_can_be_resumed(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import signal, sys, dosimeter
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run = {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 2000}
        try:
            dosimeter.attack("linear", run=run, trials=100_000_000, out=sys.argv[1],
                             threads=1, progress=lambda done, of: print(done, flush=True))
        except KeyboardInterrupt:
            print("heard", flush=True)
            # The next call is not stopped by the last one's Ctrl-C.
            dosimeter.attack("linear", run=run, trials=10, out=sys.argv[1] + ".second")
            print("and went on", flush=True)
        """
    )
    out = tmp_path / "scores.csv"
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(out)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    while int(child.stdout.readline()) < 3:
        pass
    started = time.monotonic()
    child.send_signal(signal.SIGINT)
    rest, _ = child.communicate(timeout=60)
    assert time.monotonic() - started < 20
    assert "heard" in rest and "and went on" in rest and child.returncode == 0
    assert dosimeter.status(out)["chunks"]["done"] >= 3


TRAINING = {
    "run": {"noise_multiplier": 1.0, "batch_size": 64, "steps": 400, "seed": 1},
    "data": {"name": "adult"},
    "model": {"kind": "softmax"},
    "optimizer": {"kind": "sgd", "learning_rate": 0.1},
}


@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
def test_a_training_tells_progress_and_resumes(tmp_path: Path, program: Program) -> None:
    class Enough(Exception):
        pass

    told: list[tuple[int, int]] = []

    def stop(done: int, of: int) -> None:
        told.append((done, of))
        if done >= 20:
            raise Enough

    out = tmp_path / "model"
    with pytest.raises(Enough):
        dosimeter.train(TRAINING, out=out, device="cpu", progress=stop)
    assert told[0] == (0, 400) and told[-1][0] < 400
    done = dosimeter.train(TRAINING, out=out, device="cpu")
    assert done.run.steps == 400 and done.run.dataset_size is not None
    assert done.account(delta=1e-6)[0].upper == dosimeter.account(
        out / "ledger.json", delta=1e-6
    )[0].upper
    assert dosimeter.Training.from_json(done.to_json()) == done and "Training" in repr(done)
    # The command line, at once, gives the same weights.
    config = tmp_path / "run.toml"
    config.write_text(to_toml(TRAINING))
    program("train", str(config), "--out", str(tmp_path / "theirs"), "--device", "cpu")
    theirs = (tmp_path / "theirs" / "model.safetensors").read_bytes()
    assert done.model.read_bytes() == theirs


# A hundred thousand points, or ten thousand deltas under every lens, take minutes.
COMPUTATIONS = [
    "dosimeter.tradeoff(run, points=100_000)",
    "dosimeter.account(run, delta=[1e-5 / (1 + i) for i in range(10_000)])",
]


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("computation", COMPUTATIONS)
def test_ctrl_c_stops_a_computation(computation: str) -> None:
    script = textwrap.dedent(
        f"""
        import signal, dosimeter
        # A suite that runs in the background hands an ignored Ctrl-C down.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
        print("begun", flush=True)
        try:
            {computation}
        except KeyboardInterrupt:
            print("heard", flush=True)
        # And the next one is not disturbed.
        assert dosimeter.account(run, delta=1e-5)[0].upper < 1.83
        """
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.5)
    started = time.monotonic()
    child.send_signal(signal.SIGINT)
    rest, _ = child.communicate(timeout=60)
    assert rest == "heard\n" and time.monotonic() - started < 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_child_can_ask_too() -> None:
    run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    expected = dosimeter.account(run, delta=1e-5, lens="composition")[0].value
    script = textwrap.dedent(
        """
        import os, warnings, dosimeter
        warnings.simplefilter("ignore")
        run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
        dosimeter.account(run, delta=1e-5, lens="composition")
        child = os.fork()
        value = dosimeter.account(run, delta=1e-5, lens="composition")[0].value
        os.write(1, (repr(value) + chr(10)).encode())
        if child:
            os.waitpid(child, 0)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == [repr(expected)] * 2


def test_the_interpreter_is_free_while_an_account_is_made(run: dosimeter.Run) -> None:
    done = threading.Event()

    def ask() -> None:
        dosimeter.account(run, delta=[1e-5 / (1 + i) for i in range(200)], lens="composition")
        done.set()

    thread = threading.Thread(target=ask)
    thread.start()
    turns = 0
    while not done.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    assert turns > 20


def test_many_threads_get_the_same_answer(run: dosimeter.Run) -> None:
    answers: list[dosimeter.Account] = []

    def ask() -> None:
        for _ in range(20):
            answers.append(dosimeter.account(run, delta=1e-5, lens="composition"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 160 and all(answer == answers[0] for answer in answers)
