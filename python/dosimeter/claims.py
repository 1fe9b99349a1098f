"""What a run leaks, under every lens: claims, and the account that holds them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, overload

from . import _asking
from ._answers import InJson, InRows
from ._names import Schema
from ._types import (
    Adjacency,
    Direction,
    Document,
    Lens,
    Method,
    Numbers,
    Quantity,
    Release,
    Secret,
    Side,
    Standing,
)
from ._values import as_document, finite, infinite, numbers, plain, words
from .runs import Run, RunLike, as_run

if TYPE_CHECKING:
    from .figures import Figure


@dataclass(frozen=True, kw_only=True)
class At:
    """Where a quantity is taken; the argument that it has is set."""

    delta: float | None = None
    epsilon: float | None = None
    fpr: float | None = None
    prior: float | None = None

    def to_dict(self) -> Document:
        return {key: value for key, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{key} {plain(value)}" for key, value in self.to_dict().items())


@dataclass(frozen=True, kw_only=True, repr=False)
class Claim(InJson):
    """One statement about a run; its attributes are the keys of the document.

    ``value`` is the best estimate and lies in [``lower``, ``upper``], the certified ends;
    ``side`` names the end that may be quoted and ``shown`` is its text. A claim is from a
    ``lens`` or from a ``method``. An infinite number has a ``reason``. Where the ends are those
    of an upper bound on the worst case, ``at_least`` is what it is proven to be at least.
    """

    lens: Lens | None = None
    method: Method | None = None
    release: Release
    secret: Secret
    direction: Direction
    adjacency: Adjacency
    quantity: Quantity
    at: At
    standing: Standing
    side: Side
    value: float
    lower: float
    upper: float
    shown: str
    at_least: float | None = None
    at_least_shown: str | None = None
    confidence: float | None = None
    certificate: str | None = None
    reason: str | None = None
    assumptions: tuple[str, ...]

    @property
    def quoted(self) -> float:
        """The end of the interval that a person may quote (the value of an estimate)."""
        return {"upper": self.upper, "lower": self.lower, "neither": self.value}[self.side]

    def to_dict(self) -> Document:
        """The claim as ``account --format json`` prints it."""
        ends = ("value", "lower", "upper")
        document: Document = {}
        for key, value in vars(self).items():
            if key in ends:
                document[key] = finite(value)
            elif value is not None:
                document[key] = value
        document["at"] = self.at.to_dict()
        document["assumptions"] = list(self.assumptions)
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Claim:
        """A claim from its document."""
        keys = {key: document[key] for key in cls.__dataclass_fields__ if key in document}
        for end in ("value", "lower", "upper"):
            keys[end] = infinite(keys[end])
        keys["at"] = At(**keys["at"])
        keys["assumptions"] = tuple(keys["assumptions"])
        return cls(**keys)

    def __repr__(self) -> str:
        return f"<Claim {self}>"

    def __str__(self) -> str:
        place = f" @ {self.at}" if self.at.to_dict() else ""
        return f"{self.quantity}{place} {self.shown} ({self.standing}, {self.lens or self.method})"

    def _repr_html_(self) -> str:
        from ._html import claims_table, page

        return page(claims_table([self]))


@dataclass(frozen=True, kw_only=True)
class Unsupportedness:
    """A lens that does not hold for the run, and why: ``field`` of the run has a ``value`` for which
    it is not known, and ``expected`` says what is covered, where the reason is about one field."""

    lens: Lens
    reason: str
    field: str | None = None
    value: Any = None
    expected: str | None = None

    def to_dict(self) -> Document:
        return {key: value for key, value in vars(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Sign:
    """What a person may sign about a run: ``statement`` is from the proven ``lens``, ``means``
    says what an attacker can do, ``attribute`` what is known of a secret attribute (not to be signed),
    ``beside`` is the heuristic lens to read with it."""

    lens: Lens
    statement: str
    means: str | None = None
    attribute: str | None = None
    beside: Lens | None = None

    def to_dict(self) -> Document:
        return {key: value for key, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        return " ".join([f"{self.statement}.", *filter(None, (self.means, self.attribute))])


class Account(InJson, InRows, Sequence[Claim]):
    """Everything that can be said about a run: a sequence of :class:`Claim`.

    ``sign`` is the line that a person may sign, None where nothing is proven.
    ``unsupported`` lists lenses that do not hold, ``asides`` numbers about other runs than
    this one (for example what a mismatch of sampling would cost), ``warnings`` what to know
    before quoting anything.
    """

    SCHEMA: ClassVar[Schema] = "dosimeter.account/1"

    __slots__ = ("_claims", "asides", "run", "sign", "unsupported", "warnings")

    run: Run
    sign: Sign | None
    unsupported: tuple[Unsupportedness, ...]
    asides: tuple[Document, ...]
    warnings: tuple[str, ...]
    _claims: tuple[Claim, ...]

    def __init__(
        self,
        *,
        run: Run,
        claims: Iterable[Claim],
        unsupported: Iterable[Unsupportedness] = (),
        asides: Iterable[Document] = (),
        warnings: Iterable[str] = (),
        sign: Sign | None = None,
    ) -> None:
        keep = object.__setattr__
        keep(self, "run", run)
        keep(self, "sign", sign)
        keep(self, "_claims", tuple(claims))
        keep(self, "unsupported", tuple(unsupported))
        keep(self, "asides", tuple(asides))
        keep(self, "warnings", tuple(warnings))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an Account does not change; cannot set {name!r}")

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims, in the order of the document."""
        return self._claims

    def __len__(self) -> int:
        return len(self._claims)

    @overload
    def __getitem__(self, index: int) -> Claim: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Claim, ...]: ...
    def __getitem__(self, index: int | slice) -> Claim | tuple[Claim, ...]:
        return self.claims[index]

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.claims)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Account):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.run, self.claims))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return (self.run, self.claims, self.unsupported, self.asides, self.warnings, self.sign)

    def select(
        self,
        *,
        lens: Lens | None = None,
        quantity: Quantity | None = None,
        standing: Standing | None = None,
        direction: Direction | None = None,
        secret: Secret | None = None,
        delta: float | None = None,
        epsilon: float | None = None,
        fpr: float | None = None,
        prior: float | None = None,
    ) -> tuple[Claim, ...]:
        """The claims with these attributes.

        >>> import dosimeter
        >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
        >>> account = dosimeter.account(run, delta=1e-5, lens="composition")
        >>> print(account.select(quantity="epsilon")[0])
        epsilon @ delta 1e-5 <= 1.829 (proven, composition)
        """
        wanted = {
            "lens": lens,
            "quantity": quantity,
            "standing": standing,
            "direction": direction,
            "secret": secret,
        }
        place = {"delta": delta, "epsilon": epsilon, "fpr": fpr, "prior": prior}

        def fits(claim: Claim) -> bool:
            return all(
                value is None or getattr(claim, key) == value for key, value in wanted.items()
            ) and all(
                value is None or getattr(claim.at, key) == value for key, value in place.items()
            )

        return tuple(claim for claim in self.claims if fits(claim))

    def to_dict(self) -> Document:
        """The ``dosimeter.account/1`` document, as the command line prints it."""
        document: Document = {
            "schema": self.SCHEMA,
            "run": self.run.to_dict(),
        }
        if self.sign:
            document["sign"] = self.sign.to_dict()
        document |= {
            "claims": [claim.to_dict() for claim in self.claims],
            "unsupported": [one.to_dict() for one in self.unsupported],
        }
        if self.asides:
            document["asides"] = [dict(aside) for aside in self.asides]
        document["warnings"] = list(self.warnings)
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Account:
        found = as_document(document, cls.SCHEMA)
        return cls._of(found, Run.from_json({"run": found["run"]}))

    @classmethod
    def _of(cls, found: Mapping[str, Any], run: Run) -> Account:
        return cls(
            run=run,
            claims=(Claim.from_dict(claim) for claim in found["claims"]),
            unsupported=(Unsupportedness(**one) for one in found["unsupported"]),
            asides=found.get("asides", ()),
            warnings=found["warnings"],
            sign=Sign(**found["sign"]) if "sign" in found else None,
        )

    def _rows(self) -> list[Document]:
        rows = []
        for claim in self.claims:
            row = claim.to_dict()
            at, assumptions = row.pop("at"), row.pop("assumptions")
            places = {key: at.get(key) for key in ("delta", "epsilon", "fpr", "prior")}
            ends = {end: getattr(claim, end) for end in ("value", "lower", "upper")}
            # What a person looks for first.
            first = {"lens": None, "quantity": None} | places | {"shown": None, "standing": None} | ends
            rest = {"confidence": None, "reason": None, "assumptions": assumptions}
            rows.append(first | row | ends | {key: row.get(key, value) for key, value in rest.items()})
        return rows

    def figure(self) -> Figure:
        """The trade-off curves of composition and last iterate, where they hold."""
        from .figures import figure

        return figure(self)

    def __repr__(self) -> str:
        epsilons = [str(claim) for claim in self.claims if claim.quantity == "epsilon"][:2]
        shown = "; ".join(epsilons) or f"{len(self)} claims"
        return f"<Account of {self.run!r}: {shown}>"

    def __str__(self) -> str:
        if self.sign is None:
            return "\n".join(str(claim) for claim in self.claims)
        first = (self.sign.lens, self.sign.beside)
        others: dict[Lens | None, Claim] = {}
        for claim in self.claims:
            if claim.lens not in first:
                others.setdefault(claim.lens, claim)
        lines = [f"Sign: {self.sign}", *(str(claim) for claim in self.claims if claim.lens in first)]
        if others:
            lines.append("Other lenses (`claims` has all their numbers):")
        return "\n".join([*lines, *(f"  {claim}" for claim in others.values())])

    def _repr_html_(self) -> str:
        from ._html import account_page

        return account_page(self)


def _restore(
    run: Run,
    claims: tuple[Claim, ...],
    unsupported: tuple[Unsupportedness, ...],
    asides: tuple[Document, ...],
    warnings: tuple[str, ...],
    sign: Sign | None,
) -> Account:
    return Account(
        run=run,
        claims=claims,
        unsupported=unsupported,
        asides=asides,
        warnings=warnings,
        sign=sign,
    )


def account(
    run: RunLike,
    *,
    delta: Numbers | None = None,
    epsilon: Numbers | None = None,
    fpr: Numbers | None = None,
    prior: Numbers | None = None,
    directions: bool = False,
    lens: Lens | Iterable[Lens] | None = None,
    quantity: Quantity | Iterable[Quantity] | None = None,
    **beyond: Any,
) -> Account:
    """What a DP-SGD run leaks, under every lens that holds for it.

    Epsilon and mu are given at each ``delta``, delta at each ``epsilon``, the true positive
    rate of the best attack at each ``fpr`` (0.001 and 0.01 unless given), the success of
    reconstruction at each ``prior``; advantage and Bayes security always. There is no default
    delta. ``directions`` adds the numbers for adding and for removing a record alone; ``lens``
    and ``quantity`` ask for some lenses and some quantities only. What is known beyond the run
    are further keywords, the flags of ``dosimeter account``: ``learning_rate``, ``smoothness``
    and ``strong_convexity`` for the hidden-state lenses, ``candidates``, ``monte_carlo``, ….

    ``run`` is a :class:`Run`, the path of its file (TOML, or a ledger), or a mapping of its
    keywords. The interpreter is free while it is computed, and Ctrl-C is heard.

    Raises :class:`Unsupported` for a named lens that does not hold, :class:`NotCertified` where
    no number can be given, :class:`InvalidInput` for malformed questions.

    >>> import dosimeter
    >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> claims = dosimeter.account(run, delta=1e-5)
    >>> claims[0].lens, claims[0].quantity, claims[0].standing
    ('composition', 'epsilon', 'proven')
    >>> round(claims[0].upper, 6)
    1.828237
    >>> claims.sign.statement
    'epsilon <= 1.829 at delta 1e-5, for adding or removing one record'
    """
    checked = as_run(run)
    question = checked._question() | {
        "delta": numbers(delta),
        "epsilon": numbers(epsilon),
        "fpr": numbers(fpr),
        "prior": numbers(prior),
        "directions": directions,
        "lens": words(lens),
        "quantity": words(quantity),
    }
    _, text = _asking.ask("account", question | beyond, stacklevel=4)
    return Account._of(json.loads(text), checked)
