"""The guides run from top to bottom; their assertions are part of them."""

from __future__ import annotations

import re
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


PAGES = sorted((REPOSITORY / "docs").glob("*.md"))
#: Pages whose Python needs PyTorch, JAX or Ray: `bridges/test_pages.py` runs them.
BRIDGED = {"own-training.md", "record-level.md", "cluster.md"}


def blocks(page: Path) -> list[str]:
    """The blocks of Python of a page."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```python[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda p: p.stem)
def test_blocks_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heavy = re.compile(r"^(?:import|from) (torch|jax|ray|opacus)|dosimeter\.(torch|jax|ray)", re.MULTILINE)
    if page.name in BRIDGED:
        tests = (REPOSITORY / "python/tests/bridges/test_pages.py").read_text(encoding="utf-8")
        assert f'"{page.name}"' in tests
        assert any(heavy.search(block) for block in blocks(page)), "it can be run here"
        return
    monkeypatch.chdir(tmp_path)
    for block in blocks(page):
        assert not heavy.search(block), f"{page.name} belongs to BRIDGED"
        exec(compile(block, page.name, "exec"), {})
