"""Figures as SVG, drawn by the core: in notebooks, reports and files alike."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Union

from . import _core
from ._names import BESIDE, SIGNED
from ._types import Lens
from .claims import Account
from .curves import Curve, profile, steps, tradeoff
from .errors import InvalidInput
from .runs import Run

if TYPE_CHECKING:
    from .auditing import Audit

#: What can be drawn.
Kind = Literal["tradeoff", "profile", "steps", "roc", "histogram", "ladder"]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure: its title, which states the finding, and its SVG."""

    title: str
    svg: str

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the SVG to a file."""
        target = Path(path)
        target.write_text(self.svg, encoding="utf-8")
        return target

    def to_json(self) -> str:
        return json.dumps({"title": self.title, "svg": self.svg})

    @classmethod
    def from_json(cls, text: str) -> Figure:
        return cls(**json.loads(text))

    def __repr__(self) -> str:
        return f"<Figure {self.title!r}, {len(self.svg)} bytes of SVG>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg


def figure(
    what: Union[Run, Account, Curve, Audit],
    *,
    kind: Kind | None = None,
    lens: Lens | Iterable[Lens] | None = None,
    delta: float | None = None,
) -> Figure:
    """Draws a curve, the curves of a run or an account, or an audit.

    ``kind`` is ``tradeoff`` (default), ``profile`` or ``steps`` (needs ``delta``) for a run or
    an account; ``roc`` (default), ``histogram`` or ``ladder`` for an audit.

    >>> import dosimeter
    >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> drawn = dosimeter.figure(run, kind="tradeoff")
    >>> drawn.svg.startswith("<svg")
    True
    """
    if isinstance(what, Curve):
        document = _core.curve_figure(what.to_json())
        return Figure(title=json.loads(document)["title"], svg=_core.figure_svg(document))
    if isinstance(what, (Run, Account)):
        run = what if isinstance(what, Run) else what.run
        lenses = lens if lens is not None else _lenses(what)
        if kind in (None, "tradeoff"):
            return figure(tradeoff(run, lens=lenses))
        if kind == "profile":
            return figure(profile(run, lens=lenses))
        if kind == "steps":
            if delta is None:
                raise InvalidInput("epsilon against steps needs a delta; give delta=1e-5")
            return figure(steps(run, delta=delta, lens=lenses))
        raise InvalidInput(f"a run has no figure {kind!r}; it has tradeoff, profile and steps")
    return what.figure(kind=_audit_kind(kind))


def _audit_kind(kind: Kind | None) -> Literal["roc", "histogram", "ladder"]:
    if kind in (None, "roc"):
        return "roc"
    if kind == "histogram":
        return "histogram"
    if kind == "ladder":
        return "ladder"
    raise InvalidInput(f"an audit has no figure {kind!r}; it has roc, histogram and ladder")


def _lenses(what: Run | Account) -> list[Lens]:
    drawn = (SIGNED, BESIDE)
    if isinstance(what, Run):
        return [SIGNED]
    there = {claim.lens for claim in what}
    return [lens for lens in drawn if lens in there] or [SIGNED]
