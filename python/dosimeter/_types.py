"""Names with a closed set of values, as the documents spell them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, Union

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
Sampling: TypeAlias = Literal[
    "poisson",
    "full",
    "shuffle",
    "fixed-size",
    "balls-and-bins",
    "truncated-poisson",
    "cyclic-poisson",
]
Adjacency: TypeAlias = Literal["add-remove", "substitute", "zero-out"]
Release: TypeAlias = Literal["all-iterates", "last-iterate"]
Secret: TypeAlias = Literal["membership", "attribute", "reconstruction"]
Direction: TypeAlias = Literal["both", "add", "remove"]
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
Standing: TypeAlias = Literal["proven", "heuristic", "estimate", "measured"]
Side: TypeAlias = Literal["upper", "lower", "neither"]
Design: TypeAlias = Literal["runs", "one-run"]
Engine: TypeAlias = Literal["local", "ray"]

#: One number, or any number of them (a list, a NumPy array, a pandas column).
Numbers: TypeAlias = Union[float, Iterable[float]]
#: Called with (chunks done, chunks in all).
ProgressCallback: TypeAlias = Callable[[int, int], object]
#: ``True`` draws a tqdm bar where tqdm is installed.
Progress: TypeAlias = Union[ProgressCallback, bool, None]
#: A JSON object.
Document: TypeAlias = dict[str, Any]
