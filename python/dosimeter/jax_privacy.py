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


def from_params(params: DpParams, *, num_updates: int) -> Run:
    """The run of ``DpParams`` and a number of updates.

    Raises :class:`~dosimeter.Unsupported` for what a run cannot say: schedules of the batch size
    or of the noise, cyclic or truncated sampling.
    """
    noise = params.noise_multipliers
    if noise is None or not params.is_finite_guarantee:
        raise Unsupported("the parameters give no finite guarantee")
    if not isinstance(noise, (int, float)):
        raise Unsupported("a schedule of noise multipliers is not read; give phases yourself")
    if params.batch_size_scale_schedule is not None:
        raise Unsupported("a schedule of batch sizes is not read; give phases yourself")
    for name in ("cycle_length", "truncated_batch_size", "examples_per_user"):
        if getattr(params, name) not in (None, 1):
            raise Unsupported(f"`{name}` is set, and a run cannot say that")
    method = params.sampling_method.name.lower()
    sampling = {"poisson": "poisson", "fixed_batch_size": "fixed-size"}.get(method)
    if sampling is None:
        raise Unsupported(f"sampling `{method}` has no counterpart")
    return Run(
        noise_multiplier=float(noise),
        dataset_size=params.num_samples,
        batch_size=params.batch_size,
        steps=num_updates,
        sampling=sampling,  # type: ignore[arg-type]
    )


def to_params(run: RunLike, *, delta: float) -> DpParams:
    """``DpParams`` of a Poisson run with one phase and a known data set size."""
    from jax_privacy.accounting.analysis import DpParams

    checked = as_run(run)
    if len(checked.phases) != 1 or checked.sampling != "poisson":
        raise Unsupported("only Poisson batches and one phase have such parameters")
    size = checked.dataset_size
    if size is None:
        raise InvalidInput("the run needs its dataset_size")
    phase: Phase = checked.phases[0]
    batch = phase.sample_rate * size
    if abs(batch - round(batch)) > 1e-9 * batch:
        raise Unsupported(f"the expected batch size {batch} is not whole")
    return DpParams(
        noise_multipliers=phase.noise_multiplier,
        num_samples=size,
        delta=delta,
        batch_size=round(batch),
    )


def auditor(scores: Any) -> CanaryScoreAuditor:
    """A ``CanaryScoreAuditor`` of an :class:`~dosimeter.Attack` or a table of scores."""
    from jax_privacy.auditing import CanaryScoreAuditor

    members, nonmembers = scores.read() if isinstance(scores, Attack) else split(scores)
    return CanaryScoreAuditor(members, nonmembers)


def audit_auditor(theirs: CanaryScoreAuditor, **options: Any) -> Audit:
    """Our audit of the scores that a ``CanaryScoreAuditor`` holds."""
    return audit(members=theirs._in_canary_scores, nonmembers=theirs._out_canary_scores, **options)
