"""The core, asked with documents."""

from __future__ import annotations

import json
import math
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import _core
from ._types import Progress
from .errors import DosimeterWarning, InvalidInput, in_python


def ask(kind: str, question: Mapping[str, Any], *, stacklevel: int = 4) -> tuple[int, str]:
    """Asks a question and gives the exit code and the text of the answer; warnings become ours."""
    text, warnings, code = _core.ask(kind, question_text(question))
    warn(warnings, stacklevel=stacklevel)
    return code, text


def question_text(question: Mapping[str, Any]) -> str:
    """A question as JSON: what was not given is not said, numbers of other libraries are numbers."""
    return json.dumps(plain(question), allow_nan=False)


def plain(value: Any, key: str = "question") -> Any:
    """A value as JSON spells it."""
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, Mapping):
        return {name: plain(one, name) for name, one in value.items() if one is not None}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return [plain(one, key) for one in value]
    number = float(value)
    if not math.isfinite(number):
        raise InvalidInput(f"`{key}` is {number}, which is not a finite number")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def warn(texts: Sequence[str], *, stacklevel: int = 3) -> None:
    for text in texts:
        warnings.warn(in_python(text), DosimeterWarning, stacklevel=stacklevel)


@contextmanager
def listening(progress: Progress) -> Iterator[Callable[[str, int, int], None] | None]:
    """The callback of long work, from what the user gave."""
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        callback = progress
        yield lambda kind, done, of: None if kind == "merging" else _ignore(callback(done, of))
    else:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            yield None
            return
        with tqdm(unit="chunk") as bar:

            def draw(kind: str, done: int, of: int) -> None:
                bar.total = of
                bar.update(done - bar.n)

            yield draw


def _ignore(_: object) -> None:
    return None


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for the inputs of a question."""
    with tempfile.TemporaryDirectory(prefix="dosimeter-") as folder:
        yield Path(folder)
