"""Games that are played: thousands of trainings with and without a canary, and their scores."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from . import _asking, _core
from ._answers import InJson
from ._toml import write_toml
from ._names import Schema
from ._types import Document, Engine, Progress
from ._values import as_document, whole
from .auditing import Audit, audit
from .errors import Incomplete, InvalidInput
from .runs import RUN_KEYS, RunLike, as_run, run_keys

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from .ray import Cluster

#: What the command line exits with where chunks are missing, and after Ctrl-C.
INCOMPLETE, INTERRUPTED = 4, 130

#: Games whose training is simulated; others train models on data.
SIMULATED = ("linear", "zeroing", "quadratic", "shift-register", "repeaters", "our-loss")


@dataclass(frozen=True, kw_only=True, repr=False)
class Attack(InJson):
    """A game that was played: where its scores are, and what is known exactly about it."""

    game: str
    parameters: Document
    seed: int
    trials: int
    plan: str
    state: Literal["complete", "incomplete", "interrupted", "not played"]
    scores: Path | None
    exact: tuple[Document, ...]
    warnings: tuple[str, ...]
    #: What else the document says about a game that trains models.
    details: Document = field(default_factory=dict)

    SCHEMA: ClassVar[Schema] = "dosimeter.attack/1"

    def __hash__(self) -> int:
        return hash((self.plan, self.trials, self.scores))

    def to_dict(self) -> Document:
        """The ``dosimeter.attack/1`` document."""
        document = {"schema": self.SCHEMA} | vars(self)
        document |= document.pop("details")
        document["scores"] = None if self.scores is None else os.fspath(self.scores)
        return document | {"exact": list(self.exact), "warnings": list(self.warnings)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Attack:
        found = as_document(document, cls.SCHEMA)
        keys = {name: found.pop(name, None) for name in (one.name for one in fields(cls))}
        keys["scores"] = None if keys["scores"] is None else Path(str(keys["scores"]))
        for name in ("exact", "warnings"):
            keys[name] = tuple(keys[name] or ())
        found.pop("schema")
        return cls(**{**keys, "details": found})

    def read(self) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
        """The scores of the games with and without the canary."""
        import numpy

        if self.scores is None:
            raise Incomplete(f"the game is {self.state}: there are no scores yet")
        with self.scores.open(encoding="utf-8") as lines:
            header = next(line for line in lines if not line.startswith("#")).strip().split(",")
            used = (header.index("score"), header.index("member"))
            table = numpy.loadtxt(lines, delimiter=",", usecols=used, ndmin=2)
        member = table[:, 1] == 1
        return table[member, 0], table[~member, 0]

    def audit(self, **options: Any) -> Audit:
        """Audits the scores; the keywords are those of :func:`dosimeter.audit`."""
        if self.scores is None:
            raise Incomplete(f"the game is {self.state}: there are no scores yet")
        return audit(self.scores, **options)

    def __repr__(self) -> str:
        where = "" if self.scores is None else f", scores in {os.fspath(self.scores)!r}"
        return f"<Attack {self.game}, {self.trials} trials, {self.state}{where}>"

    def _repr_html_(self) -> str:
        from ._html import definition

        shown = [(key, str(value)) for key, value in vars(self).items() if key != "exact"]
        facts = [(fact["name"], f"{fact['lower']} .. {fact['upper']}") for fact in self.exact]
        return definition("Attack", shown) + (definition("Known exactly", facts) if facts else "")


def attack(
    game: str,
    *,
    run: RunLike | Mapping[str, Mapping[str, Any]] | None = None,
    trials: float | None = None,
    seed: int | None = None,
    observe: Literal["last", "all"] | None = None,
    direction: Literal["add", "remove"] | None = None,
    delta: float | None = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    shard: str | None = None,
    force: bool = False,
    engine: Engine = "local",
    cluster: Cluster | None = None,
    progress: Progress = None,
    **parameters: Any,
) -> Attack:
    """Plays a game and writes its scores to ``out``; the same call again resumes or extends.

    ``game`` is ``linear``, ``zeroing``, ``quadratic`` (``alpha``), ``shift-register``
    (``spread``), ``repeaters`` (``variant``, ``threshold``), ``our-loss`` (``spacing``,
    ``resolution``, ``anyway``), or one that trains models, whose ``run`` is the path of a RUN.toml
    or its tables as mappings (``run``, ``data``, ``model``, ``optimizer``). The game's own
    parameters, and any other flag of ``dosimeter attack``, are further keywords. The result does
    not depend on ``threads``, ``shard`` (``"2/8"``) or ``engine``, to the byte.

    ``seed`` is 0, or that of the RUN.toml, unless it is given.

    ``engine="ray"`` plays the chunks on a Ray cluster (:class:`dosimeter.ray.Cluster` says how).
    ``progress`` is called with (chunks done, chunks in all), or is True for a tqdm bar. Ctrl-C
    lets the chunks in hand finish; what is done stays.

    Raises :class:`Incomplete` when chunks are missing and no ``shard`` was asked for.

    >>> import dosimeter, tempfile, os
    >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.1, steps=10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     game = dosimeter.attack("linear", run=run, trials=1000,
    ...                             out=os.path.join(folder, "scores.csv"))
    ...     members, nonmembers = game.read()
    >>> game.state, len(members), bool(members.mean() > nonmembers.mean())
    ('complete', 1000, True)
    """
    # Numbers of a run belong to its keys, whatever the game.
    keys = {key: parameters.pop(key) for key in list(parameters) if key in RUN_KEYS}
    question: dict[str, Any] = parameters | {
        "game": game,
        "trials": None if trials is None else whole("trials", trials),
        "seed": seed,
        "observe": observe,
        "direction": direction,
        "delta": delta,
    }
    with _asking.scratch() as folder:
        if isinstance(run, Mapping) and "run" in run:
            if engine == "ray":
                raise InvalidInput("on a cluster give the path of a RUN.toml that all nodes have")
            run = write_toml(run, folder / "run.toml")
        if isinstance(run, (str, os.PathLike)) and game not in SIMULATED:
            question["file"] = run
        elif run is not None:
            keys = as_run(run).flags() | keys
        question["run"] = run_keys(**keys)
        if engine == "ray":
            from .ray import Cluster, play

            if out is None:
                raise InvalidInput("a game on a cluster needs `out`")
            if shard is not None:
                raise InvalidInput("`shard` is for job arrays; a cluster takes all chunks")
            play(question, Path(out), cluster or Cluster(), force=force, progress=progress)
            progress = None
            force = False
        elif engine != "local":
            raise InvalidInput(f"there is no engine `{engine}`; choose local or ray")
        question |= {"out": out, "threads": threads, "shard": shard, "force": force}
        code, document = played(question, progress)
    if code == INCOMPLETE and shard is None:
        raise Incomplete("chunks are missing; call again to resume", code=code)
    return Attack.from_dict(document)


def played(question: Mapping[str, Any], progress: Progress = None) -> tuple[int, Document]:
    """Plays what a question asks for: the exit code of the command line, and the document."""
    with _asking.listening(progress) as listener:
        text, warnings, code = _core.attack(_asking.question_text(question), listener)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    _asking.warn(warnings, stacklevel=4)
    return code, json.loads(text)


def status(path: str | os.PathLike[str]) -> Document:
    """An experiment's folder or output: done, missing, failed (``dosimeter.status/1``)."""
    found: Document = json.loads(_core.status(path)[0])
    return found
