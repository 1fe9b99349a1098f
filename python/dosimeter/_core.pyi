"""The compiled core. Private: its functions may change; use the package."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TypeAlias, final

__all__ = [
    "VERSION",
    "Run",
    "account",
    "account_seconds",
    "command",
    "curve",
    "curve_figure",
    "experiment",
    "figure_svg",
    "main",
    "plan_name",
    "training_seed",
]

VERSION: str

_Written: TypeAlias = tuple[
    float | None, float | None, float | None, float | None, float | None
]
_RawClaim: TypeAlias = tuple[
    tuple[str, str, str, str, str],
    tuple[float | None, float | None, float | None, float | None],
    str,
    str,
    tuple[float, float, float],
    float | None,
    str | None,
    tuple[str, ...],
]
_RawLine: TypeAlias = tuple[str, str, str, tuple[bytes, bytes, bytes, bytes]]

@final
class Run:
    def __new__(
        cls,
        whole: _Written,
        dataset_size: float | None,
        clip_norm: float | None,
        sampling: str | None,
        adjacency: str | None,
        group_size: float | None,
        phases: Sequence[_Written],
    ) -> Run: ...
    @staticmethod
    def from_text(text: str, json: bool, notes: Sequence[str] | None) -> Run: ...
    @staticmethod
    def from_files(paths: Sequence[str | PathLike[str]]) -> Run: ...
    def json(self) -> str: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def phases(self) -> list[tuple[float, float, int]]: ...
    @property
    def sampling(self) -> str: ...
    @property
    def adjacency(self) -> str: ...
    @property
    def clip_norm(self) -> float: ...
    @property
    def dataset_size(self) -> int | None: ...
    @property
    def group_size(self) -> int: ...

def account(
    run: Run,
    deltas: Sequence[float],
    epsilons: Sequence[float],
    fprs: Sequence[float],
    priors: Sequence[float],
    directions: bool,
    lenses: Sequence[str],
    quantities: Sequence[str],
) -> tuple[list[_RawClaim], list[tuple[str, str]], str, list[str]]: ...
def account_seconds(
    run: Run,
    deltas: Sequence[float],
    lenses: Sequence[str],
    quantities: Sequence[str],
    repetitions: int,
) -> float: ...
def curve(
    run: Run,
    kind: str,
    lenses: Sequence[str],
    direction: str,
    delta: float | None,
    at: Sequence[float],
    points: int,
) -> tuple[list[_RawLine], list[str], str]: ...
def curve_figure(document: str) -> str: ...
def figure_svg(document: str) -> str: ...
def main(arguments: Sequence[str]) -> int: ...
def command(
    arguments: Sequence[str],
    progress: Callable[[str, int, int], None] | None,
    patient: bool,
) -> tuple[int, str, str]: ...
def plan_name(plan: str) -> str: ...
def training_seed(root: int, index: int) -> int: ...
def experiment(
    plan: str,
    output: str | PathLike[str],
    shard: str,
    threads: int,
    force: bool,
    rows: Callable[[int, int], str],
    progress: Callable[[str, int, int], None] | None,
) -> tuple[str, int, int]: ...
