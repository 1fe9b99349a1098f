"""The noise, the steps or the sample rate that just meets a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from . import _asking
from ._answers import InJson
from ._names import SIGNED, Schema
from ._types import Adjacency, Document, Lens, Permutation, Sampling
from ._values import as_document, whole
from .claims import Claim
from .runs import FurtherRelease, Matrix, Run, run_keys

#: What can be solved for.
Unknown = Literal["noise_multiplier", "steps", "sample_rate", "batch_size", "epochs"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Calibration(InJson):
    """The answer of :func:`calibrate`.

    ``solution`` is on the safe side: ``achieved`` is at most the target for leakage, at least
    the target for Bayes security, by ``slack``. ``run`` has the solution in it.
    """

    unknown: Unknown
    solution: float
    solution_shown: str
    run: Run
    target: Document
    achieved: Claim
    slack: float
    evaluations: int
    warnings: tuple[str, ...]

    SCHEMA: ClassVar[Schema] = "dosimeter.calibrate/1"

    def to_dict(self) -> Document:
        """The ``dosimeter.calibrate/1`` document, as the command line prints it."""
        return {
            "schema": self.SCHEMA,
            "solution": {self.unknown: self.solution},
            "solution_shown": self.solution_shown,
            "run": self.run.to_dict(),
            "target": self.target,
            "achieved": self.achieved.to_dict(),
            "slack": self.slack,
            "evaluations": self.evaluations,
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Calibration:
        found = as_document(document, cls.SCHEMA)
        ((unknown, solution),) = found["solution"].items()
        return cls(
            unknown=unknown,
            solution=solution,
            solution_shown=found["solution_shown"],
            run=Run.from_json({"run": found["run"]}),
            target=found["target"],
            achieved=Claim.from_dict(found["achieved"]),
            slack=found["slack"],
            evaluations=found["evaluations"],
            warnings=tuple(found["warnings"]),
        )

    def __hash__(self) -> int:
        return hash((self.unknown, self.solution, self.run))

    def __repr__(self) -> str:
        return f"<Calibration {self}>"

    def __str__(self) -> str:
        return f"{self.unknown} {self.solution_shown}: {self.achieved}"

    def _repr_html_(self) -> str:
        from ._html import claims_table, definition

        rows = [(self.unknown, self.solution_shown), ("slack", repr(self.slack))]
        return definition("Calibration", rows) + claims_table([self.achieved])


def calibrate(
    solve: Unknown = "noise_multiplier",
    *,
    target_epsilon: float | None = None,
    target_mu: float | None = None,
    target_bayes_security: float | None = None,
    target_advantage: float | None = None,
    target_tpr: float | None = None,
    target_attack_accuracy: float | None = None,
    target_reconstruction: float | None = None,
    delta: float | None = None,
    fpr: float | None = None,
    prior: float | None = None,
    lens: Lens = SIGNED,
    noise_multiplier: float | None = None,
    sample_rate: float | None = None,
    dataset_size: float | None = None,
    batch_size: float | None = None,
    steps: float | None = None,
    epochs: float | None = None,
    clip_norm: float | None = None,
    sampling: Sampling | None = None,
    adjacency: Adjacency | None = None,
    group_size: float | None = None,
    permutation: Permutation | None = None,
    replacement: bool | None = None,
    max_batch_size: float | None = None,
    cycle_length: float | None = None,
    uses_per_epoch: float | None = None,
    count_noise: float | None = None,
    releases: Iterable[FurtherRelease | Mapping[str, float]] = (),
    matrix: Matrix | Mapping[str, Any] | None = None,
    time_limit: float | None = None,
) -> Calibration:
    """Solves for one number of a run such that a target is met, on the safe side.

    One target: ``target_epsilon`` or ``target_mu`` at ``delta``, ``target_tpr`` at ``fpr``,
    ``target_attack_accuracy`` at ``prior`` (0.5 unless given), ``target_reconstruction`` at
    ``prior``, ``target_advantage``, ``target_bayes_security``. The run is described by the
    keywords of :class:`Run`, without the one that is solved for. ``time_limit`` is in seconds of
    processor time (10 unless given).

    >>> import dosimeter
    >>> answer = dosimeter.calibrate(
    ...     "noise_multiplier", target_epsilon=2.0, delta=1e-5, sample_rate=0.01, steps=1000
    ... )
    >>> print(answer)
    noise_multiplier 0.959102: epsilon @ delta 1e-5 <= 2.000 (proven, composition)
    >>> answer.achieved.upper <= 2.0
    True
    """
    question = {
        "solve": solve.replace("_", "-"),
        "target_epsilon": target_epsilon,
        "target_mu": target_mu,
        "target_bayes_security": target_bayes_security,
        "target_advantage": target_advantage,
        "target_tpr": target_tpr,
        "target_attack_accuracy": target_attack_accuracy,
        "target_reconstruction": target_reconstruction,
        "delta": delta,
        "fpr": fpr,
        "prior": prior,
        "lens": lens,
        "time_limit": time_limit,
        "run": run_keys(
            noise_multiplier=noise_multiplier,
            sample_rate=sample_rate,
            dataset_size=dataset_size,
            batch_size=batch_size,
            steps=steps,
            epochs=epochs,
            clip_norm=clip_norm,
            sampling=sampling,
            adjacency=adjacency,
            group_size=group_size,
            permutation=permutation,
            replacement=replacement,
            max_batch_size=max_batch_size,
            cycle_length=cycle_length,
            uses_per_epoch=uses_per_epoch,
            count_noise=count_noise,
            releases=releases,
            matrix=matrix,
        ),
    }
    return Calibration.from_json(_asking.ask("calibrate", question)[1])


@dataclass(frozen=True, kw_only=True)
class AdviceRow:
    """One batch size with the noise that meets the target; a ``reason`` where none does."""

    batch_size: int
    steps: int
    noise_multiplier: float | None = None
    noise_shown: str | None = None
    noise_per_record: float | None = None
    noise_of_training: float | None = None
    proven: str | None = None
    heuristic: str | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The answer of :func:`advise`: the ``recommended`` batch size, and why."""

    target: Document
    lens: Lens
    dataset_size: int
    rows: tuple[AdviceRow, ...]
    recommended: int | None
    reason: str
    warnings: tuple[str, ...]

    SCHEMA: ClassVar[Schema] = "dosimeter.advice/1"

    def __hash__(self) -> int:
        return hash((self.rows, self.recommended))

    @classmethod
    def from_json(cls, text: str) -> Advice:
        found = as_document(text, cls.SCHEMA)
        found.pop("schema")
        found |= {
            "rows": tuple(AdviceRow(**row) for row in found["rows"]),
            "recommended": found.get("recommended"),
            "warnings": tuple(found["warnings"]),
        }
        return cls(**found)

    def _repr_html_(self) -> str:
        from ._html import page, table

        keys = ("batch_size", "steps", "noise_shown", "proven", "heuristic")
        rows = [[str(getattr(row, key) or "-") for key in keys] for row in self.rows]
        return page(table([key.replace("_", " ") for key in keys], rows), f"<p>{self.reason}</p>")


def advise(
    batch_sizes: Iterable[int] = (),
    *,
    dataset_size: float,
    epochs: float | None = None,
    steps: float | None = None,
    target_epsilon: float | None = None,
    delta: float | None = None,
    sampling: Sampling | None = None,
    adjacency: Adjacency | None = None,
    lens: Lens = SIGNED,
    **target: float,
) -> Advice:
    """The noise for several batch sizes at one target, and the size to begin with.

    Other targets are keywords as in :func:`calibrate`. Without ``batch_sizes``: powers of two.

    >>> import dosimeter
    >>> advice = dosimeter.advise(
    ...     [256, 1024], target_epsilon=3, delta=1e-6, dataset_size=100_000, epochs=20
    ... )
    >>> [row.proven for row in advice.rows]
    ['<= 3.000', '<= 3.000']
    """
    question = {
        "batch_sizes": [whole("a batch size", size) for size in batch_sizes],
        "target_epsilon": target_epsilon,
        "delta": delta,
        "lens": lens,
        "run": {
            "dataset_size": dataset_size,
            "epochs": epochs,
            "steps": steps,
            "sampling": sampling,
            "adjacency": adjacency,
        },
    }
    return Advice.from_json(_asking.ask("advice", question | target)[1])
