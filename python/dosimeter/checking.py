"""A gate on a policy, and numbers in terms of each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from . import _asking, _core
from ._answers import InJson
from ._names import Schema
from ._types import Document, Lens, Quantity, Side, Standing
from ._values import as_document, as_text, infinite, plain
from .claims import Account, At, Claim
from .errors import InvalidInput
from .runs import Run, RunLike, as_run


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limit of a policy and the claim that was held against it."""

    limit: str
    allowed: float
    passed: bool
    claim: Claim


@dataclass(frozen=True, kw_only=True)
class Check(InJson):
    """The answer of :func:`check`; true where the run keeps its policy."""

    run: Run
    policy: Document
    passed: bool
    verdicts: tuple[Limit, ...]
    warnings: tuple[str, ...]

    SCHEMA: ClassVar[Schema] = "dosimeter.check/1"

    def __bool__(self) -> bool:
        return self.passed

    def __hash__(self) -> int:
        return hash((self.run, self.passed, self.verdicts))

    def to_dict(self) -> Document:
        """The ``dosimeter.check/1`` document, as the command line prints it."""
        verdicts = [vars(one) | {"claim": one.claim.to_dict()} for one in self.verdicts]
        return {
            "schema": self.SCHEMA,
            "run": self.run.to_dict(),
            "policy": self.policy,
            "passed": self.passed,
            "verdicts": verdicts,
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Check:
        found = as_document(document, cls.SCHEMA)
        verdicts = (
            Limit(**(dict(one) | {"claim": Claim.from_dict(one["claim"])}))
            for one in found["verdicts"]
        )
        return cls(
            run=Run.from_json({"run": found["run"]}),
            policy=found["policy"],
            passed=found["passed"],
            verdicts=tuple(verdicts),
            warnings=tuple(found["warnings"]),
        )

    def __str__(self) -> str:
        return "\n".join(
            f"{'pass' if one.passed else 'FAIL'}  {one.claim}; {one.limit} is {plain(one.allowed)}"
            for one in self.verdicts
        )

    def _repr_html_(self) -> str:
        from ._html import page, table

        rows = [
            ("pass" if one.passed else "FAIL", f"{one.limit} {plain(one.allowed)}", str(one.claim))
            for one in self.verdicts
        ]
        return page(table(["", "limit", "claim"], rows))


def check(
    run: RunLike,
    *,
    max_epsilon: float | None = None,
    max_mu: float | None = None,
    delta: float | None = None,
    max_advantage: float | None = None,
    min_bayes_security: float | None = None,
    max_tpr: float | None = None,
    fpr: float | None = None,
    lens: Lens | None = None,
    time_limit: float | None = None,
) -> Check:
    """Does the run keep a policy? Keywords override the ``[policy]`` table of the run's file.

    A limit passes by the certified end alone: what cannot be shown has not been kept.

    >>> import dosimeter
    >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> bool(dosimeter.check(run, max_epsilon=8, delta=1e-5))
    True
    >>> dosimeter.check(run, max_epsilon=1, delta=1e-5).verdicts[0].claim.shown
    '<= 1.829'
    """
    policy = {
        "max_epsilon": max_epsilon,
        "max_mu": max_mu,
        "delta": delta,
        "max_advantage": max_advantage,
        "min_bayes_security": min_bayes_security,
        "max_tpr": max_tpr,
        "fpr": fpr,
        "lens": lens,
    }
    question = as_run(run)._question() | {"policy": policy, "time_limit": time_limit}
    return Check.from_json(_asking.ask("check", question)[1])


def prove(account: Account | Mapping[str, Any] | str) -> Document:
    """Every certified end of an account, or of its document, checked again in ball arithmetic: the
    ``dosimeter.certificate/1`` document. Its ``outcome`` is ``proven``, ``undecided`` or ``wrong``.

    >>> import dosimeter
    >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> account = dosimeter.account(run, delta=1e-5, lens="composition", quantity="epsilon")
    >>> dosimeter.prove(account)["outcome"]
    'proven'
    """
    if isinstance(account, Account):
        asked = account.to_json()
    elif isinstance(account, Mapping):
        asked = as_text(account)
    elif isinstance(account, str):
        asked = account
    else:
        raise InvalidInput(f"an account or its document is needed, not {type(account).__name__}")
    text, warnings, _ = _core.prove("the account", asked)
    _asking.warn(warnings)
    found: Document = json.loads(text)
    return found


@dataclass(frozen=True, kw_only=True)
class Translated:
    """A number with the side on which it bounds; ``shown`` is its text. An infinite number has a
    ``reason``."""

    quantity: Quantity
    at: At
    label: str
    side: Side
    value: float
    lower: float
    upper: float
    shown: str
    reason: str | None = None

    def __str__(self) -> str:
        return f"{self.label} {self.shown}"

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Translated:
        ends = {end: infinite(document[end]) for end in ("value", "lower", "upper")}
        return cls(**(dict(document) | ends | {"at": At(**document["at"])}))


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What holds under one assumption: of any mechanism (``any-mechanism``), of one with a
    Gaussian trade-off curve (``gaussian-curve``), or of the run (``run``)."""

    assumes: str
    words: str
    standing: Standing
    entries: tuple[Translated, ...]

    def __getitem__(self, quantity: Quantity) -> Translated:
        for entry in self.entries:
            if entry.quantity == quantity:
                return entry
        raise KeyError(quantity)


@dataclass(frozen=True, kw_only=True)
class Translation:
    """The answer of :func:`translate`: what holds because of a number, by what is assumed; and
    what would be ``enough`` for a rate that is to be kept."""

    given: str
    readings: tuple[Reading, ...]
    enough: tuple[Translated, ...]

    def __getitem__(self, assumes: str) -> Reading:
        for reading in self.readings:
            if reading.assumes == assumes:
                return reading
        raise KeyError(assumes)

    def __str__(self) -> str:
        lines = [self.given]
        for reading in self.readings:
            lines.append(f"{reading.words} ({reading.standing})")
            lines += [f"  {entry}" for entry in reading.entries]
        if self.enough:
            lines.append("enough to keep it, each alone")
            lines += [f"  {entry}" for entry in self.enough]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._html import page, table

        parts = []
        for reading in self.readings:
            rows = [(entry.label, entry.shown) for entry in reading.entries]
            parts.append(table([reading.words, reading.standing], rows))
        if self.enough:
            rows = [(entry.label, entry.shown) for entry in self.enough]
            parts.append(table(["enough to keep it, each alone", ""], rows))
        return page(table([self.given], []), *parts)


def translate(
    run: RunLike | None = None,
    *,
    bayes_security: float | None = None,
    advantage: float | None = None,
    epsilon: float | None = None,
    mu: float | None = None,
    attack_accuracy: float | None = None,
    tpr: float | None = None,
    prior: float | None = None,
    fpr: float | None = None,
    delta: float | None = None,
    time_limit: float | None = None,
) -> Translation:
    """One number in other terms: give one of the first six, a run, or both, and where the others
    are taken.

    >>> import dosimeter
    >>> found = dosimeter.translate(epsilon=2, delta=1e-5, fpr=0.01)
    >>> found["any-mechanism"]["tpr"].shown
    '<= 0.07391'
    >>> found["gaussian-curve"]["mu"].shown
    '<= 0.5016'
    """
    question: dict[str, Any] = {} if run is None else as_run(run)._question()
    question |= {
        "bayes_security": bayes_security,
        "advantage": advantage,
        "epsilon": epsilon,
        "mu": mu,
        "attack_accuracy": attack_accuracy,
        "tpr": tpr,
        "prior": prior,
        "fpr": fpr,
        "delta": delta,
        "time_limit": time_limit,
    }
    found = json.loads(_asking.ask("translate", question)[1])
    readings = (
        Reading(**(one | {"entries": tuple(Translated._of(each) for each in one["entries"])}))
        for one in found["readings"]
    )
    enough = tuple(Translated._of(one) for one in found.get("enough", ()))
    return Translation(given=found["from"], readings=tuple(readings), enough=enough)
