"""Runs as ``DpEvent`` of Google's dp_accounting, and back (extra ``dosimeter[dp-accounting]``).

A run is a composition of Poisson-sampled Gaussian events; an event of that shape is a run. What
has no counterpart is refused by name, never approximated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dp_accounting as theirs

from ._types import Adjacency
from .errors import Unsupported
from .runs import Phase, Run, RunLike, as_run

if TYPE_CHECKING:
    from dp_accounting import DpEvent, NeighboringRelation

__all__ = ["from_event", "neighboring_relation", "to_event"]


def to_event(run: RunLike) -> DpEvent:
    """The event that dp_accounting's accountants compose.

    Raises :class:`~dosimeter.Unsupported` for shuffled batches and for groups of records, which
    have no event. Batches of a fixed size become ``SampledWithoutReplacementDpEvent``, whose noise
    dp_accounting counts in units of what replacing a record moves: twice the clip norm, so half of
    the run's noise multiplier.

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
        raise Unsupported(f"an event is about one record, not about {checked.group_size}")
    events = [_step(checked, phase) for phase in checked.phases]
    return events[0] if len(events) == 1 else theirs.ComposedDpEvent(events)


def _step(run: Run, phase: Phase) -> DpEvent:
    event: DpEvent = theirs.GaussianDpEvent(phase.noise_multiplier)
    if run.sampling == "poisson":
        event = theirs.PoissonSampledDpEvent(phase.sample_rate, event)
    elif run.sampling == "fixed-size":
        size = run.dataset_size
        if size is None:
            raise Unsupported("batches of a fixed size need the run's dataset_size")
        batch = round(phase.sample_rate * size)
        halved = theirs.GaussianDpEvent(0.5 * phase.noise_multiplier)
        event = theirs.SampledWithoutReplacementDpEvent(size, batch, halved)
    elif run.sampling != "full":
        raise Unsupported(f"dp_accounting has no event for {run.sampling} batches")
    return theirs.SelfComposedDpEvent(event, phase.steps)


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
    event: DpEvent, *, adjacency: Adjacency | None = None, dataset_size: int | None = None
) -> Run:
    """The run of an event that is DP-SGD: Gaussian steps with one way of sampling.

    An event does not know its neighbouring relation; ``adjacency`` says which one is meant.
    Raises :class:`~dosimeter.Unsupported` for events that are something else, naming it.
    """
    steps = _merged(list(_steps(event, 1)))
    kinds = sorted({kind for kind, *_ in steps})
    if not steps:
        raise Unsupported("the event does nothing: there is no step in it")
    if "full" in kinds and kinds == ["full", "poisson"]:
        # A full batch is a Poisson batch with rate one.
        kinds = ["poisson"]
    if len(kinds) != 1:
        raise Unsupported(f"the event mixes {' and '.join(kinds)} batches; a run has one kind")
    sizes = {size for *_, size in steps if size is not None} | (
        set() if dataset_size is None else {dataset_size}
    )
    if len(sizes) > 1:
        raise Unsupported(f"the event is about data sets of different sizes: {sorted(sizes)}")
    return Run(
        sampling=kinds[0],  # type: ignore[arg-type]
        adjacency=adjacency,
        dataset_size=next(iter(sizes), None),
        phases=[
            Phase(noise_multiplier=noise, sample_rate=rate, steps=count)
            for _, noise, rate, count, _ in steps
        ],
    )


#: How batches are drawn, noise multiplier, sample rate, steps, size of the data set.
_Step = tuple[str, float, float, int, "int | None"]


def _steps(event: Any, count: int) -> list[_Step]:
    if isinstance(event, theirs.NoOpDpEvent):
        return []
    if isinstance(event, theirs.SelfComposedDpEvent):
        inner = _merged(_steps(event.event, 1))
        times = count * int(event.count)
        if len(inner) == 1:
            kind, noise, rate, once, size = inner[0]
            return [(kind, noise, rate, once * times, size)]
        return inner * times
    if isinstance(event, theirs.ComposedDpEvent):
        return [step for one in event.events for step in _steps(one, 1)] * count
    if isinstance(event, theirs.GaussianDpEvent):
        return [("full", event.noise_multiplier, 1.0, count, None)]
    if isinstance(event, theirs.PoissonSampledDpEvent):
        noise = _gaussian(event.event)
        return [("poisson", noise, event.sampling_probability, count, None)]
    if isinstance(event, theirs.SampledWithoutReplacementDpEvent):
        size = event.source_dataset_size
        # Their noise is in units of the distance between two records, twice the clip norm.
        noise = 2.0 * _gaussian(event.event)
        return [("fixed-size", noise, event.sample_size / size, count, size)]
    raise Unsupported(f"a {type(event).__name__} is not a step of DP-SGD")


def _gaussian(event: Any) -> float:
    if not isinstance(event, theirs.GaussianDpEvent):
        raise Unsupported(f"a sampled {type(event).__name__} is not a step of DP-SGD")
    return float(event.noise_multiplier)


def _merged(steps: list[_Step]) -> list[_Step]:
    """Equal neighbours are one phase."""
    merged: list[_Step] = []
    for kind, noise, rate, count, size in steps:
        if merged and merged[-1][:3] == (kind, noise, rate) and merged[-1][4] == size:
            count += merged.pop()[3]
        merged.append((kind, noise, rate, count, size))
    return merged
