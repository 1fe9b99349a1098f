"""What can go wrong, as exceptions: ``DosimeterError`` and its four kinds."""

from __future__ import annotations

import json
import re
from typing import Any


class DosimeterError(Exception):
    """The common ancestor; raised itself only for a bug in the core.

    ``hint`` is an action, where there is one, and ``code`` the exit code that the command line
    would have ended with. Where one field is wrong, ``field`` names it, ``value`` is what was given
    and ``expected`` what it should be.
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        code: int | None = None,
        field: str | None = None,
        value: Any = None,
        expected: str | None = None,
    ) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")
        self.message = message
        self.hint = hint
        self.code = code
        self.field = field
        self.value = value
        self.expected = expected

    def __reduce__(self) -> tuple[type[DosimeterError], tuple[Any, ...]]:
        wrong = (self.field, self.value, self.expected)
        return (type(self), (self.message, self.hint, self.code, *wrong))


class InvalidInput(DosimeterError, ValueError):
    """The question or the data is malformed; the message names the value.

    >>> import dosimeter
    >>> dosimeter.Run(noise_multiplier=1.0, sample_rate=1.3, steps=10)
    Traceback (most recent call last):
    dosimeter.errors.InvalidInput: sample rate 1.3 is outside (0, 1]; give the probability that a \
record is in a batch, or batch size and data set size
    >>> try:
    ...     dosimeter.Run(noise_multiplier=1.0, sample_rate=1.3, steps=10)
    ... except dosimeter.InvalidInput as error:
    ...     error.field, error.value, error.expected
    ('sample_rate', 1.3, '(0, 1]')
    """


class Unsupported(DosimeterError):
    """A lens was asked for by name that does not hold for the run."""


class NotCertified(DosimeterError):
    """Refused: outside of the domain, or no bound of a useful width can be certified."""


class Incomplete(DosimeterError):
    """Work is missing; calling again resumes it."""


class DosimeterWarning(UserWarning):
    """Something about the answer that the reader should know before using it."""


_KINDS: dict[str, type[DosimeterError]] = {
    kind.__name__: kind
    for kind in (DosimeterError, InvalidInput, Unsupported, NotCertified, Incomplete)
}


def _make(
    name: str, message: str, hint: str | None, code: int | None, field: str | None
) -> DosimeterError:
    """The exception of a failure of the core, in the words of this API; ``field`` is JSON."""
    wrong = {} if field is None else json.loads(field)
    hint = None if hint is None else in_python(hint)
    return _KINDS[name](in_python(message), hint, code, **wrong)


def in_python(text: str) -> str:
    """A sentence about flags as one about keywords: ``--sample-rate`` is ``sample_rate``; a whole
    command stays one."""

    def keyword(found: re.Match[str]) -> str:
        return found[1].replace("-", "_") if found[1] else found[0]

    return re.sub(r"`dosimeter [^`]*`|--([a-z][a-z-]*[a-z])", keyword, text)
