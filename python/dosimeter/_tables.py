"""Rows as pandas frames and Arrow tables, and such tables as columns."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._types import Document

if TYPE_CHECKING:
    import pandas
    import pyarrow


def to_pandas(rows: Sequence[Document]) -> pandas.DataFrame:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise _missing("pandas") from error

    frame: pandas.DataFrame = pandas.DataFrame(list(rows))
    return frame


def to_arrow(rows: Sequence[Document]) -> pyarrow.Table:
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise _missing("pyarrow") from error

    table: pyarrow.Table = pyarrow.Table.from_pylist(list(rows))
    return table


def _missing(library: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"this table needs {library}, which is not installed: pip install {library}", name=library
    )


def stream(table: pyarrow.Table, requested_schema: object | None) -> object:
    """The Arrow C stream of a table, which Polars, DuckDB and others read."""
    return table.__arrow_c_stream__(requested_schema)


def is_table(value: object) -> bool:
    """Whether a value is a data frame or a table, of whichever library."""
    return hasattr(value, "__arrow_c_stream__") or (
        hasattr(value, "columns") and hasattr(value, "__getitem__")
    )


def columns(table: Any) -> Mapping[str, Any]:
    """The columns of a frame, a table or an Arrow stream, by name."""
    if hasattr(table, "iloc"):
        return {str(name): table[name].to_numpy() for name in table.columns}
    import pyarrow

    arrow = table if isinstance(table, pyarrow.Table) else pyarrow.table(table)
    return {
        name: arrow.column(name).combine_chunks().to_numpy(zero_copy_only=False)
        for name in arrow.column_names
    }


def write_csv(columns: Mapping[str, Any], path: Path) -> Path:
    """Columns as a file that the core reads back without loss; a missing cell is empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*(column.tolist() for column in columns.values()), strict=True):
            writer.writerow([_cell(value) for value in row])
    return path


def _cell(value: Any) -> str:
    # NaN is not equal to itself; pandas and NumPy spell a missing number that way.
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)
