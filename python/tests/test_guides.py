"""The guides run from top to bottom; their assertions are part of them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from conftest import REPOSITORY

GUIDES = sorted((REPOSITORY / "python" / "guides").glob("*.py"))


@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_guide(guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "opacus" in guide.stem:
        pytest.importorskip("opacus")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(guide))


def test_there_are_four_guides_and_the_documents_name_them() -> None:
    assert len(GUIDES) == 4
    text = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")
    for guide in GUIDES:
        assert guide.name in text
