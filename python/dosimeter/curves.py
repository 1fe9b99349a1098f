"""The curves behind the numbers: trade-off, privacy profile, epsilon against steps."""

from __future__ import annotations

import array
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from . import _asking
from ._answers import InRows
from ._names import SIGNED, Schema
from ._types import Direction, Document, Lens, Numbers, Standing
from ._values import as_document, as_text, infinite, numbers, words
from .runs import Run, RunLike, as_run

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from .figures import Figure

_AXES = {
    "tradeoff": ("fpr", "fnr"),
    "profile": ("epsilon", "delta"),
    "steps": ("steps", "epsilon"),
}


class Line:
    """One lens's curve: ``x`` and ``y`` with certified ends ``lower`` and ``upper``.

    The columns are read-only NumPy arrays, made when they are first asked for.
    """

    __slots__ = ("_columns", "direction", "lens", "standing")

    lens: Lens
    standing: Standing
    direction: Direction

    def __init__(
        self, lens: str, standing: str, direction: str, columns: tuple[bytes, bytes, bytes, bytes]
    ) -> None:
        self.lens = cast(Lens, lens)
        self.standing = cast(Standing, standing)
        self.direction = cast(Direction, direction)
        self._columns = columns

    def _column(self, index: int) -> NDArray[numpy.float64]:
        import numpy

        return numpy.frombuffer(self._columns[index], dtype=numpy.float64)

    @property
    def x(self) -> NDArray[numpy.float64]:
        return self._column(0)

    @property
    def y(self) -> NDArray[numpy.float64]:
        return self._column(1)

    @property
    def lower(self) -> NDArray[numpy.float64]:
        return self._column(2)

    @property
    def upper(self) -> NDArray[numpy.float64]:
        return self._column(3)

    def __len__(self) -> int:
        return len(self._columns[0]) // 8

    def __repr__(self) -> str:
        return f"<Line of {self.lens} ({self.standing}), {len(self)} points>"

    def _lists(self) -> Iterator[array.array[float]]:
        for column in self._columns:
            yield array.array("d", column)


class Curve(InRows):
    """A curve for each lens asked for; ``lines[0]`` is the first.

    The axes have the names of the document: ``fpr`` and ``fnr`` of a trade-off curve,
    ``epsilon`` and ``delta`` of a profile, ``steps`` and ``epsilon``. ``lower`` and ``upper``
    are the certified ends of the second.
    """

    SCHEMA: ClassVar[Schema] = "dosimeter.curve/1"

    __slots__ = ("_document", "kind", "lines", "run", "warnings")

    run: Run
    kind: str
    lines: tuple[Line, ...]
    warnings: tuple[str, ...]
    _document: str

    def __init__(
        self, *, run: Run, document: str, lines: Sequence[Line], warnings: Iterable[str]
    ) -> None:
        keep = object.__setattr__
        keep(self, "run", run)
        keep(self, "kind", json.loads(document)["kind"])
        keep(self, "lines", tuple(lines))
        keep(self, "warnings", tuple(warnings))
        keep(self, "_document", document)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Curve does not change; cannot set {name!r}")

    def _axis(self, name: str) -> NDArray[numpy.float64]:
        axes = _AXES[self.kind]
        if name not in axes:
            raise AttributeError(f"a {self.kind} curve has no {name!r}; it has {' and '.join(axes)}")
        return self.lines[0].x if name == axes[0] else self.lines[0].y

    @property
    def fpr(self) -> NDArray[numpy.float64]:
        """False positive rates of a trade-off curve."""
        return self._axis("fpr")

    @property
    def fnr(self) -> NDArray[numpy.float64]:
        """False negative rates of a trade-off curve."""
        return self._axis("fnr")

    @property
    def epsilon(self) -> NDArray[numpy.float64]:
        """Epsilons of a profile or against steps."""
        return self._axis("epsilon")

    @property
    def delta(self) -> NDArray[numpy.float64]:
        """Deltas of a profile."""
        return self._axis("delta")

    @property
    def steps(self) -> NDArray[numpy.float64]:
        """Step counts."""
        return self._axis("steps")

    @property
    def lower(self) -> NDArray[numpy.float64]:
        """The lower certified end of the second axis."""
        return self.lines[0].lower

    @property
    def upper(self) -> NDArray[numpy.float64]:
        """The upper certified end of the second axis."""
        return self.lines[0].upper

    def __len__(self) -> int:
        return len(self.lines[0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Curve):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.run, self.kind, self.lines[0]._columns))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (self._document, self.run))

    def to_dict(self) -> Document:
        """The ``dosimeter.curve/1`` document, as the command line prints it."""
        return cast(Document, json.loads(self._document))

    def to_json(self) -> str:
        return self._document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Curve:
        return cls.from_json(as_text(document))

    @classmethod
    def from_json(cls, text: str) -> Curve:
        found = as_document(text, cls.SCHEMA)
        return _restore(text, Run.from_json({"run": found["run"]}))

    def _rows(self) -> list[Document]:
        x, y = _AXES[self.kind]
        rows = []
        for line in self.lines:
            for at, value, lower, upper in zip(*line._lists(), strict=True):
                where = int(at) if self.kind == "steps" else at
                ends = {x: where, y: value, "lower": lower, "upper": upper}
                rows.append({"lens": line.lens, "direction": line.direction} | ends)
        return rows

    def figure(self) -> Figure:
        """The curve as it is drawn in reports."""
        from .figures import figure

        return figure(self)

    def __repr__(self) -> str:
        lenses = ", ".join(line.lens for line in self.lines)
        return f"<Curve {self.kind} ({lenses}) of {self.run!r}, {len(self)} points>"

    def _repr_html_(self) -> str:
        return self.figure()._repr_html_()


def _restore(document: str, run: Run) -> Curve:
    found = json.loads(document)
    x, y = _AXES[found["kind"]]
    lines = []
    for line in [found, *found.get("others", ())]:
        rows = [
            (point[x], infinite(point[y]), infinite(point["lower"]), infinite(point["upper"]))
            for point in line["points"]
        ]
        columns = [array.array("d", column).tobytes() for column in zip(*rows, strict=True)]
        packed = cast("tuple[bytes, bytes, bytes, bytes]", tuple(columns) or (b"",) * 4)
        lines.append(Line(line["lens"], line["standing"], line["direction"], packed))
    return Curve(run=run, document=document, lines=lines, warnings=found.get("warnings", ()))


def _curve(
    run: RunLike,
    kind: str,
    lens: Lens | Iterable[Lens],
    direction: Direction,
    delta: float | None,
    at: Numbers | None,
    points: int,
    time_limit: float | None,
    first: int | None = None,
) -> Curve:
    checked = as_run(run)
    question = checked._question() | {
        "kind": kind,
        "lens": words(lens),
        "direction": direction,
        "delta": delta,
        "fpr": numbers(at) if kind == "tradeoff" else None,
        "epsilon": numbers(at) if kind == "profile" else None,
        "points": points,
        "first": first,
        "time_limit": time_limit,
    }
    return _restore(_asking.ask("curve", question, stacklevel=5)[1], checked)


def tradeoff(
    run: RunLike,
    *,
    fpr: Numbers | None = None,
    points: int = 65,
    lens: Lens | Iterable[Lens] = SIGNED,
    direction: Direction = "both",
    time_limit: float | None = None,
) -> Curve:
    """The trade-off curve: the false negative rate that the best attack cannot beat at each
    false positive rate.

    >>> import dosimeter
    >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> curve = dosimeter.tradeoff(run, fpr=[0.001, 0.01, 0.1])
    >>> curve.fnr.round(4)
    array([0.9959, 0.9709, 0.8058])
    >>> bool((curve.lower <= curve.fnr).all())
    True
    """
    return _curve(run, "tradeoff", lens, direction, None, fpr, points, time_limit)


def profile(
    run: RunLike,
    *,
    epsilon: Numbers | None = None,
    points: int = 65,
    lens: Lens | Iterable[Lens] = SIGNED,
    direction: Direction = "both",
    time_limit: float | None = None,
) -> Curve:
    """The privacy profile: delta at each epsilon.

    >>> import dosimeter
    >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> dosimeter.profile(run, epsilon=[1.0, 2.0]).delta.round(8)
    array([2.61242e-03, 2.67000e-06])
    """
    return _curve(run, "profile", lens, direction, None, epsilon, points, time_limit)


def steps(
    run: RunLike,
    *,
    delta: float,
    points: int = 65,
    first: int | None = None,
    lens: Lens | Iterable[Lens] = SIGNED,
    direction: Direction = "both",
    time_limit: float | None = None,
) -> Curve:
    """Epsilon at ``delta`` against the number of steps, from ``first`` (one) up to the run's.

    >>> import dosimeter
    >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> curve = dosimeter.steps(run, delta=1e-5, points=4)
    >>> curve.steps.astype(int)
    array([   1,   10,  100, 1000])
    >>> dosimeter.steps(run, delta=1e-5, points=3, first=10).steps.astype(int)
    array([  10,  100, 1000])
    """
    return _curve(run, "steps", lens, direction, delta, None, points, time_limit, first)
