"""The types of the package's keywords and documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, Union

from ._names import (
    Adjacency,
    Direction,
    Lens,
    Method,
    Permutation,
    Quantity,
    Release,
    Sampling,
    Secret,
    Side,
    Standing,
    Stopped,
)

__all__ = [
    "Adjacency",
    "Design",
    "Direction",
    "Document",
    "Engine",
    "Lens",
    "Method",
    "Numbers",
    "Permutation",
    "Progress",
    "ProgressCallback",
    "Quantity",
    "Release",
    "Sampling",
    "Secret",
    "Side",
    "Standing",
    "Stopped",
]

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
