"""The command line, called in this process: its numbers are the answers of most functions."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import _core
from ._types import Document, Progress
from .errors import DosimeterWarning, in_python


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
