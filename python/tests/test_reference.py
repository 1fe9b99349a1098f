"""The reference is what the docstrings say. UPDATE_REFERENCE=1 writes it."""

from __future__ import annotations

import os
import runpy

from conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "python-reference.md"


def test_the_reference_is_up_to_date() -> None:
    made = runpy.run_path(str(REPOSITORY / "python" / "reference.py"))["reference"]()
    if os.environ.get("UPDATE_REFERENCE"):
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "run with UPDATE_REFERENCE=1"
