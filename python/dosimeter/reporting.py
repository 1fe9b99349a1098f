"""One self-contained page for the person who signs."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from . import _asking, _core
from ._types import Design, Document, Progress
from .auditing import Audit, score_files
from .runs import RunLike, as_run


@dataclass(frozen=True, kw_only=True)
class Report:
    """A report that was written; in a notebook it shows itself."""

    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def to_dict(self) -> Document:
        """The embedded ``dosimeter.report/1`` document of an HTML report."""
        found = re.search(
            r'<script type="application/json" id="dosimeter">(.*?)</script>', self.text, re.DOTALL
        )
        if found is None:
            raise ValueError(f"{self.path} has no embedded document")
        return cast(Document, json.loads(found[1]))

    def to_json(self) -> str:
        """Where the report is, for :meth:`from_json`; what it says is :meth:`to_dict`."""
        return json.dumps({"path": os.fspath(self.path)})

    @classmethod
    def from_json(cls, text: str) -> Report:
        return cls(path=Path(json.loads(text)["path"]))

    def _repr_html_(self) -> str:
        import html

        frame = html.escape(self.text, quote=True)
        return f'<iframe srcdoc="{frame}" style="width:100%;height:40em;border:0"></iframe>'


#: How a report is written.
Format = Literal["html", "md", "pdf", "card", "registry"]


def report(
    run: RunLike | None = None,
    *,
    scores: Any = None,
    delta: float | None = None,
    confidence: float | None = None,
    design: Design | None = None,
    other_run: bool = False,
    public: bool = False,
    title: str | None = None,
    owner: str | None = None,
    date: str | None = None,
    format: Format | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress = None,
    time_limit: float | None = None,
) -> Report:
    """Writes one document about a run, about scores, or about both; without either the built-in
    example, from training to verdict.

    ``scores`` is a file or several, an :class:`Audit`, a frame or table with the columns ``score``
    and ``member``, or the two arrays ``(members, nonmembers)``. Scores whose file says that another
    run made them are refused unless ``other_run`` is True. The ``format`` follows the extension of
    ``out`` (``dosimeter-report.html`` unless given). ``title``, ``owner`` and ``date`` stand on it.
    The command that makes the same report is named where every input is a file. ``public`` leaves
    out what was computed from records without privacy protection. ``progress`` is called with the
    chunks of the built-in example.

    >>> import dosimeter, tempfile, os
    >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = dosimeter.report(run, delta=1e-5, out=os.path.join(folder, "report.html"))
    ...     page.to_dict()["schema"]
    'dosimeter.report/1'
    """
    question: dict[str, Any] = {
        "delta": delta,
        "confidence": confidence,
        "design": scores.design if design is None and isinstance(scores, Audit) else design,
        "other_run": other_run,
        "public": public,
        "title": title,
        "owner": owner,
        "date": date,
        "format": format,
        "out": out,
        "time_limit": time_limit,
    }
    with _asking.scratch() as folder:
        files: list[str] = []
        if isinstance(run, (str, os.PathLike)):
            files.append(os.fspath(run))
        elif run is not None:
            keys, files = as_run(run)._described(folder)
            question["run"] = keys
        if scores is not None:
            files += score_files(scores, folder)
        # Files that are about to go are called what they are, and in no command.
        if any(Path(file).parent == folder for file in files):
            question["scratch"] = folder
        question["files"] = files
        with _asking.listening(progress) as listener:
            path, _ = _core.report(_asking.question_text(question), listener)
    return Report(path=Path(path))
