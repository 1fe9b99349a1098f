"""Names with a closed set of values, as the documents spell them.

Made by ``cargo xtask generate`` from the vocabulary; do not edit.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Lens: TypeAlias = Literal[
    "composition",
    "last-iterate",
    "last-iterate-max",
    "full-batch",
    "renyi",
    "gaussian-clt",
    "advanced-composition",
    "closed-form",
    "closed-form-clt",
    "closed-form-certified",
    "hidden-state",
    "hidden-state-renyi",
]
Method: TypeAlias = Literal[
    "clopper-pearson",
    "gdp",
    "composition",
    "last-iterate",
    "bayes",
    "grid",
    "one-run",
    "one-run-gdp",
    "one-run-independent",
    "gaussian-pair",
    "sequential",
]
Quantity: TypeAlias = Literal[
    "epsilon",
    "delta",
    "mu",
    "tpr",
    "advantage",
    "bayes-security",
    "reconstruction",
    "attack-accuracy",
]
Sampling: TypeAlias = Literal[
    "poisson",
    "full",
    "shuffle",
    "fixed-size",
    "balls-and-bins",
    "truncated-poisson",
    "cyclic-poisson",
    "in-order",
]
Adjacency: TypeAlias = Literal[
    "add-remove",
    "substitute",
    "zero-out",
]
Permutation: TypeAlias = Literal[
    "fresh",
    "kept",
]
Stopped: TypeAlias = Literal[
    "on-output",
    "renyi-filter",
]
Release: TypeAlias = Literal[
    "all-iterates",
    "last-iterate",
]
Secret: TypeAlias = Literal[
    "membership",
    "attribute",
    "reconstruction",
]
Direction: TypeAlias = Literal[
    "both",
    "add",
    "remove",
]
Standing: TypeAlias = Literal[
    "proven",
    "heuristic",
    "estimate",
    "measured",
]
Side: TypeAlias = Literal[
    "upper",
    "lower",
    "neither",
]
VerdictStatus: TypeAlias = Literal[
    "consistent",
    "contradiction",
    "inconclusive",
    "claim-only",
    "measured-only",
    "nothing",
]
Schema: TypeAlias = Literal[
    "dosimeter.account/1",
    "dosimeter.report/1",
    "dosimeter.calibrate/1",
    "dosimeter.advice/1",
    "dosimeter.curve/1",
    "dosimeter.compare/1",
    "dosimeter.map/1",
    "dosimeter.batch-sizes/1",
    "dosimeter.check/1",
    "dosimeter.audit/1",
    "dosimeter.sequential-audit/1",
    "dosimeter.membership/1",
    "dosimeter.audit-commitment/1",
    "dosimeter.proof/1",
    "dosimeter.plan/1",
    "dosimeter.tune-regress/1",
    "dosimeter.tune-rank/1",
    "dosimeter.tune-select/1",
    "dosimeter.tune-profiles/1",
    "dosimeter.tune-search/1",
    "dosimeter.status/1",
    "dosimeter.panel/1",
    "dosimeter.calibration-map/1",
    "dosimeter.error/1",
    "dosimeter.translate/2",
    "dosimeter.ledger/1",
    "dosimeter.run/1",
    "dosimeter.policy/1",
    "dosimeter.figure/1",
    "dosimeter.attack/1",
    "dosimeter.data/1",
    "dosimeter.data-description/1",
    "dosimeter.memorize/1",
    "dosimeter.memorize-acr/1",
    "dosimeter.reproduce/1",
]
#: A record that is added or removed changes the batches of the others.
MOVES_OTHERS: tuple[Sampling, ...] = (
    "shuffle",
    "in-order",
)
#: The lens whose number may be signed, and which is asked where none is named.
SIGNED: Lens = "composition"
#: The heuristic to read beside it.
BESIDE: Lens = "last-iterate"
#: The lenses that say something about a secret attribute.
ABOUT_ATTRIBUTES: tuple[Lens, ...] = (
    "closed-form",
    "closed-form-clt",
    "closed-form-certified",
)
