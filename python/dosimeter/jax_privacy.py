"""jax-privacy: its execution plans and parameters as runs, its auditor's inputs as ours (extra
``dosimeter[jax-privacy]``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import dp_accounting as events
from ._types import Adjacency
from .auditing import Audit, audit, split
from .errors import InvalidInput, Unsupported
from .games import Attack
from .runs import Phase, Run, RunLike, as_run

if TYPE_CHECKING:
    from jax_privacy.accounting.analysis import DpParams
    from jax_privacy.auditing import CanaryScoreAuditor

__all__ = ["audit_auditor", "auditor", "from_params", "from_plan", "to_params"]


def from_plan(plan: Any, *, adjacency: Adjacency = "add-remove") -> Run:
    """The run of a ``DPExecutionPlan``, from its ``dp_event``.

    The event of a matrix factorisation with several bands is that of a DP-SGD with fewer steps,
    and so is the run. Its zeroed-out neighbours leak as much as added or removed ones. Raises
    :class:`~dosimeter.Unsupported` for events that are something else.
    """
    return events.from_event(plan.dp_event, adjacency=adjacency)


def from_params(params: DpParams, *, num_updates: int, adjacency: Adjacency | None = None) -> Run:
    """The run of ``DpParams`` and a number of updates.

    ``cycle_length`` and ``truncated_batch_size`` are read: cyclic Poisson batches, and Poisson batches
    of which a uniform part is kept. With both, the run is that of one group. As in jax-privacy,
    records that do not fill the groups evenly are left out.

    Raises :class:`~dosimeter.Unsupported` for what a run cannot say: schedules of the batch size or
    of the noise, users with several examples, groups of which batches of a fixed size are drawn.
    """
    noise = params.noise_multipliers
    if noise is None or not params.is_finite_guarantee:
        raise Unsupported("jax-privacy says that these parameters bound nothing")
    if not isinstance(noise, (int, float)):
        raise Unsupported("a schedule of noise multipliers is not read; give phases yourself")
    if params.batch_size_scale_schedule is not None:
        raise Unsupported("a schedule of batch sizes is not read; give phases yourself")
    if params.examples_per_user not in (None, 1):
        raise Unsupported("`examples_per_user` is set, and a run cannot say that; give a group_size")
    method = params.sampling_method.name.lower()
    groups, largest = params.cycle_length or 1, params.truncated_batch_size
    records = params.num_samples // groups
    batches: dict[str, Any]
    if method == "poisson" and largest is not None:
        # A group is a data set of its own, looked at once per cycle.
        num_updates = -(-num_updates // groups)
        batches = {"sampling": "truncated-poisson", "max_batch_size": largest}
        batches |= {"dataset_size": records, "batch_size": params.batch_size}
    elif method == "poisson" and groups > 1:
        batches = {"sampling": "cyclic-poisson", "cycle_length": groups}
        batches |= {"dataset_size": params.num_samples, "sample_rate": params.batch_size / records}
    elif method in ("poisson", "fixed_batch_size") and groups == 1 and largest is None:
        batches = {"sampling": "poisson" if method == "poisson" else "fixed-size"}
        batches |= {"dataset_size": records, "batch_size": params.batch_size}
    else:
        raise Unsupported(f"sampling `{method}` with such groups or limits has no counterpart")
    return Run(noise_multiplier=float(noise), steps=num_updates, adjacency=adjacency, **batches)


def to_params(run: RunLike, *, delta: float) -> DpParams:
    """``DpParams`` of a run with one phase and a known data set size: Poisson batches, cyclic or
    truncated ones."""
    from jax_privacy.accounting.analysis import DpParams

    checked = as_run(run)
    known = ("poisson", "cyclic-poisson", "truncated-poisson")
    if len(checked.phases) != 1 or checked.sampling not in known:
        raise Unsupported("the parameters of jax_privacy describe one phase of Poisson batches")
    if checked.releases or checked.matrix or checked.stopped or checked.group_size != 1:
        raise Unsupported("the parameters of jax_privacy describe one record, one release per step, steps fixed in advance")
    size = checked.dataset_size
    if size is None:
        raise InvalidInput("the run needs its dataset_size")
    phase: Phase = checked.phases[0]
    groups = checked.cycle_length or 1
    batch = phase.sample_rate * (size // groups)
    if abs(batch - round(batch)) > 1e-9 * batch:
        raise Unsupported(f"the expected batch size {batch} is not whole")
    return DpParams(
        noise_multipliers=phase.noise_multiplier,
        num_samples=size,
        delta=delta,
        batch_size=round(batch),
        cycle_length=checked.cycle_length,
        truncated_batch_size=checked.max_batch_size,
    )


def auditor(scores: Any) -> CanaryScoreAuditor:
    """A ``CanaryScoreAuditor`` of an :class:`~dosimeter.Attack` or a table of scores."""
    from jax_privacy.auditing import CanaryScoreAuditor

    members, nonmembers = scores.read() if isinstance(scores, Attack) else split(scores)
    return CanaryScoreAuditor(members, nonmembers)


def audit_auditor(theirs: CanaryScoreAuditor, **options: Any) -> Audit:
    """Our audit of the scores that a ``CanaryScoreAuditor`` holds."""
    return audit(members=theirs._in_canary_scores, nonmembers=theirs._out_canary_scores, **options)
