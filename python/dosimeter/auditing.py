"""Membership scores in, valid lower bounds out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, Union

from . import _asking, _core, _tables
from ._answers import InRows, Kept
from ._names import Schema
from ._types import Design, Document, Numbers
from ._values import numbers, plain, words
from .errors import InvalidInput
from .runs import RunLike, as_run

if TYPE_CHECKING:
    import pyarrow

    from .figures import Figure


#: Scores that have no file: of members and of non-members, or a table's columns.
Sides: TypeAlias = Union[tuple[Any, Any], Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Bound:
    """One lower bound on epsilon, with the mechanisms that it is valid for.

    ``epsilon_lower`` is None for the ``grid`` method, which has ``epsilon_estimate``;
    ``credibility`` stands in place of ``confidence`` for ``bayes``. ``details`` has the rest of
    the document: the tests, an upper end where there is one.
    """

    method: str
    delta: float
    valid_for: str
    primary: bool
    threshold_rule: str | None = None
    epsilon_lower: float | None = None
    epsilon_estimate: float | None = None
    shown: str = ""
    confidence: float | None = None
    credibility: float | None = None
    details: Document = field(default_factory=dict, compare=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Bound:
        rest = dict(document)
        names = [name for name in cls.__dataclass_fields__ if name != "details"]
        known = {name: rest.pop(name) for name in names if name in rest}
        return cls(**known, details=rest)

    def __str__(self) -> str:
        rule = f", {self.threshold_rule}" if self.threshold_rule else ""
        return f"epsilon @ delta {plain(self.delta)} {self.shown} ({self.method}{rule})"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measured number with its confidence interval; ``fpr`` where it has one."""

    value: float
    lower: float
    upper: float
    fpr: float | None = None

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Measured:
        return cls(**{key: document[key] for key in cls.__dataclass_fields__ if key in document})


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How the primary bound stands to the claimed run."""

    status: Literal["consistent", "contradiction", "inconclusive"]
    reason: str
    details: Document = field(default_factory=dict, compare=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Verdict:
        rest = dict(document)
        return cls(status=rest.pop("status"), reason=rest.pop("reason"), details=rest)


@dataclass(frozen=True, kw_only=True)
class _Scores:
    """Where an audit's scores came from, kept for its figures."""

    question: Document
    files: tuple[str, ...]
    sides: Sides | None


class Audit(Kept, InRows):
    """The answer of :func:`audit`; attributes are the keys of the document.

    ``primary`` is the bound of the headline, chosen before looking; ``verdict`` compares it
    with the claim, where one was given.
    """

    SCHEMA: ClassVar[Schema] = "dosimeter.audit/1"

    __slots__ = ("_scores",)

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(document)
        self._scores: _Scores | None = None

    @property
    def design(self) -> Design:
        design: Design = self._document["design"]
        return design

    @property
    def bounds(self) -> tuple[Bound, ...]:
        return tuple(Bound.from_dict(bound) for bound in self._document["bounds"])

    @property
    def primary(self) -> Bound:
        """The bound of the headline at its first delta."""
        return next(bound for bound in self.bounds if bound.primary)

    @property
    def not_valid(self) -> Mapping[str, str]:
        """Methods that are not valid for the design, with the reason."""
        return {one["method"]: one["reason"] for one in self._document["not_valid"]}

    @property
    def auroc(self) -> Measured:
        return Measured.from_dict(self._document["auroc"])

    @property
    def tpr(self) -> tuple[Measured, ...]:
        """The true positive rate at each false positive rate."""
        return tuple(Measured.from_dict(row) for row in self._document["tpr"])

    @property
    def verdict(self) -> Verdict | None:
        verdict = self._document.get("verdict")
        return None if verdict is None else Verdict.from_dict(verdict)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._document["warnings"])

    def _rows(self) -> list[Document]:
        bounds: list[Document] = self._document["bounds"]
        return bounds

    def to_arrow(self) -> pyarrow.Table:
        """One row per bound; needs pyarrow."""
        rows = [{**vars(bound), "details": json.dumps(bound.details)} for bound in self.bounds]
        return _tables.to_arrow(rows)

    def figure(self, *, kind: Literal["roc", "histogram", "ladder"] = "roc") -> Figure:
        """Draws the scores: needs them, so an audit read from a document has no figure."""
        from .figures import Figure

        if self._scores is None:
            raise InvalidInput("this audit was read from a document; its scores are not there")
        title = {"roc": "ROC", "histogram": "Scores", "ladder": "Bounds"}[kind]
        svg = _ask(self._scores, kind)[0]
        return Figure(title=title, svg=svg)

    def __repr__(self) -> str:
        verdict = self.verdict
        return f"<Audit {self.primary}{'; ' + verdict.status if verdict else ''}>"

    def _repr_html_(self) -> str:
        from html import escape

        from ._html import bullets, page, table

        rows = [(bound.method, str(bound), bound.valid_for) for bound in self.bounds]
        verdict = self.verdict
        return page(
            f"<p>{verdict.status}: {escape(verdict.reason)}</p>" if verdict else "",
            table(["method", "bound", "valid for"], rows),
            self.figure().svg if self._scores is not None else "",
            bullets("Warnings", self.warnings),
        )


def audit(
    scores: Any = None,
    *,
    members: Any = None,
    nonmembers: Any = None,
    design: Design | None = None,
    delta: Numbers | None = None,
    confidence: float = 0.95,
    method: str | Iterable[str] | None = None,
    threshold: str = "union",
    direction: Literal["forward", "mirror", "both"] = "both",
    primary: str | None = None,
    joint: bool = False,
    claim: RunLike | None = None,
    claim_epsilon: float | None = None,
    other_run: bool = False,
    sample_rate: float | None = None,
    steps: int | None = None,
    fpr: Numbers | None = None,
    min_count: int = 10,
    bootstrap: int = 0,
    seed: int = 0,
    **options: Any,
) -> Audit:
    """Lower bounds on epsilon from membership scores; larger scores mean more likely a member.

    ``scores`` is a file or several (CSV, JSONL or Parquet with columns ``score`` and
    ``member``), a pandas frame, an Arrow table or anything with an Arrow stream with these
    columns; or give ``members`` and ``nonmembers``, two arrays. ``claim`` is the run that is
    claimed and gives the verdict; ``claim_epsilon`` claims a number at the first delta. Scores
    whose file says that another run made them are refused unless ``other_run`` is True. A
    contradiction is an answer, not an exception: look at ``verdict``. Columns ``run``, ``canary`` and ``seed`` are checked against the design, also
    those of a frame. Any other flag of ``dosimeter audit`` is a further keyword.

    >>> import dosimeter
    >>> answer = dosimeter.audit(
    ...     members=[0.9] * 100, nonmembers=[0.1] * 100, delta=1e-5, threshold="fixed:0.5"
    ... )
    >>> print(answer.primary)
    epsilon @ delta 1e-5 >= 3.316 (clopper-pearson, fixed:0.5)
    """
    sides, files = _sides(scores, members, nonmembers)
    question = options | {
        "design": design,
        "delta": numbers(delta),
        "confidence": confidence,
        "method": words(method),
        "threshold": threshold,
        "direction": direction,
        "primary": primary,
        "joint": joint,
        "sample_rate": sample_rate,
        "steps": steps,
        "fpr": numbers(fpr),
        "min_count": min_count,
        "bootstrap": bootstrap,
        "seed": seed,
        "claim": None if claim is None else as_run(claim).to_dict(),
        "claim_epsilon": claim_epsilon,
        "other_run": other_run,
    }
    asked = _Scores(question=question, files=tuple(files), sides=sides)
    text, warnings = _ask(asked, None)
    _asking.warn(warnings)
    answer = Audit(json.loads(text))
    answer._scores = asked
    return answer


def _ask(scores: _Scores, figure: str | None) -> tuple[str, list[str]]:
    """Asks about files, or arrays that have no files yet."""
    sides, files = scores.sides, list(scores.files)
    members: list[str] = []
    nonmembers: list[str] = []
    with _asking.scratch() as folder:
        if isinstance(sides, Mapping):
            _split(sides)
            files.append(os.fspath(_tables.write_csv(sides, folder / "scores.csv")))
        elif sides is not None:
            members = [os.fspath(_write_npy(folder / "members.npy", sides[0]))]
            nonmembers = [os.fspath(_write_npy(folder / "nonmembers.npy", sides[1]))]
        question = _asking.question_text(scores.question)
        text, warnings, _ = _core.audit(question, files, members, nonmembers, figure)
    return text, warnings


def _sides(scores: Any, members: Any, nonmembers: Any) -> tuple[Sides | None, list[str]]:
    """The two arrays or the columns, or the files."""
    if members is not None or nonmembers is not None:
        if members is None or nonmembers is None or scores is not None:
            raise InvalidInput("give scores, or both members and nonmembers")
        return (members, nonmembers), []
    if scores is None:
        raise InvalidInput("there are no scores to audit; give scores, or members and nonmembers")
    if isinstance(scores, (str, os.PathLike)):
        return None, [os.fspath(scores)]
    if _tables.is_table(scores):
        columns = _tables.columns(scores)
        if any(name in columns for name in _FURTHER):
            return columns, []
        return _split(columns), []
    return None, [os.fspath(path) for path in scores]


def score_files(scores: Any, folder: Path) -> list[str]:
    """Files with the scores of an audit, a table, two arrays or files, written where there are
    none yet."""
    if isinstance(scores, Audit):
        kept = scores._scores
        if kept is None:
            raise InvalidInput("an audit that was read from a document has no scores in it")
        sides, files = kept.sides, list(kept.files)
    elif isinstance(scores, tuple) and not isinstance(scores[0], (str, os.PathLike)):
        sides, files = _sides(None, *scores)
    else:
        sides, files = _sides(scores, None, None)
    if sides is None:
        return files
    path = folder / "scores.csv"
    if isinstance(sides, Mapping):
        return [os.fspath(_tables.write_csv(sides, path))]
    lines = ["score,member"]
    for side, member in zip(sides, (1, 0), strict=True):
        lines += [f"{float(value)!r},{member}" for value in side]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [os.fspath(path)]


#: Columns that say how the scores came about; the core checks them against the design.
_FURTHER = ("run", "canary", "seed")


def split(table: Any) -> tuple[Any, Any]:
    """The scores of members and of non-members from a table with both."""
    return _split(_tables.columns(table))


def _split(columns: Mapping[str, Any]) -> tuple[Any, Any]:
    for name in ("score", "member"):
        if name not in columns:
            raise InvalidInput(f"the table has no column `{name}`; it has {', '.join(columns)}")
    member = columns["member"].astype(float)
    if not set(member.tolist()) <= {0.0, 1.0}:
        raise InvalidInput("the column `member` must hold 1 for members and 0 for the others")
    return columns["score"][member == 1.0], columns["score"][member == 0.0]


def _write_npy(path: Path, values: Any) -> Path:
    """A column of doubles in NumPy's format, which the core reads."""
    if hasattr(values, "__array__"):
        import numpy

        column = numpy.ascontiguousarray(values, dtype="<f8")
        if column.ndim != 1:
            raise InvalidInput(f"scores have {column.ndim} dimensions; give one row of numbers")
        data, length = column.tobytes(), len(column)
    else:
        import array
        import sys

        packed = array.array("d", values)
        if sys.byteorder == "big":
            packed.byteswap()
        data, length = packed.tobytes(), len(packed)
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({length},), }}"
    padded = header + " " * (-(len(header) + 11) % 64) + "\n"
    magic = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little")
    path.write_bytes(magic + padded.encode("latin1") + data)
    return path


def plan(
    *,
    target_epsilon: float | None = None,
    claim: RunLike | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    power: float = 0.8,
    design: Design = "runs",
    threshold: Literal["union", "dkw", "fixed"] = "union",
    mu: float | None = None,
    attack_fpr: float | None = None,
    attack_tpr: float | None = None,
    run: RunLike | None = None,
    observe: Literal["all-iterates", "last-iterate"] = "all-iterates",
    time_limit: float | None = None,
) -> Document:
    """How many runs or canaries an audit needs: the ``dosimeter.plan/1`` document.

    The attack is assumed: scores N(``mu``, 1) against N(0, 1), one threshold (``attack_fpr``,
    ``attack_tpr``), or the best attack on ``run``.

    >>> import dosimeter
    >>> 100 < dosimeter.plan(target_epsilon=1.0, mu=1.0)["needed"]["runs_per_side"] < 400
    True
    """
    question: dict[str, Any] = {
        "target_epsilon": target_epsilon,
        "claim": None if claim is None else as_run(claim).to_dict(),
        "delta": delta,
        "confidence": confidence,
        "power": power,
        "design": design,
        "threshold": threshold,
        "mu": mu,
        "attack_fpr": attack_fpr,
        "attack_tpr": attack_tpr,
        "time_limit": time_limit,
    }
    if run is not None:
        question |= {"run": as_run(run).to_dict(), "observe": observe}
    document: Document = json.loads(_asking.ask("plan", question)[1])
    return document
