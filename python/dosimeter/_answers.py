"""What answers have in common: their documents in and out, and their rows as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from . import _tables
from ._names import Schema
from ._types import Document
from ._values import as_document, as_text

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from typing_extensions import Self


class InJson:
    """To JSON and back, by way of the document.

    >>> import dosimeter
    >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> account = dosimeter.account(run, delta=1e-5)
    >>> dosimeter.Account.from_json(account.to_json()) == account
    True
    """

    __slots__ = ()

    def to_dict(self) -> Document:
        """The document, as the command line prints it."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The answer of a document."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The document as text."""
        return as_text(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The answer of a document's text."""
        return cls.from_dict(json.loads(text))


class Kept(InJson):
    """An answer that keeps its document; attributes are read from it."""

    SCHEMA: ClassVar[Schema]

    __slots__ = ("_document",)

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = as_document(document, self.SCHEMA)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._document == other._document

    def __hash__(self) -> int:
        return hash(json.dumps(self._document, sort_keys=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._document,))

    def to_dict(self) -> Document:
        copy: Document = json.loads(self.to_json())
        return copy

    def to_json(self) -> str:
        return as_text(self._document)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        return cls(document)


class InRows:
    """An answer that is a table as well: one row per claim, bound or point."""

    __slots__ = ()

    def _rows(self) -> Sequence[Document]:
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """One row per claim, bound or point; needs pandas."""
        return _tables.to_pandas(self._rows())

    def to_arrow(self) -> pyarrow.Table:
        """One row per claim, bound or point; needs pyarrow."""
        return _tables.to_arrow(self._rows())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return _tables.stream(self.to_arrow(), requested_schema)
