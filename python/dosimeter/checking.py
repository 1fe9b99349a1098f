"""A gate on a policy, and numbers in terms of each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import _command
from ._types import Document, Lens, Side
from ._values import as_document, as_text, infinite
from .claims import Claim
from .runs import Run, RunLike, as_run


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limit of a policy and the claim that was held against it."""

    limit: str
    allowed: float
    passed: bool
    claim: Claim


@dataclass(frozen=True, kw_only=True)
class Check:
    """The answer of :func:`check`; true where the run keeps its policy."""

    run: Run
    policy: Document
    passed: bool
    verdicts: tuple[Limit, ...]
    warnings: tuple[str, ...]

    SCHEMA = "dosimeter.check/1"

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

    def to_json(self) -> str:
        return as_text(self.to_dict())

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

    @classmethod
    def from_json(cls, text: str) -> Check:
        return cls.from_dict(json.loads(text))

    def _repr_html_(self) -> str:
        from ._html import page, table

        rows = [
            ("pass" if one.passed else "FAIL", f"{one.limit} {one.allowed:g}", str(one.claim))
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
    question = as_run(run)._question() | {"policy": policy}
    return Check.from_json(_command.ask("check", question)[1])


@dataclass(frozen=True, kw_only=True)
class Translated:
    """A number with the side on which it bounds; ``shown`` is its text."""

    quantity: str
    value: float
    side: Side
    shown: str
    note: str

    def __str__(self) -> str:
        return f"{self.quantity} {self.shown}"


@dataclass(frozen=True, kw_only=True)
class Translation:
    """The answer of :func:`translate`: what holds because of a number."""

    given: str
    entries: tuple[Translated, ...]

    def __str__(self) -> str:
        return "\n".join([self.given, *(f"  {entry}" for entry in self.entries)])

    def _repr_html_(self) -> str:
        from ._html import page, table

        rows = [(entry.quantity, entry.shown, entry.note) for entry in self.entries]
        return page(table([self.given, "", ""], rows))


def translate(
    *,
    bayes_security: float | None = None,
    epsilon: float | None = None,
    mu: float | None = None,
    attack_accuracy: float | None = None,
    tpr: float | None = None,
    prior: float | None = None,
    fpr: float | None = None,
    delta: float | None = None,
) -> Translation:
    """One number in other terms: give one of the first five, and where it is taken.

    >>> import dosimeter
    >>> print(dosimeter.translate(bayes_security=0.9))
    Bayes security 0.9
      Bayes security >= 0.9000
      advantage <= 0.1000
      attack accuracy @ prior 0.5 <= 0.5500
      TPR @ FPR 0.01 <= 0.1100
    """
    question = {
        "bayes_security": bayes_security,
        "epsilon": epsilon,
        "mu": mu,
        "attack_accuracy": attack_accuracy,
        "tpr": tpr,
        "prior": prior,
        "fpr": fpr,
        "delta": delta,
    }
    found = json.loads(_command.ask("translate", question)[1])
    entries = (Translated(**(one | {"value": infinite(one["value"])})) for one in found["entries"])
    return Translation(given=found["from"], entries=tuple(entries))
