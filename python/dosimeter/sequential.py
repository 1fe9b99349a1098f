"""Audits that may be looked at after every trial."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

from . import _asking
from ._answers import Kept
from ._names import Schema
from ._types import Document
from .auditing import Bound, Verdict, _ask, _Scores, _sides
from .runs import RunLike, as_run


class SequentialAudit(Kept):
    """The answer of :func:`sequential`; attributes are the keys of the document.

    ``bound`` holds at any stopping time; ``refuted_at`` is the trial from which on the claim
    was refuted, or None; ``looks`` is the bound over time.
    """

    SCHEMA: ClassVar[Schema] = "dosimeter.sequential-audit/1"

    __slots__ = ()

    @property
    def trials(self) -> int:
        """Trials on both sides that were used."""
        return int(self._document["trials"])

    @property
    def bound(self) -> Bound:
        """What the trials show, as a claim."""
        return Bound.from_dict(self._document["bound"])

    @property
    def verdict(self) -> Verdict | None:
        """What the trials say about the claim, where there is one."""
        document = self._document.get("verdict")
        return None if document is None else Verdict.from_dict(document)

    @property
    def epsilon_lower(self) -> float:
        return float(self._document["epsilon_lower"])

    @property
    def refuted_at(self) -> int | None:
        trial: int | None = self._document.get("refuted_at")
        return trial

    @property
    def decision(self) -> str | None:
        """With ``budget``: refuted, out-of-reach, budget-spent or open."""
        decision: str | None = self._document.get("decision")
        return decision

    @property
    def looks(self) -> tuple[Document, ...]:
        return tuple(self._document["looks"])

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._document["warnings"])

    def __repr__(self) -> str:
        refuted = "" if self.refuted_at is None else f"; refuted after {self.refuted_at}"
        return f"<SequentialAudit epsilon {self.bound.shown}, {self.trials} trials{refuted}>"

    def _repr_html_(self) -> str:
        from ._html import definition

        texts = {"bound": str(self.bound)}
        if self.verdict is not None:
            texts["verdict"] = self.verdict.reason
        left_out = ("looks", "claim", "epsilon_lower")
        keys = (key for key in self._document if key not in left_out)
        shown = [(key, texts.get(key, str(self._document[key]))) for key in keys]
        return definition("Sequential audit", shown)


def sequential(
    scores: Any = None,
    *,
    members: Any = None,
    nonmembers: Any = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    direction: Literal["forward", "mirror", "both"] = "both",
    claim: RunLike | None = None,
    claim_epsilon: float | None = None,
    budget: int | None = None,
    other_run: bool = False,
) -> SequentialAudit:
    """A lower bound on epsilon that holds at any stopping time; rows are trials in their order.

    ``scores``, ``members`` and ``nonmembers`` are as for :func:`audit`. ``budget`` is the number of
    trials on both sides that can be made in all; then ``decision`` says whether more of them are
    worth their cost.

    >>> import dosimeter
    >>> answer = dosimeter.sequential(
    ...     members=[1.0, 2.0, 3.0, 4.0] * 100, nonmembers=[0.0, 0.5] * 200, claim_epsilon=1.0
    ... )
    >>> answer.refuted_at is not None and answer.epsilon_lower > 1.0
    True
    """
    sides, files = _sides(scores, members, nonmembers)
    question = {
        "sequential": True,
        "delta": delta,
        "confidence": confidence,
        "direction": direction,
        "claim": None if claim is None else as_run(claim).to_dict(),
        "claim_epsilon": claim_epsilon,
        "budget": budget,
        "other_run": other_run,
    }
    text, warnings = _ask(_Scores(question=question, files=tuple(files), sides=sides), None)
    _asking.warn(warnings)
    return SequentialAudit(json.loads(text))
