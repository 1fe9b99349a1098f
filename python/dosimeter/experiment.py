"""Any training as a resumable experiment: many trainings with and without a canary, and their
scores, stored in the same files as Dosimeter's own games.

A training is a callable ``train(member, seed, **settings)`` that trains once, with the canary if
``member``, and gives a score, larger when the canary looks like it was there. It must be a
function of its arguments: the same seed, the same score.

::

    def train(member, seed, noise_multiplier=1.0):
        ...
        return score

    game = dosimeter.experiment(train, run=run, settings={"noise_multiplier": 1.0})
    print(game.plan)                                  # the hash of what will be done
    game.run(trials=500, out="scores.csv", workers=4)  # the same line again resumes or extends
    print(game.audit(delta=1e-5))
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from . import _asking, _core
from ._types import Document, Engine, Progress
from ._values import whole
from .auditing import Audit, audit
from .errors import DosimeterError, Incomplete, InvalidInput
from .games import Attack, status
from .runs import RunLike, as_run
from .sequential import SequentialAudit, sequential

if TYPE_CHECKING:
    from .ray import Cluster

__all__ = ["Experiment", "Train", "experiment"]

#: ``train(member, seed, **settings)``: one score, or as many as the experiment names.
Train = Callable[..., Union[float, Sequence[float]]]

#: A training is given up when its worker died so often.
ATTEMPTS = 5
#: Trials before the first look of :meth:`Experiment.until_decided`.
FIRST = 64


def experiment(
    train: Train,
    *,
    run: RunLike | None = None,
    settings: Mapping[str, Any] | None = None,
    scores: Sequence[str] = ("score",),
    seed: int = 0,
    version: str | None = None,
    chunk: int = 1,
) -> Experiment:
    """Plans an experiment; nothing is trained yet.

    ``run`` is the claim that the scores are audited against. ``settings`` are further keywords of
    ``train``, plain data. ``scores`` names what a training gives back, where it is more than one
    number; the first is audited unless another is asked for. ``version`` names the code where its
    source cannot be read, and anything else that the scores depend on. ``chunk`` trainings are
    stored together: more than one where a training takes less than a second.

    The plan's hash covers the function's name and source, the settings, the claim, the names of
    the scores and the seed. What the function calls is not covered: say it in ``version``.

    >>> import dosimeter, random
    >>> def train(member, seed):
    ...     return random.Random(seed).gauss(2.0 * member, 1.0)
    >>> game = dosimeter.experiment(train, version="1")
    >>> len(game.plan)
    64
    """
    return Experiment(
        train, run=run, settings=settings, scores=scores, seed=seed, version=version, chunk=chunk
    )


class Experiment:
    """A planned experiment; see :func:`experiment`."""

    def __init__(
        self,
        train: Train,
        *,
        run: RunLike | None,
        settings: Mapping[str, Any] | None,
        scores: Sequence[str],
        seed: int,
        version: str | None,
        chunk: int,
    ) -> None:
        if not callable(train):
            raise InvalidInput(f"`{train!r}` cannot be called as train(member, seed)")
        names = (scores,) if isinstance(scores, str) else tuple(scores)
        if not names or len(set(names)) != len(names) or not all(map(_is_name, names)):
            raise InvalidInput(f"the scores {names} are not different names of letters and digits")
        if chunk < 1:
            raise InvalidInput(f"chunk is {chunk}; give at least 1 training")
        self.train, self.scores, self.seed, self.chunk = train, names, whole("seed", seed), whole("chunk", chunk)
        self.settings = dict(settings or {})
        self.claim = None if run is None else as_run(run)
        self._parameters = {
            "design": "runs",
            "train": f"{getattr(train, '__module__', '')}.{_name(train)}",
            "source": _source(train),
            "version": version,
            "settings": _plain(self.settings),
            "scores": list(names),
            "run": None if self.claim is None else self.claim.to_dict(),
        }
        self._played: Attack | None = None

    def _planned(self, trainings: int) -> str:
        extra = "".join(f",score_{name}" for name in self.scores[1:])
        return json.dumps(
            {
                "kind": "experiment",
                "parameters": self._parameters,
                "seed": self.seed,
                "header": f"# design: runs\nscore,member,run,seed{extra}",
                "chunk_trials": self.chunk,
                "trials": trainings,
            }
        )

    @property
    def plan(self) -> str:
        """The hash of what is done; it does not depend on how many trials there are."""
        return _core.plan_name(self._planned(0))

    def run(
        self,
        *,
        trials: float,
        out: str | os.PathLike[str],
        engine: Engine = "local",
        workers: int = 1,
        cluster: Cluster | None = None,
        shard: str | None = None,
        force: bool = False,
        progress: Progress = None,
    ) -> Attack:
        """Trains ``trials`` times with the canary and as often without, and writes the scores.

        The same call again resumes; with more trials it extends. Every finished training is on the
        disk at once: after ``kill -9`` of this process or of a worker only trainings that were
        under way are repeated, and the scores are the same. ``shard="2/8"`` plays a part, for job
        arrays with a common folder.

        ``workers`` is the number of local processes; 1 trains in this one. More than one need a
        function that a new process can import, and a script that begins its work under
        ``if __name__ == "__main__":``. ``engine="ray"`` plays on a cluster
        (:class:`dosimeter.ray.Cluster` says how; four models per GPU are ``num_gpus=0.25``).

        Raises :class:`~dosimeter.Incomplete` when trainings are missing and no ``shard`` was
        asked for, and what a training raises.
        """
        count = whole("trials", trials)
        if not 0 < count < 2**31:
            raise InvalidInput(f"{trials} trials are not between 1 and 2^31 - 1")
        path = Path(out)
        if engine == "ray":
            play, threads = _on_ray(self, cluster)
        elif engine == "local":
            play, threads = _locally(self, workers)
        else:
            raise InvalidInput(f"there is no engine `{engine}`; choose local or ray")
        with play, _asking.listening(progress) as listener:
            state, _, missing = _core.experiment(
                self._planned(2 * count),
                path,
                shard or "1/1",
                threads,
                force,
                lambda first, last: self._rows(play, first, last),
                listener,
            )
        if state == "complete" and self.claim is not None:
            beside = path.with_name(f"{path.name}.run.json")
            beside.write_text(self.claim.to_json() + "\n", encoding="utf-8")
        if state == "interrupted":
            raise KeyboardInterrupt
        if state == "incomplete" and shard is None:
            raise Incomplete(f"{missing} chunks are missing; call again to resume", code=4)
        self._played = Attack(
            game="experiment",
            parameters=self._parameters,
            seed=self.seed,
            trials=count,
            plan=self.plan,
            state="complete" if state == "complete" else "incomplete",
            scores=path if state == "complete" else None,
            exact=(),
            warnings=(),
        )
        return self._played

    def until_decided(
        self,
        *,
        trials: float,
        out: str | os.PathLike[str],
        delta: float,
        confidence: float = 0.95,
        claim_epsilon: float | None = None,
        **options: Any,
    ) -> SequentialAudit:
        """Trains until the claim is refuted, or the trainings that are left of ``trials`` can hardly
        refute it, or all are made. The bound holds whenever it stops; ``decision`` says why.

        The claim is the experiment's ``run``, or ``claim_epsilon`` at ``delta``. ``options`` are
        those of :meth:`run`, but for ``shard``.
        """
        budget = whole("trials", trials)
        if self.claim is None and claim_epsilon is None:
            raise InvalidInput("there is nothing to decide: give the experiment a run, or claim_epsilon")
        if "shard" in options:
            raise InvalidInput("a part of an experiment decides nothing; leave `shard` out")
        # What an earlier call left is a beginning.
        there = 0 if options.get("force") else _planned_trials(Path(out))
        count = min(max(FIRST, there), budget)
        while True:
            self.run(trials=count, out=out, **options)
            options["force"] = False
            answer = sequential(
                self._scores(),
                delta=delta,
                confidence=confidence,
                claim=self.claim if claim_epsilon is None else None,
                claim_epsilon=claim_epsilon,
                budget=2 * budget,
            )
            if answer.decision != "open":
                return answer
            count = min(count + count // 2, budget)

    def _rows(self, play: _Player, first: int, last: int) -> str:
        lines = []
        for index in range(first, last):
            # Members and others take turns, so that an interrupted experiment has both.
            member, seed = index % 2 == 0, _core.training_seed(self.seed, index)
            numbers = _numbers(play.train(member, seed), len(self.scores), index)
            fields = [repr(numbers[0]), str(int(member)), str(index), str(seed)]
            lines.append(",".join([*fields, *map(repr, numbers[1:])]) + "\n")
        return "".join(lines)

    def status(self, out: str | os.PathLike[str]) -> Document:
        """Trainings done, missing, failed (``dosimeter.status/1``)."""
        return status(out)

    def read(self, score: str | None = None) -> tuple[Any, Any]:
        """The scores of the trainings with and without the canary, as arrays."""
        import numpy

        path = self._scores()
        column = self._column(score)
        with path.open(encoding="utf-8") as lines:
            header = next(line for line in lines if not line.startswith("#")).strip().split(",")
            used = (header.index(column), header.index("member"))
            table = numpy.loadtxt(lines, delimiter=",", usecols=used, ndmin=2)
        member = table[:, 1] == 1
        return table[member, 0], table[~member, 0]

    def audit(self, *, score: str | None = None, **options: Any) -> Audit:
        """Audits the scores against the claim; the keywords of :func:`dosimeter.audit`.

        Of several scores this is the first, unless ``score`` names another: name it before you
        look, or use :meth:`audit_all`.
        """
        options = {"design": "runs", "claim": self.claim} | options
        if self._column(score) == "score":
            return audit(self._scores(), **options)
        members, nonmembers = self.read(score)
        return audit(members=members, nonmembers=nonmembers, **options)

    def audit_all(self, *, confidence: float = 0.95, **options: Any) -> dict[str, Audit]:
        """Audits every score, all of them right together with this confidence: each one gets its
        share of the error."""
        each = 1.0 - (1.0 - confidence) / len(self.scores)
        return {name: self.audit(score=name, confidence=each, **options) for name in self.scores}

    def _scores(self) -> Path:
        if self._played is None or self._played.scores is None:
            raise Incomplete("there are no scores yet; call run first")
        return self._played.scores

    def _column(self, score: str | None) -> str:
        if score is None or score == self.scores[0]:
            return "score"
        if score not in self.scores:
            raise InvalidInput(f"there is no score `{score}`; there are {', '.join(self.scores)}")
        return f"score_{score}"

    def __repr__(self) -> str:
        return f"<Experiment {self._parameters['train']}, plan {self.plan[:12]}>"


class _Player:
    """Where trainings happen; leaves nothing behind."""

    def __init__(self, planned: Experiment) -> None:
        self.planned = planned

    def train(self, member: bool, seed: int) -> Any:
        return self.planned.train(member, seed, **self.planned.settings)

    def __enter__(self) -> _Player:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class _Processes(_Player):
    """Local processes; one that dies is replaced, and its training begins anew."""

    def __init__(self, planned: Experiment, workers: int) -> None:
        super().__init__(planned)
        self.workers = workers
        self.lock = threading.Lock()
        self.pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        # Not a fork: threads of PyTorch and JAX do not survive it.
        return ProcessPoolExecutor(
            self.workers, mp_context=get_context("spawn"), initializer=_end_with_parent
        )

    def train(self, member: bool, seed: int) -> Any:
        for _ in range(ATTEMPTS):
            pool = self.pool
            try:
                future = pool.submit(_call, self.planned.train, member, seed, self.planned.settings)
                return future.result()
            except (BrokenProcessPool, RuntimeError) as error:
                if not isinstance(error, BrokenProcessPool) and "shutdown" not in str(error):
                    raise
                with self.lock:
                    if self.pool is pool:
                        pool.shutdown(wait=False)
                        self.pool = self._new()
        raise DosimeterError(
            f"the training with seed {seed} was given up: its process died {ATTEMPTS} times; is "
            "there enough memory, and does the script begin under `if __name__ == '__main__':`?"
        )

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


class _Remote(_Player):
    """Tasks of a Ray cluster."""

    def __init__(self, planned: Experiment, cluster: Any, ray: Any, remote: Any) -> None:
        super().__init__(planned)
        self.ray, self.remote, self.cluster = ray, remote, cluster
        self.train_there = ray.put(planned.train)

    def train(self, member: bool, seed: int) -> Any:
        from .ray import _result

        task = self.remote.remote(self.train_there, member, seed, self.planned.settings)
        return _result(self.ray, task)


def _end_with_parent() -> None:
    """Ends this worker when the process that started it was killed; else it would wait for ever,
    with the memory of its GPU."""

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _call(train: Train, member: bool, seed: int, settings: Mapping[str, Any]) -> Any:
    return train(member, seed, **settings)


def _locally(planned: Experiment, workers: int) -> tuple[_Player, int]:
    if workers < 1:
        raise InvalidInput(f"workers is {workers}; give at least 1")
    if workers == 1:
        return _Player(planned), 1
    import pickle

    try:
        pickle.dumps((planned.train, planned.settings))
    except Exception as error:
        raise InvalidInput(
            f"{planned._parameters['train']} cannot be sent to another process ({error}); define it "
            "at the top of a module, or use workers=1 or engine='ray'"
        ) from None
    return _Processes(planned, workers), workers


def _on_ray(planned: Experiment, cluster: Cluster | None) -> tuple[_Player, int]:
    import ray

    from .ray import Cluster, _remote, _slots

    chosen = cluster or Cluster()
    remote = _remote(ray, chosen, _call)
    return _Remote(planned, chosen, ray, remote), chosen.in_flight or 2 * _slots(ray, chosen)


def _planned_trials(out: Path) -> int:
    """Trials of an experiment that was begun before; 0 where there is none."""
    try:
        plan = json.loads((out.with_name(f"{out.name}.work") / "plan.json").read_text("utf-8"))
    except FileNotFoundError:
        return 0
    return int(plan["trials"]) // 2


def _numbers(given: Any, count: int, index: int) -> list[float]:
    if hasattr(given, "tolist"):
        given = given.tolist()
    values = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(values) != count:
        raise InvalidInput(f"training {index} gave {len(values)} scores, {count} are named")
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        raise InvalidInput(f"training {index} gave `{given!r}`, which is not a number") from None
    if any(math.isnan(number) for number in numbers):
        raise InvalidInput(f"training {index} gave a score that is not a number (NaN)")
    return numbers


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.replace("-", "_").replace("_", "a").isalnum()


def _name(train: Train) -> str:
    return str(getattr(train, "__qualname__", type(train).__qualname__))


def _source(train: Train) -> str | None:
    """A hash of the function's text, where there is one."""
    try:
        text = inspect.getsource(train)
    except (OSError, TypeError):
        return None
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _plain(settings: Mapping[str, Any]) -> Any:
    try:
        return json.loads(json.dumps(settings, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"the settings are not plain data ({error}); they are part of the plan's hash"
        ) from None
