"""The compiled core. Private: its functions may change; use the package."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias, final

__all__ = [
    "VERSION",
    "Run",
    "account_seconds",
    "ask",
    "audit",
    "command",
    "curve_figure",
    "experiment",
    "figure_svg",
    "main",
    "membership",
    "memorize",
    "plan_name",
    "report",
    "status",
    "train",
    "training_seed",
    "tune",
]

VERSION: str

_Said: TypeAlias = tuple[str, list[str], int]

@final
class Run:
    def __new__(cls, question: str) -> Run: ...
    @staticmethod
    def from_files(paths: Sequence[str | PathLike[str]]) -> Run: ...
    def question(self) -> str: ...
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
    def unit(self) -> str | None: ...
    @property
    def group_size(self) -> int: ...

def ask(kind: str, question: str) -> _Said: ...
def audit(
    question: str,
    files: Sequence[str | PathLike[str]],
    members: Sequence[str | PathLike[str]],
    nonmembers: Sequence[str | PathLike[str]],
    figure: str | None,
) -> _Said: ...
def membership(question: str) -> tuple[_Said, str]: ...
def memorize(question: str) -> _Said: ...
def report(
    question: str, progress: Callable[[str, int, int], None] | None
) -> tuple[Path, int]: ...
def train(
    question: str, progress: Callable[[str, int, int], None] | None
) -> _Said: ...
def status(path: str | PathLike[str]) -> _Said: ...
def tune(question: str, table: str | PathLike[str]) -> _Said: ...
def account_seconds(question: str, repetitions: int) -> float: ...
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
