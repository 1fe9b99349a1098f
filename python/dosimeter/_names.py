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
