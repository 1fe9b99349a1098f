"""Numbers and documents on their way in and out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from ._names import Schema
from ._types import Document, Numbers
from .errors import InvalidInput


def numbers(values: Numbers | None) -> list[float]:
    """A list of floats from one number, many, or none."""
    if values is None:
        return []
    if isinstance(values, (int, float)):
        return [float(values)]
    try:
        return [float(value) for value in values]
    except TypeError:
        # A scalar of another library, such as an array without dimensions.
        return [float(values)]  # type: ignore[arg-type]


def words(values: str | Iterable[str] | None) -> list[str]:
    """A list of names from one name, many, or none."""
    if values is None:
        return []
    return [values] if isinstance(values, str) else list(values)


def whole(name: str, value: Any) -> int:
    """A whole number of any type; nothing is cut off."""
    try:
        number = int(value)
        if number == value:
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidInput(f"{name} is {value!r}, not a whole number")


def plain(value: float) -> str:
    """A number as the command line writes it: ``1e-5``, ``0.001``."""
    mantissa, _, exponent = f"{value:g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def finite(number: float | None) -> float | None:
    """The number as documents spell it: infinity is null."""
    return None if number is None or math.isinf(number) else number


def infinite(number: float | None) -> float:
    """The number that a document means."""
    return math.inf if number is None else number


def as_text(document: Mapping[str, Any]) -> str:
    """One JSON document."""
    return json.dumps(document, allow_nan=False)


def as_document(text: str | bytes | Mapping[str, Any], schema: Schema) -> Document:
    """A document of this schema, from its text or as it is."""
    found: Any = json.loads(text) if isinstance(text, (str, bytes)) else text
    if not isinstance(found, Mapping):
        raise InvalidInput(f"the document is {type(found).__name__}, not an object")
    document: Document = dict(found)
    if document.get("schema") != schema:
        raise InvalidInput(f"the document's schema is {document.get('schema')!r}, not {schema!r}")
    return document
