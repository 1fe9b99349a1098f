"""Several runs side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Union

from . import _tables
from ._answers import InJson, InRows
from ._asking import ask, listening
from ._names import Schema
from ._types import Document, Engine, Lens, Numbers, Progress, Quantity
from ._values import as_document, numbers, words
from .claims import Account, account
from .errors import InvalidInput
from .runs import Run, RunLike, as_run

if TYPE_CHECKING:
    from .ray import Cluster


@dataclass(frozen=True, kw_only=True)
class Comparison(InJson, InRows):
    """Accounts by name, in order; ``left_out`` are ways to draw batches without a number, and why."""

    runs: Mapping[str, Account]
    left_out: Mapping[str, str] = field(default_factory=dict)

    SCHEMA: ClassVar[Schema] = "dosimeter.compare/1"

    def __hash__(self) -> int:
        return hash(tuple(self.runs.items()))

    def to_dict(self) -> Document:
        """The ``dosimeter.compare/1`` document."""
        named = [{"name": name, "account": one.to_dict()} for name, one in self.runs.items()]
        document: Document = {"schema": self.SCHEMA, "runs": named}
        if self.left_out:
            ways = self.left_out.items()
            document["left_out"] = [{"name": name, "reason": why} for name, why in ways]
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Comparison:
        found = as_document(document, cls.SCHEMA)
        return cls(
            runs={one["name"]: Account.from_dict(one["account"]) for one in found["runs"]},
            left_out={one["name"]: one["reason"] for one in found.get("left_out", ())},
        )

    def _rows(self) -> list[Document]:
        return [{"name": name} | row for name, one in self.runs.items() for row in one._rows()]

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.runs)}>"

    def _repr_html_(self) -> str:
        from html import escape

        from ._html import claims_table, page

        parts = [f"<b>{escape(name)}</b>{claims_table(one)}" for name, one in self.runs.items()]
        return page(*parts)


def compare(
    runs: Union[Mapping[str, RunLike], Iterable[RunLike], Any],
    *,
    delta: Numbers | None = None,
    epsilon: Numbers | None = None,
    fpr: Numbers | None = None,
    prior: Numbers | None = None,
    directions: bool = False,
    lens: Lens | Iterable[Lens] | None = None,
    quantity: Quantity | Iterable[Quantity] | None = None,
    every_sampling: bool = False,
    time_limit: float | None = None,
    engine: Engine = "local",
    cluster: Cluster | None = None,
    progress: Progress = None,
) -> Comparison:
    """Accounts of several runs: a mapping from names to runs, a list of runs, one run, or a table (pandas,
    Arrow) with one run per row whose columns are the keywords of :class:`Run`, and perhaps
    ``name``. ``engine="ray"`` spreads a large sweep over a Ray cluster, with the same result;
    ``progress`` is called with (runs done, runs in all).

    >>> import dosimeter
    >>> runs = {
    ...     f"sigma {noise}": dosimeter.Run(noise_multiplier=noise, sample_rate=0.01, steps=1000)
    ...     for noise in (0.8, 1.6)
    ... }
    >>> both = dosimeter.compare(runs, delta=1e-5, lens="composition")
    >>> [round(one[0].value, 3) for one in both.runs.values()]
    [3.141, 0.837]

    ``every_sampling=True`` shows each run with its batches drawn in every way there is: what would
    shuffled batches cost? Records are zeroed out unless the run says otherwise, the lens is
    ``composition``, and epsilon and advantage are asked for unless ``quantity`` is given. ``left_out``
    says which ways have no number, and why.
    """
    named = _named(runs)
    names = [name for name, _ in named]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"two runs are called `{name}`")
    questions: dict[str, Any] = {
        "delta": numbers(delta),
        "epsilon": numbers(epsilon),
        "fpr": numbers(fpr),
        "prior": numbers(prior),
        "directions": directions,
        "lens": words(lens),
        "quantity": words(quantity),
        "time_limit": time_limit,
    }
    if every_sampling:
        asked = [{"name": name} | run._question() for name, run in named]
        everything: dict[str, Any] = questions | {"runs": asked, "every_sampling": True}
        return Comparison.from_json(ask("compare", everything)[1])
    if engine == "ray":
        from .ray import Cluster, accounts

        answers = accounts([run for _, run in named], questions, cluster or Cluster(), progress=progress)
        return Comparison(runs=dict(zip(names, answers, strict=True)))
    if engine != "local":
        raise InvalidInput(f"there is no engine `{engine}`; choose local or ray")
    found = {}
    with listening(progress) as listener:
        for name, run in named:
            found[name] = account(run, **questions)
            if listener is not None:
                listener("chunk", len(found), len(named))
    return Comparison(runs=found)


def _named(runs: Any) -> list[tuple[str, Run]]:
    if isinstance(runs, (Run, str, PathLike)):
        runs = [runs]
    if isinstance(runs, Mapping):
        return [(str(name), as_run(run)) for name, run in runs.items()]
    if not _tables.is_table(runs):
        return [(f"run {place}", as_run(run)) for place, run in enumerate(runs, 1)]
    columns = {name: list(column) for name, column in _tables.columns(runs).items()}
    names = columns.pop("name", None)
    length = len(next(iter(columns.values()), ()))
    named = []
    for row in range(length):
        # A missing cell (null, or NaN in pandas) is a keyword that was not given.
        cells = {name: column[row] for name, column in columns.items()}
        given = {name: cell for name, cell in cells.items() if cell is not None and cell == cell}
        named.append((str(names[row]) if names else f"run {row + 1}", Run(**given)))
    return named
