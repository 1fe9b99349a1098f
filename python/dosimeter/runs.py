"""A run of DP-SGD as data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union, cast

from . import _core
from ._types import Adjacency, Document, Sampling
from ._values import as_text
from .errors import InvalidInput

_PHASE_KEYS = ("noise_multiplier", "sample_rate", "batch_size", "steps", "epochs")


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of training with constant noise and sample rate.

    >>> Phase(noise_multiplier=1.0, sample_rate=0.01, steps=500)
    Phase(noise_multiplier=1.0, sample_rate=0.01, steps=500)
    """

    noise_multiplier: float
    sample_rate: float
    steps: int


@dataclass(frozen=True, init=False, repr=False)
class Run:
    """A checked DP-SGD run: noise, sampling, steps, and what counts as neighbouring.

    Give ``sample_rate``, or ``dataset_size`` and ``batch_size``; ``steps``, or ``epochs``. The
    defaults (Poisson batches, adding or removing one record, clip norm 1) are listed among the
    assumptions of every claim, as are derived values; ``notes`` has them.

    A training of several phases is given by ``phases``, each a :class:`Phase` or a mapping with
    the same keys; then ``noise_multiplier``, ``sample_rate`` and ``steps`` of the run are None.

    Raises :class:`~dosimeter.InvalidInput` for what is missing, contradictory or out of range.

    >>> run = Run(noise_multiplier=1.1, dataset_size=50_000, batch_size=512, epochs=60)
    >>> run.sample_rate, run.steps
    (0.01024, 5860)
    >>> run.notes[-1]
    'steps 5860 = 60 epochs / sample rate, rounded up'
    >>> Run.from_json(run.to_json()) == run
    True
    """

    noise_multiplier: float | None
    sample_rate: float | None
    steps: int | None
    sampling: Sampling
    adjacency: Adjacency
    clip_norm: float
    dataset_size: int | None
    group_size: int
    phases: tuple[Phase, ...]
    notes: tuple[str, ...] = field(compare=False)
    _handle: _core.Run = field(compare=False)
    #: The keywords of a run with one phase, as they were given.
    _given: Mapping[str, Any] | None = field(compare=False)

    def __init__(
        self,
        *,
        noise_multiplier: float | None = None,
        sample_rate: float | None = None,
        dataset_size: float | None = None,
        batch_size: float | None = None,
        steps: float | None = None,
        epochs: float | None = None,
        clip_norm: float | None = None,
        sampling: Sampling | None = None,
        adjacency: Adjacency | None = None,
        group_size: float | None = None,
        phases: Iterable[Phase | Mapping[str, float]] = (),
    ) -> None:
        whole = (noise_multiplier, sample_rate, batch_size, steps, epochs)
        several = [_written(phase) for phase in phases]
        self._keep(
            _core.Run(
                whole,
                dataset_size,
                clip_norm,
                sampling,
                adjacency,
                group_size,
                several,
            ),
            None
            if several
            else {
                "noise_multiplier": noise_multiplier,
                "sample_rate": sample_rate,
                "dataset_size": _whole(dataset_size),
                "batch_size": _whole(batch_size),
                "steps": _whole(steps),
                "epochs": epochs,
                "clip_norm": clip_norm,
                "sampling": sampling,
                "adjacency": adjacency,
                "group_size": _whole(group_size),
            },
        )

    def _keep(self, handle: _core.Run, given: Mapping[str, Any] | None = None) -> None:
        phases = tuple(
            Phase(noise_multiplier=noise, sample_rate=rate, steps=steps)
            for noise, rate, steps in handle.phases
        )
        only = phases[0] if len(phases) == 1 else None
        keep = object.__setattr__
        keep(self, "noise_multiplier", only.noise_multiplier if only else None)
        keep(self, "sample_rate", only.sample_rate if only else None)
        keep(self, "steps", only.steps if only else None)
        keep(self, "sampling", handle.sampling)
        keep(self, "adjacency", handle.adjacency)
        keep(self, "clip_norm", handle.clip_norm)
        keep(self, "dataset_size", handle.dataset_size)
        keep(self, "group_size", handle.group_size)
        keep(self, "phases", phases)
        keep(self, "notes", tuple(handle.notes))
        keep(self, "_handle", handle)
        keep(self, "_given", given)

    @classmethod
    def _of(cls, handle: _core.Run, given: Mapping[str, Any] | None = None) -> Run:
        run = cls.__new__(cls)
        run._keep(handle, given)
        return run

    @classmethod
    def from_toml(cls, text: str) -> Run:
        """A run from the text of a TOML document with a ``[run]`` table.

        >>> Run.from_toml("[run]\\nnoise_multiplier = 1\\nsample_rate = 0.01\\nsteps = 1e3").steps
        1000
        """
        return cls._of(_core.Run.from_text(text, False, None))

    @classmethod
    def from_json(cls, text: str | Mapping[str, Any]) -> Run:
        """A run from a JSON document: a run, an account or a ledger."""
        document = text if isinstance(text, str) else json.dumps(text)
        return cls._of(_core.Run.from_text(document, True, None))

    @classmethod
    def from_file(cls, *paths: str | os.PathLike[str]) -> Run:
        """A run from files (TOML, or JSON such as a ledger); several are composed in order."""
        return cls._of(_core.Run.from_files([os.fspath(path) for path in paths]))

    def to_dict(self) -> Document:
        """The keys of the documents, as in ``account --format json``."""
        return cast(Document, json.loads(self._handle.json()))

    def to_json(self) -> str:
        """A ``dosimeter.run/1`` document, which the command line reads too."""
        return as_text({"schema": "dosimeter.run/1", "run": self.to_dict()})

    @property
    def total_steps(self) -> int:
        """Updates over all phases."""
        return sum(phase.steps for phase in self.phases)

    def flags(self) -> dict[str, Any]:
        """The keywords that describe this run; for a run with one phase.

        Raises :class:`~dosimeter.InvalidInput` for several phases, which have no keywords.
        """
        if len(self.phases) != 1:
            raise InvalidInput(
                f"the run has {len(self.phases)} phases, and this question is about runs with one"
            )
        rate = None if self.sampling == "full" else self.sample_rate
        return {
            "noise_multiplier": self.noise_multiplier,
            "sample_rate": rate,
            "steps": self.steps,
            "dataset_size": self.dataset_size,
            "clip_norm": self.clip_norm,
            "sampling": self.sampling,
            "adjacency": self.adjacency,
            "group_size": None if self.group_size == 1 else self.group_size,
        }

    def _described(self, folder: Path) -> tuple[list[str], dict[str, Any]]:
        """Files and flags that describe this run to a command. What was not given is not said, so
        that the answer lists it among the defaults."""
        if self._given is not None:
            return [], dict(self._given)
        path = folder / "run.json"
        path.write_text(self.to_json(), encoding="utf-8")
        return [os.fspath(path)], {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (self._handle.json(), self.notes, self._given))

    def __repr__(self) -> str:
        if len(self.phases) == 1:
            keys = ("noise_multiplier", "sample_rate", "steps")
            parts = [f"{key}={getattr(self, key)!r}" for key in keys]
        else:
            parts = [f"phases={list(self.phases)!r}"]
        usual: dict[str, object] = {
            "sampling": "poisson",
            "adjacency": "add-remove",
            "clip_norm": 1.0,
            "dataset_size": None,
            "group_size": 1,
        }
        for key, default in usual.items():
            if getattr(self, key) != default:
                parts.append(f"{key}={getattr(self, key)!r}")
        return f"Run({', '.join(parts)})"

    def _repr_html_(self) -> str:
        from ._html import definition

        rows = [(key, str(value)) for key, value in self.to_dict().items()]
        return definition("DP-SGD run", rows)


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)


def _written(phase: Phase | Mapping[str, float]) -> _core._Written:
    if isinstance(phase, Phase):
        return (phase.noise_multiplier, phase.sample_rate, None, phase.steps, None)
    unknown = set(phase) - set(_PHASE_KEYS)
    if unknown:
        raise InvalidInput(
            f"unknown key `{sorted(unknown)[0]}` in a phase; known keys: {', '.join(_PHASE_KEYS)}"
        )
    get = phase.get
    return (
        get("noise_multiplier"),
        get("sample_rate"),
        get("batch_size"),
        get("steps"),
        get("epochs"),
    )


def _restore(document: str, notes: tuple[str, ...], given: Mapping[str, Any] | None) -> Run:
    return Run._of(_core.Run.from_text(document, True, notes), given)


#: What can stand for a run: itself, the path of its file, or its keywords.
RunLike = Union[Run, str, "os.PathLike[str]", Mapping[str, Any]]


def as_run(value: RunLike) -> Run:
    """The run that a value stands for."""
    if isinstance(value, Run):
        return value
    if isinstance(value, Mapping):
        return Run(**value)
    return Run.from_file(value)
