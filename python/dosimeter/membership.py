"""Membership attacks on anyone's losses: a matrix of models by records in, scores out."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from . import _asking, _core
from ._answers import Kept
from ._names import Schema
from ._types import Document, Numbers
from ._values import numbers
from .auditing import Audit, Measured, audit
from .errors import InvalidInput

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


class Membership(Kept):
    """The answer of :func:`lira` and :func:`rmia`: scores of one target, and the records at risk.

    ``scores`` has one number per record, ``members`` says which of them the target was trained on.
    All intervals in ``at_risk`` hold together, so the table may be read from the top.
    """

    SCHEMA: ClassVar[Schema] = "dosimeter.membership/1"

    __slots__ = ("_table",)

    def __init__(self, document: Mapping[str, Any], table: Any = None) -> None:
        super().__init__(document)
        self._table = table

    def __reduce__(self) -> tuple[Any, ...]:
        return (Membership, (self._document, self._table))

    @property
    def attack(self) -> str:
        return str(self._document["attack"])

    @property
    def auroc(self) -> Measured:
        return Measured.from_dict(self._document["auroc"])

    @property
    def tpr(self) -> tuple[Measured, ...]:
        """The true positive rate at each false positive rate."""
        return tuple(Measured.from_dict(row) for row in self._document["tpr"])

    @property
    def at_risk(self) -> tuple[Document, ...]:
        """The records most at risk first: record, epsilon_lower, shown, advantage."""
        return tuple(self._document["at_risk"])

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._document["warnings"])

    @property
    def scores(self) -> NDArray[numpy.float64]:
        """One score per record; larger means more likely a member."""
        scores: NDArray[numpy.float64] = self._there()[:, 0]
        return scores

    @property
    def members(self) -> NDArray[numpy.bool_]:
        """Whether the target was trained on the record."""
        members: NDArray[numpy.bool_] = self._there()[:, 1] == 1
        return members

    def audit(self, **options: Any) -> Audit:
        """Audits the scores as canaries of one training; keywords as of :func:`dosimeter.audit`."""
        scores, members = self.scores, self.members
        return audit(
            members=scores[members], nonmembers=scores[~members], design="one-run", **options
        )

    def _there(self) -> Any:
        if self._table is None:
            raise InvalidInput("this was read from a document; its scores are not there")
        return self._table

    def __repr__(self) -> str:
        found = self._document
        return (
            f"<Membership {self.attack}, {found['records']} records, {found['models']} models, "
            f"AUROC {self.auroc.value:.3f}>"
        )

    def _repr_html_(self) -> str:
        from ._html import table

        rows = [
            (str(one["record"]), one["shown"], f"{one['advantage']['value']:.3f}")
            for one in self.at_risk
        ]
        return table(["record", "epsilon", "advantage"], rows)


def lira(
    losses: Any,
    members: Any,
    *,
    logits: bool = False,
    offline: bool = False,
    fixed_variance: bool = False,
    target: int = 0,
    delta: float = 0.0,
    confidence: float = 0.95,
    fpr: Numbers | None = None,
    top: int = 10,
) -> Membership:
    """The likelihood-ratio attack (Carlini et al. 2022) on model ``target``, with the others as references.

    ``losses`` and ``members`` are models by records: losses -ln p of the right answer (with
    ``logits``: ln(p / (1 - p))), and 1 where the model was trained on the record.

    >>> import dosimeter, numpy
    >>> draw = numpy.random.default_rng(0)
    >>> members = draw.random((40, 60)) < 0.5
    >>> losses = numpy.exp(draw.normal(0.0, 0.3, (40, 60)) - 1.5 * members)
    >>> dosimeter.lira(losses, members).auroc.value > 0.8
    True
    """
    own = {"fixed_variance": fixed_variance}
    return _attack("lira", losses, members, own, logits, offline, target, delta, confidence, fpr, top)


def rmia(
    losses: Any,
    members: Any,
    *,
    logits: bool = False,
    offline: bool = False,
    gamma: float = 2.0,
    a: float = 0.3,
    target: int = 0,
    delta: float = 0.0,
    confidence: float = 0.95,
    fpr: Numbers | None = None,
    top: int = 10,
) -> Membership:
    """The relative membership attack (Zarifzadeh et al. 2024); arguments as of :func:`lira`.

    >>> import dosimeter, numpy
    >>> draw = numpy.random.default_rng(0)
    >>> members = draw.random((40, 60)) < 0.5
    >>> losses = numpy.exp(draw.normal(0.0, 0.3, (40, 60)) - 1.5 * members)
    >>> dosimeter.rmia(losses, members, gamma=1.0).auroc.value > 0.8
    True
    """
    own = {"gamma": gamma, "a": a}
    return _attack("rmia", losses, members, own, logits, offline, target, delta, confidence, fpr, top)


def _attack(
    name: str,
    losses: Any,
    members: Any,
    own: Mapping[str, Any],
    logits: bool,
    offline: bool,
    target: int,
    delta: float,
    confidence: float,
    fpr: Numbers | None,
    top: int,
) -> Membership:
    import numpy

    with _asking.scratch() as folder:
        question = dict(own) | {
            "attack": name,
            "losses": _write(folder / "losses.npy", losses),
            "members": _write(folder / "members.npy", members),
            "logits": logits,
            "offline": offline,
            "target": target,
            "delta": delta,
            "confidence": confidence,
            "fpr": numbers(fpr),
            "top": top,
        }
        (text, warnings, _), scores = _core.membership(_asking.question_text(question))
    _asking.warn(warnings, stacklevel=4)
    table = numpy.loadtxt(io.StringIO(scores), delimiter=",", skiprows=2, ndmin=2)
    return Membership(json.loads(text), table)


def _write(path: Path, values: Any) -> str:
    """A matrix of doubles in NumPy's format."""
    import numpy

    matrix = numpy.ascontiguousarray(values, dtype="<f8")
    if matrix.ndim != 2:
        raise InvalidInput(f"the matrix has {matrix.ndim} dimensions; give models by records")
    numpy.save(path, matrix)
    return os.fspath(path)
