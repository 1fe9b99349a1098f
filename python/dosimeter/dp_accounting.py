"""Runs as ``DpEvent`` of Google's dp_accounting, and back, and an accountant for its events (extra
``dosimeter[dp-accounting]``).

A run is a composition of sampled Gaussian events; an event of that shape is a run. What has no
counterpart is refused by name, never approximated.

An event's noise multiplier is, by its own definition, the noise divided by the norm to which values
are clipped; so it is here. dp_accounting's Rényi accountant reads it otherwise for
``SampledWithoutReplacementDpEvent``, and for Gaussian events when a record is replaced: in units of
what the replacement moves, twice that norm. :func:`to_event` hands over what the accountant that
takes the event gets right.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import dp_accounting as theirs
from dp_accounting import privacy_accountant

from ._names import SIGNED
from ._types import Adjacency
from .claims import account
from .errors import DosimeterError, Unsupported
from .runs import Phase, Run, RunLike, as_run

if TYPE_CHECKING:
    from dp_accounting import DpEvent, NeighboringRelation

__all__ = ["Accountant", "from_event", "neighboring_relation", "to_event"]

#: In dp_accounting since 0.5.
_Truncated: Any = getattr(theirs, "TruncatedSubsampledGaussianDpEvent", None)


def to_event(run: RunLike) -> DpEvent:
    """The event that dp_accounting's accountants compose.

    The noise is in the units of the accountants that take the event. Batches of a fixed size become
    Poisson batches at half of the noise when a record is added or removed, which is exact; when one
    is replaced they become ``SampledWithoutReplacementDpEvent``, which only the Rényi accountant
    takes, and whose noise it counts in units of twice the clip norm: half of the run's noise
    multiplier. Full batches with replacement become Poisson batches of rate 1, because the Rényi
    accountant would read a plain Gaussian event with half of its sensitivity.

    Raises :class:`~dosimeter.Unsupported` for what has no event: shuffled batches, balls and bins,
    draws with replacement, groups of records, several releases per batch, correlated noise, and runs
    that were stopped by their outputs.

    >>> import dosimeter
    >>> run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> event = to_event(run)
    >>> type(event).__name__, event.count
    ('SelfComposedDpEvent', 1000)
    >>> from_event(event) == run
    True
    """
    checked = as_run(run)
    if checked.group_size != 1:
        raise Unsupported(f"an event of dp_accounting describes one record; the run has groups of {checked.group_size}")
    for what, given in (
        ("several releases per batch", checked.releases),
        ("correlated noise", checked.matrix),
        ("a run that was stopped by its outputs", checked.stopped),
    ):
        if given:
            raise Unsupported(f"dp_accounting has no event for {what}")
    events = [_step(checked, phase) for phase in checked.phases]
    return events[0] if len(events) == 1 else theirs.ComposedDpEvent(events)


def _step(run: Run, phase: Phase) -> DpEvent:
    noise, rate, steps = phase.noise_multiplier, phase.sample_rate, phase.steps
    plain: DpEvent = theirs.GaussianDpEvent(noise)
    event: DpEvent
    if run.sampling == "full":
        replaced = run.adjacency == "substitute"
        event = theirs.PoissonSampledDpEvent(1.0, plain) if replaced else plain
    elif run.sampling == "poisson":
        event = theirs.PoissonSampledDpEvent(rate, plain)
    elif run.sampling == "cyclic-poisson":
        event = theirs.PoissonSampledDpEvent(rate, plain)
        steps = -(-steps // (run.cycle_length or 1))
    elif run.sampling == "truncated-poisson" and _Truncated is not None:
        event = _Truncated(run.dataset_size, rate, run.max_batch_size, noise)
    elif run.sampling == "fixed-size" and not run.replacement:
        event = _fixed_size(run, phase)
    else:
        how = " with replacement" if run.replacement else ""
        raise Unsupported(f"dp_accounting has no event for {run.sampling} batches{how}")
    return theirs.SelfComposedDpEvent(event, steps)


def _fixed_size(run: Run, phase: Phase) -> DpEvent:
    halved = theirs.GaussianDpEvent(0.5 * phase.noise_multiplier)
    if run.adjacency == "add-remove":
        return theirs.PoissonSampledDpEvent(phase.sample_rate, halved)
    if run.adjacency == "zero-out":
        raise Unsupported(
            "dp_accounting takes batches of a fixed size for replacing a record only; the number for "
            "adjacency substitute holds for zero-out as well"
        )
    size = run.dataset_size
    if size is None:
        raise Unsupported("batches of a fixed size need the run's dataset_size")
    batch = round(phase.sample_rate * size)
    return theirs.SampledWithoutReplacementDpEvent(size, batch, halved)


def neighboring_relation(run: RunLike) -> NeighboringRelation:
    """The relation to construct an accountant with."""
    relation = theirs.NeighboringRelation
    adjacency = as_run(run).adjacency
    if adjacency == "substitute":
        return relation.REPLACE_ONE
    if adjacency == "zero-out":
        return relation.REPLACE_SPECIAL
    return relation.ADD_OR_REMOVE_ONE


def from_event(
    event: DpEvent,
    *,
    adjacency: Adjacency | None = None,
    dataset_size: int | None = None,
    replacement_units: bool = False,
) -> Run:
    """The run of an event that is DP-SGD: Gaussian steps with one way of sampling.

    An event does not know its neighbouring relation; ``adjacency`` says which one is meant. Noise is
    in units of the clip norm, as events define it; ``replacement_units=True`` reads the noise of
    ``SampledWithoutReplacementDpEvent`` as dp_accounting's Rényi accountant does, in units of twice
    the clip norm (:func:`to_event` writes such events for it). Raises
    :class:`~dosimeter.Unsupported` for events that are something else, naming it.
    """
    steps = _merged(list(_steps(event, 1, replacement_units)))
    if not steps:
        raise Unsupported("the event has no step")
    return _run(steps, adjacency, dataset_size)


#: What draws the batches, as keywords of a run.
_Kind = tuple[tuple[str, Any], ...]
#: What draws the batches, noise multiplier, sample rate, steps.
_Step = tuple[_Kind, float, float, int]


def _run(steps: list[_Step], adjacency: Adjacency | None, dataset_size: int | None) -> Run:
    kinds = {kind for kind, *_ in steps}
    plain = {(("sampling", "full"),), (("sampling", "poisson"),)}
    # A full batch is a Poisson batch with rate one.
    keywords: dict[str, Any] = {"sampling": "poisson"} if kinds == plain else dict(next(iter(kinds)))
    if len(kinds) > 1 and kinds != plain:
        names = sorted({str(dict(kind)["sampling"]) for kind in kinds})
        if len(names) == 1:
            raise Unsupported("the event is about data sets of different sizes; a run has one")
        raise Unsupported(f"the event mixes {' and '.join(names)} batches; a run has one kind")
    known = keywords.pop("dataset_size", None)
    if known is not None and dataset_size is not None and known != dataset_size:
        raise Unsupported(f"the event is about {known} records, not {dataset_size}")
    return Run(
        adjacency=adjacency,
        dataset_size=known if dataset_size is None else dataset_size,
        phases=[
            Phase(noise_multiplier=noise, sample_rate=rate, steps=count)
            for _, noise, rate, count in steps
        ],
        **keywords,
    )


def _steps(event: Any, count: int, replacement_units: bool) -> list[_Step]:
    if isinstance(event, theirs.NoOpDpEvent):
        return []
    if isinstance(event, theirs.SelfComposedDpEvent):
        inner = _merged(_steps(event.event, 1, replacement_units))
        times = count * int(event.count)
        if len(inner) == 1:
            kind, noise, rate, once = inner[0]
            return [(kind, noise, rate, once * times)]
        return inner * times
    if isinstance(event, theirs.ComposedDpEvent):
        return [step for one in event.events for step in _steps(one, 1, replacement_units)] * count
    return [(*_drawn(event, replacement_units), count)]


def _drawn(event: Any, replacement_units: bool) -> tuple[_Kind, float, float]:
    """How the batches of an event without parts are drawn, its noise and its rate."""
    kind: _Kind
    if isinstance(event, theirs.GaussianDpEvent):
        return (("sampling", "full"),), event.noise_multiplier, 1.0
    if isinstance(event, theirs.PoissonSampledDpEvent):
        rate = event.sampling_probability
        return (("sampling", "full" if rate == 1.0 else "poisson"),), _gaussian(event.event), rate
    if isinstance(event, theirs.SampledWithoutReplacementDpEvent):
        size = event.source_dataset_size
        noise = (2.0 if replacement_units else 1.0) * _gaussian(event.event)
        kind = (("dataset_size", size), ("sampling", "fixed-size"))
        return kind, noise, event.sample_size / size
    if isinstance(event, theirs.SampledWithReplacementDpEvent):
        size = event.source_dataset_size
        kind = (("dataset_size", size), ("replacement", True), ("sampling", "fixed-size"))
        return kind, _gaussian(event.event), event.sample_size / size
    if _Truncated is not None and isinstance(event, _Truncated):
        kind = (
            ("dataset_size", event.dataset_size),
            ("max_batch_size", event.truncated_batch_size),
            ("sampling", "truncated-poisson"),
        )
        return kind, event.noise_multiplier, event.sampling_probability
    raise Unsupported(f"a {type(event).__name__} is not a step of DP-SGD")


def _gaussian(event: Any) -> float:
    if not isinstance(event, theirs.GaussianDpEvent):
        raise Unsupported(f"a sampled {type(event).__name__} is not a step of DP-SGD")
    return float(event.noise_multiplier)


def _merged(steps: list[_Step]) -> list[_Step]:
    """Equal neighbours are one phase."""
    merged: list[_Step] = []
    for kind, noise, rate, count in steps:
        if merged and merged[-1][:3] == (kind, noise, rate):
            count += merged.pop()[3]
        merged.append((kind, noise, rate, count))
    return merged


_Details = privacy_accountant.PrivacyAccountant.CompositionErrorDetails

_ADJACENCIES: dict[Any, Adjacency] = {
    theirs.NeighboringRelation.ADD_OR_REMOVE_ONE: "add-remove",
    theirs.NeighboringRelation.REPLACE_ONE: "substitute",
    theirs.NeighboringRelation.REPLACE_SPECIAL: "zero-out",
}


class Accountant(privacy_accountant.PrivacyAccountant):  # type: ignore[misc]
    """A ``dp_accounting.PrivacyAccountant``: epsilon and delta from above, proven and certified.

    It takes Gaussian events, alone or sampled: Poisson, truncated Poisson, batches of a fixed size
    with or without replacement; and compositions of one kind of them. Noise is in units of the clip
    norm, as events define it.

    >>> import dp_accounting
    >>> step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    >>> round(Accountant().compose(step, 1000).get_epsilon(1e-5), 6)
    1.828237
    """

    def __init__(
        self,
        neighboring_relation: NeighboringRelation = theirs.NeighboringRelation.ADD_OR_REMOVE_ONE,
    ) -> None:
        super().__init__(neighboring_relation)
        self._steps: list[_Step] = []
        self._nothing_private = False

    def _maybe_compose(self, event: DpEvent, count: int, do_compose: bool) -> Any:
        steps = list(self._steps)
        # Whether an event is taken is asked about with a count of zero.
        private, problem = self._read(event, max(count, 1), steps)
        if problem is None and steps:
            try:
                _run(steps, self._adjacency, None)
            except DosimeterError as error:
                problem = _Details(invalid_event=event, error_message=str(error))
        if problem is None and do_compose and count > 0:
            self._steps = _merged(steps)
            self._nothing_private |= not private
        return problem

    def _read(self, event: Any, count: int, steps: list[_Step]) -> tuple[bool, Any]:
        """Appends the steps of an event; whether it is private at all, and what is wrong."""
        if isinstance(event, theirs.NoOpDpEvent):
            return True, None
        if isinstance(event, theirs.NonPrivateDpEvent):
            return False, None
        if isinstance(event, (theirs.SelfComposedDpEvent, theirs.ComposedDpEvent)):
            one = isinstance(event, theirs.SelfComposedDpEvent)
            parts = [event.event] if one else event.events
            private, inner = True, list[_Step]()
            for part in parts:
                fine, problem = self._read(part, 1, inner)
                private &= fine
                if problem is not None:
                    return private, problem
            times = count * (int(event.count) if one else 1)
            inner = _merged(inner)
            if len(inner) == 1:
                steps.append((*inner[0][:3], inner[0][3] * times))
            else:
                steps += inner * times
            return private, None
        try:
            kind, noise, rate = _drawn(event, False)
        except Unsupported as error:
            return True, _Details(invalid_event=event, error_message=str(error))
        if rate == 0.0:
            return True, None
        if noise == 0.0:
            return False, None
        steps.append((kind, noise, rate, count))
        return True, None

    @property
    def _adjacency(self) -> Adjacency:
        return _ADJACENCIES[self.neighboring_relation]

    def run(self) -> Run:
        """What was composed so far, as a run.

        Raises :class:`~dosimeter.Unsupported` before the first step, and for what is not private.
        """
        if self._nothing_private:
            raise Unsupported("a part of what was composed is not private")
        if not self._steps:
            raise Unsupported("nothing was composed yet")
        return _run(self._steps, self._adjacency, None)

    def get_epsilon(self, target_delta: float) -> float:
        """The smallest proven epsilon at a delta, rounded up."""
        if self._nothing_private:
            return math.inf
        if not self._steps or target_delta >= 1.0:
            return 0.0
        if target_delta <= 0.0:
            return math.inf
        asked = account(self.run(), delta=target_delta, lens=SIGNED, quantity="epsilon")
        return max(0.0, asked[0].upper)

    def get_delta(self, target_epsilon: float) -> float:
        """The smallest proven delta at an epsilon, rounded up."""
        if self._nothing_private:
            return 1.0
        if not self._steps or target_epsilon == math.inf:
            return 0.0
        asked = account(self.run(), epsilon=target_epsilon, lens=SIGNED, quantity="delta")
        return asked[0].upper
