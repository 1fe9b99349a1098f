"""A run of DP-SGD as data."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union, cast

from . import _core
from ._asking import question_text
from ._types import Adjacency, Document, Permutation, Sampling, Stopped
from ._values import as_text
from .errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of training with constant noise and sample rate.

    >>> Phase(noise_multiplier=1.0, sample_rate=0.01, steps=500)
    Phase(noise_multiplier=1.0, sample_rate=0.01, steps=500)
    """

    noise_multiplier: float
    sample_rate: float
    steps: int


@dataclass(frozen=True, kw_only=True)
class FurtherRelease:
    """A further release on the same batch: a private count, a layer's own sum, a statistic.

    >>> FurtherRelease(noise=10.0, sensitivity=0.5)
    FurtherRelease(noise=10.0, sensitivity=0.5)
    """

    #: Standard deviation of its Gaussian noise.
    noise: float
    #: How far one record can move it.
    sensitivity: float


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Noise that is correlated between steps: the releases are C x + noise, C lower triangular.

    ``bands`` for a banded C with columns of norm at most 1, with cyclic Poisson batches; or
    ``toeplitz``, its first column, with at most ``uses`` uses of a record, ``separation`` steps apart.

    >>> Matrix(toeplitz=(1.0, 0.5), uses=2, separation=10)
    Matrix(bands=None, toeplitz=(1.0, 0.5), uses=2, separation=10)
    """

    bands: int | None = None
    toeplitz: tuple[float, ...] = ()
    uses: int | None = None
    separation: int | None = None

    def _written(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value not in (None, ())}


#: Keys of a run that most runs leave at their default, as documents spell them.
DETAILS = (
    "permutation",
    "replacement",
    "max_batch_size",
    "cycle_length",
    "uses_per_epoch",
    "stopped",
    "max_steps",
    "renyi_order",
    "renyi_budget",
)


@dataclass(frozen=True, init=False, repr=False)
class Run:
    """A checked DP-SGD run: noise, sampling, steps, and what counts as neighbouring.

    Give ``sample_rate``, or ``dataset_size`` and ``batch_size``; ``steps``, or ``epochs``. The
    defaults (Poisson batches, adding or removing one record, clip norm 1) are listed among the
    assumptions of every claim, as are derived values; ``notes`` has them.

    A training of several phases is given by ``phases``, each a :class:`Phase` or a mapping with
    the same keys; then ``noise_multiplier``, ``sample_rate`` and ``steps`` of the run are None.
    ``unit`` says what one record is ("one user's messages"); every statement repeats it.

    Some ways to draw batches need more than a rate: ``permutation`` (``"fresh"`` or ``"kept"``) for
    ``sampling="shuffle"``, ``replacement`` for ``"fixed-size"``, ``max_batch_size`` and
    ``dataset_size`` for ``"truncated-poisson"``, ``cycle_length`` for ``"cyclic-poisson"``,
    ``uses_per_epoch`` for ``"balls-and-bins"``. What else is released on a batch is given by
    ``count_noise`` (the centred count of adaptive clipping) or ``releases``, each a
    :class:`FurtherRelease` or a mapping; correlated noise by ``matrix``, a :class:`Matrix` or a
    mapping. A run that was stopped by looking at its outputs says ``stopped="on-output"`` with
    ``max_steps``; one whose noise, rate and steps were chosen from outputs within a Rényi budget says
    ``stopped="renyi-filter"`` with ``renyi_order`` and ``renyi_budget``.

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
    unit: str | None
    permutation: Permutation | None
    replacement: bool | None
    max_batch_size: int | None
    cycle_length: int | None
    uses_per_epoch: int | None
    stopped: Stopped | None
    max_steps: int | None
    renyi_order: float | None
    renyi_budget: float | None
    releases: tuple[FurtherRelease, ...]
    matrix: Matrix | None
    phases: tuple[Phase, ...]
    notes: tuple[str, ...] = field(compare=False)
    _handle: _core.Run = field(compare=False)

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
        unit: str | None = None,
        permutation: Permutation | None = None,
        replacement: bool | None = None,
        max_batch_size: float | None = None,
        cycle_length: float | None = None,
        uses_per_epoch: float | None = None,
        count_noise: float | None = None,
        stopped: Stopped | None = None,
        max_steps: float | None = None,
        renyi_order: float | None = None,
        renyi_budget: float | None = None,
        releases: Iterable[FurtherRelease | Mapping[str, float]] = (),
        matrix: Matrix | Mapping[str, Any] | None = None,
        phases: Iterable[Phase | Mapping[str, float]] = (),
    ) -> None:
        keys = run_keys(
            noise_multiplier=noise_multiplier,
            sample_rate=sample_rate,
            dataset_size=dataset_size,
            batch_size=batch_size,
            steps=steps,
            epochs=epochs,
            clip_norm=clip_norm,
            sampling=sampling,
            adjacency=adjacency,
            group_size=group_size,
            unit=unit,
            permutation=permutation,
            replacement=replacement,
            max_batch_size=max_batch_size,
            cycle_length=cycle_length,
            uses_per_epoch=uses_per_epoch,
            count_noise=count_noise,
            stopped=stopped,
            max_steps=max_steps,
            renyi_order=renyi_order,
            renyi_budget=renyi_budget,
            releases=releases,
            matrix=matrix,
            phases=phases,
        )
        self._keep(_core.Run(question_text({"run": keys})))

    def _keep(self, handle: _core.Run) -> None:
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
        keep(self, "unit", handle.unit)
        document = json.loads(handle.json())
        for key in DETAILS:
            keep(self, key, document.get(key))
        found = (FurtherRelease(**release) for release in document.get("release", ()))
        keep(self, "releases", tuple(found))
        matrix = document.get("matrix")
        if matrix is not None:
            matrix = Matrix(**(matrix | {"toeplitz": tuple(matrix.get("toeplitz", ()))}))
        keep(self, "matrix", matrix)
        keep(self, "phases", phases)
        keep(self, "notes", tuple(handle.notes))
        keep(self, "_handle", handle)

    @classmethod
    def _of(cls, handle: _core.Run) -> Run:
        run = cls.__new__(cls)
        run._keep(handle)
        return run

    @classmethod
    def from_toml(cls, text: str) -> Run:
        """A run from the text of a TOML document with a ``[run]`` table.

        >>> Run.from_toml("[run]\\nnoise_multiplier = 1\\nsample_rate = 0.01\\nsteps = 1e3").steps
        1000
        """
        return cls._of(_core.Run(question_text({"files": [{"text": text}]})))

    @classmethod
    def from_json(cls, text: str | Mapping[str, Any]) -> Run:
        """A run from a JSON document: a run, an account or a ledger."""
        document = text if isinstance(text, str) else json.dumps(text)
        return cls._of(_core.Run(question_text({"files": [{"text": document}]})))

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
            "unit": self.unit,
        } | {key: value for key, value in self._details().items() if value is not None}

    def _details(self) -> dict[str, Any]:
        """The keywords that most runs leave at their default."""
        return {key: getattr(self, key) for key in DETAILS} | {
            "releases": self.releases or None,
            "matrix": self.matrix,
        }

    def _question(self) -> dict[str, Any]:
        """The part of a question that describes this run: as it was given, so that the answer
        lists the defaults."""
        return cast("dict[str, Any]", json.loads(self._handle.question()))

    def _described(self, folder: Path) -> tuple[dict[str, Any], list[str]]:
        """Keys or files that describe this run, as it was given."""
        asked = self._question()
        plain = all(isinstance(value, (str, int, float)) for value in asked.get("run", {}).values())
        if plain and not asked.get("files"):
            return asked["run"], []
        files = []
        for place, file in enumerate(asked.get("files", ())):
            text = file["text"]
            kind = "json" if text.lstrip().startswith("{") else "toml"
            path = folder / f"run-{place}.{kind}"
            path.write_text(text, encoding="utf-8")
            files.append(os.fspath(path))
        if "run" in asked:
            path = folder / "run.json"
            path.write_text(json.dumps({"run": asked["run"]}), encoding="utf-8")
            files.append(os.fspath(path))
        return {}, files

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (self._handle.question(),))

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
            "unit": None,
        }
        for key, default in usual.items():
            if getattr(self, key) != default:
                parts.append(f"{key}={getattr(self, key)!r}")
        more = self._details().items()
        parts += [f"{key}={value!r}" for key, value in more if value is not None]
        return f"Run({', '.join(parts)})"

    def _repr_html_(self) -> str:
        from ._html import definition

        rows = [(key, str(value)) for key, value in self.to_dict().items()]
        return definition("DP-SGD run", rows)


def run_keys(
    *,
    releases: Iterable[FurtherRelease | Mapping[str, float]] = (),
    matrix: Matrix | Mapping[str, Any] | None = None,
    phases: Iterable[Phase | Mapping[str, float]] = (),
    **plain: Any,
) -> dict[str, Any]:
    """Keywords of a run as the keys of a ``[run]`` table."""
    return plain | {
        "release": [_written(release) for release in releases] or None,
        "matrix": matrix._written() if isinstance(matrix, Matrix) else matrix,
        "phase": [_written(phase) for phase in phases] or None,
    }


def _written(part: Phase | FurtherRelease | Mapping[str, float]) -> Mapping[str, float]:
    return part if isinstance(part, Mapping) else vars(part)


def _restore(question: str) -> Run:
    return Run._of(_core.Run(question))


#: What can stand for a run: itself, the path of its file, or its keywords.
RunLike = Union[Run, str, "os.PathLike[str]", Mapping[str, Any]]


#: The keywords of a run.
RUN_KEYS = frozenset(inspect.signature(Run).parameters)


def as_run(value: RunLike) -> Run:
    """The run that a value stands for."""
    if isinstance(value, Run):
        return value
    if isinstance(value, Mapping):
        return Run(**value)
    return Run.from_file(value)
