"""A RUN.toml from mappings, for commands that read one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast


def write_toml(config: Mapping[str, Mapping[str, Any]], path: Path) -> Path:
    """Writes the tables of a RUN.toml."""
    path.write_text(to_toml(_with_absolute_paths(config)), encoding="utf-8")
    return path


def _with_absolute_paths(config: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """A file's paths are relative to the file; a mapping's to the present folder."""
    tables = {name: dict(table) for name, table in config.items()}
    path = tables.get("data", {}).get("path")
    if path is not None:
        tables["data"]["path"] = os.path.abspath(path)
    return tables


def to_toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Tables of plain values as TOML.

    >>> print(to_toml({"run": {"steps": 3}, "model": {"hidden": [64, 32], "kind": "mlp"}}))
    [run]
    steps = 3
    <BLANKLINE>
    [model]
    hidden = [64, 32]
    kind = "mlp"
    """
    parts = []
    for name, table in tables.items():
        lines = [f"{key} = {_toml_value(value)}" for key, value in table.items() if value is not None]
        parts.append("\n".join([f"[{name}]", *lines]))
    return "\n\n".join(parts)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml_value(one) for one in value)}]"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {_toml_value(one)}" for key, one in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, int):
        return str(value)
    return repr(float(cast(float, value)))
