"""Experiments on a Ray cluster: ``engine="ray"``.

An experiment is a plan of chunks, each a pure function of (plan, index). The driver asks which
chunks are missing, sends each (or a few together) as a Ray task to whichever node is free, and
stores what comes back in the same folder as a local run would, so that the result is the same
to the byte, a driver that died is resumed by the same call, and the local engine can finish
what a cluster began. A node that is lost takes its tasks with it; Ray plays them elsewhere.

Nothing but the question and the chunk's text travels, so nodes need no shared disk. A file that the
question names (a RUN.toml, a data set) has to be on every node at the same path.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _asking
from ._types import Progress
from .claims import Account, account
from .errors import DosimeterError, InvalidInput
from .games import played
from .runs import Run

__all__ = ["Cluster", "accounts", "play"]


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """How an experiment uses a Ray cluster.

    ``num_cpus`` and ``num_gpus`` are what a task takes, fractions allowed: ``num_gpus=0.25``
    plays four tasks on a GPU. ``max_retries`` is how often a task is played again after its node
    or worker was lost (-1: always). ``chunks_per_task`` puts several chunks into a task, where a
    chunk takes less than about a second. ``in_flight`` is how many tasks wait or run at a time
    (0: four for each slot of the cluster). ``options`` go to ``ray.remote`` as they are, for
    example ``resources`` or ``runtime_env``.

    ``address`` is that of ``ray.init``; None starts Ray on this machine, unless it is running or
    RAY_ADDRESS names a cluster.

    >>> Cluster(num_cpus=1, num_gpus=0.5).num_gpus
    0.5
    """

    address: str | None = None
    num_cpus: float = 1.0
    num_gpus: float = 0.0
    max_retries: int = -1
    chunks_per_task: int = 1
    in_flight: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.chunks_per_task < 1:
            raise InvalidInput(f"chunks_per_task is {self.chunks_per_task}, not at least 1")


def chunks(question: Mapping[str, Any], indices: Sequence[int], of: int) -> list[bytes]:
    """Computes chunks of an experiment in a folder that is thrown away; runs on a node."""
    computed = []
    with _asking.scratch() as folder:
        out = folder / "scores.csv"
        for index in indices:
            # A shard of as many parts as there are chunks is one chunk.
            played({**question, "out": out, "threads": 1, "shard": f"{index + 1}/{of}"})
            computed.append(_chunk(out, index).read_bytes())
    return computed


def play(
    question: Mapping[str, Any],
    out: Path,
    cluster: Cluster,
    *,
    force: bool = False,
    progress: Progress = None,
) -> int:
    """Computes the missing chunks of a game on a cluster.

    ``question`` is that of the game without ``out``; the chunks land beside ``out``, and the same
    question, asked locally afterwards, merges them. Returns how many were computed.
    """
    import ray

    of, missing = _plan(question, out, force)
    if not missing:
        return 0
    remote, plain = _remote(ray, cluster, chunks), _asking.plain(question)
    batches = _batches(missing, cluster.chunks_per_task)
    waiting: dict[Any, list[int]] = {}
    done = of - len(missing)
    with _asking.listening(progress) as listener:
        if listener is not None:
            listener("planned", done, of)
        try:
            while True:
                room = (cluster.in_flight or _slots(ray, cluster) * 4) - len(waiting)
                for _, batch in zip(range(room), batches, strict=False):
                    waiting[remote.remote(plain, batch, of)] = batch
                if not waiting:
                    return len(missing)
                ready, _ = ray.wait(list(waiting), num_returns=1, timeout=1.0)
                for task in ready:
                    for index, content in zip(waiting.pop(task), _result(ray, task), strict=True):
                        _store(_chunk(out, index), content)
                        done += 1
                        if listener is not None:
                            listener("chunk", done, of)
        finally:
            # After an error or Ctrl-C: what is stored stays, what is under way is given up.
            for task in waiting:
                ray.cancel(task, force=True)


def accounts(
    runs: Sequence[Run],
    questions: Mapping[str, Any],
    cluster: Cluster,
    *,
    progress: Progress = None,
) -> list[Account]:
    """Accounts of many runs, in their order: a sweep. The engine of ``compare(engine="ray")``."""
    import ray

    remote = _remote(ray, cluster, _accounts)
    # A few batches for each slot: an account takes milliseconds, rarely seconds.
    size = max(cluster.chunks_per_task, -(-len(runs) // (4 * _slots(ray, cluster))))
    places = [range(start, min(start + size, len(runs))) for start in range(0, len(runs), size)]
    waiting = {
        remote.remote([runs[place] for place in batch], dict(questions)): batch
        for batch in places
    }
    found: dict[int, Account] = {}
    with _asking.listening(progress) as listener:
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            for task in ready:
                found.update(zip(waiting.pop(task), _result(ray, task), strict=True))
                if listener is not None:
                    listener("chunk", len(found), len(runs))
    return [found[place] for place in range(len(runs))]


def _accounts(runs: Sequence[Run], questions: Mapping[str, Any]) -> list[Account]:
    return [account(run, **questions) for run in runs]


def _remote(ray: Any, cluster: Cluster, function: Any) -> Any:
    """A function as a Ray task, on a Ray that is running."""
    if not ray.is_initialized():
        ray.init(address=cluster.address, log_to_driver=False)
    return ray.remote(
        num_cpus=cluster.num_cpus,
        num_gpus=cluster.num_gpus,
        max_retries=cluster.max_retries,
        **cluster.options,
    )(function)


def _result(ray: Any, task: Any) -> Any:
    try:
        found = ray.get(task)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        raise cause if isinstance(cause, DosimeterError) else error from None
    return found


def _slots(ray: Any, cluster: Cluster) -> int:
    """Tasks that the cluster can run at a time, at present."""
    there = ray.cluster_resources()
    limits = [
        there.get(name, 0.0) / taken
        for name, taken in (("CPU", cluster.num_cpus), ("GPU", cluster.num_gpus))
        if taken > 0
    ]
    return max(1, int(min(limits, default=1.0)))


def _batches(missing: Sequence[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(missing), size):
        yield list(missing[start : start + size])


def _plan(question: Mapping[str, Any], out: Path, force: bool) -> tuple[int, list[int]]:
    """How many chunks there are, and which are missing.

    A shard beyond all chunks computes none; running it writes the plan, and finds what is in the
    way. So the folder is checked, and made, by the code that always does.
    """
    nothing = 2**31
    work = {"out": out, "shard": f"{nothing}/{nothing}", "force": force}
    code, _ = played({**question, **work})
    if code == 0:
        return 0, []
    plan = json.loads((out.with_name(f"{out.name}.work") / "plan.json").read_text("utf-8"))
    trials, size = int(plan["trials"]), int(plan["chunk_trials"])
    of = -(-trials // size)
    return of, [i for i in range(of) if not _is_whole(_chunk(out, i), min((i + 1) * size, trials))]


def _is_whole(path: Path, last: int) -> bool:
    """Whether a chunk is there up to its last trial; one from before the experiment grew is not."""
    try:
        with path.open("rb") as file:
            return f"..{last} ".encode() in file.readline()
    except FileNotFoundError:
        return False


def _chunk(out: Path, index: int) -> Path:
    return out.with_name(f"{out.name}.work") / "chunks" / f"{index:08}.csv"


def _store(path: Path, content: bytes) -> None:
    """A file with a chunk's name is always whole: written aside, synced, renamed."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.ray")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
