"""The core, asked with documents; and the command line, called in this process, for games that are
played."""

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
from ._types import Document, Progress
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


def flags(options: Mapping[str, Any]) -> list[str]:
    """Keywords as flags; ``None`` and ``False`` are left out, sequences are repeated."""
    arguments: list[str] = []
    for key, value in options.items():
        flag = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(flag)
        elif isinstance(value, (list, tuple)):
            for one in value:
                arguments += [flag, written(one)]
        else:
            arguments += [flag, written(value)]
    return arguments


def written(value: Any) -> str:
    """A value as the command line reads it back without loss."""
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, int):
        return str(value)
    return repr(float(value))


def run(
    arguments: Sequence[str],
    *,
    progress: Progress = None,
    patient: bool = False,
) -> tuple[int, str, str]:
    """Runs a command: exit code, stdout, stderr. Failures are raised."""
    with listening(progress) as listener:
        return _core.command(["dosimeter", *arguments], listener, patient)


def answer(
    arguments: Sequence[str], *, progress: Progress = None, patient: bool = False
) -> tuple[int, Document]:
    """Runs a command that answers with a JSON document; its warnings become ours."""
    code, stdout, _ = run([*arguments, "--format", "json"], progress=progress, patient=patient)
    document: Document = json.loads(stdout)
    warn(document.get("warnings", ()), stacklevel=4)
    return code, document


def warn(texts: Sequence[str], *, stacklevel: int = 3) -> None:
    for text in texts:
        warnings.warn(in_python(text), DosimeterWarning, stacklevel=stacklevel)


@contextmanager
def listening(progress: Progress) -> Iterator[Callable[[str, int, int], None] | None]:
    """The callback of a command, from what the user gave."""
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
    """A folder for the inputs of a command."""
    with tempfile.TemporaryDirectory(prefix="dosimeter-") as folder:
        yield Path(folder)
