"""What a training really did, against what is claimed: the tests behind every ``Recorder``.

A :class:`Recording` is told which records each step drew and, at some steps, how the gradient that
reached the optimizer differs from the sum of clipped gradients (the *residual*, which should be
the noise). It knows no framework; :mod:`dosimeter.torch` and :mod:`dosimeter.jax` feed it.

Its accusations are statistical tests with one false-alarm rate for all of them together
(``false_alarm``, 1e-4 by default): a healthy training is accused at most that often, looked at
once. The bounds behind them hold for every sample size. What a recording holds is computed from
records and is not private.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from . import _evidence
from ._names import SIGNED
from ._torch_loaders import drawn_in_passes
from ._types import Document
from .claims import account
from .errors import InvalidInput, NotCertified, Unsupported
from .runs import Run, RunLike, as_run

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

__all__ = ["Check", "Finding", "Recording"]

#: Noise may fall short of the claim by this share without being accused (rounding).
NOISE_TOLERANCE = 0.01
#: The sum may differ from that of clipped gradients by this share without being accused.
SUM_TOLERANCE = 0.02
#: Tests that share the false-alarm rate.
TESTS = (
    "noise",
    "sum",
    "normaliser",
    "repeated noise",
    "noise of another step",
    "batch sizes",
    "records",
    "neighbouring batches",
    "rate",
)
#: Tests whose failure leaves no run to state: a record's influence, or the noise against it, is not
#: what a step of DP-SGD has.
LAWLESS = frozenset(
    {"sum", "mixed records", "normaliser", "repeated noise", "noise of another step"}
)
#: Steps below which nothing is said about sampling.
FEW = 10
#: Entries of a residual that are kept, to find noise that comes again, and for how many looks.
BEGINNING, KEPT = 256, 100


@dataclass(frozen=True)
class Finding:
    """Evidence against the claim, or one test without any."""

    test: str
    accused: bool
    #: A bound on the probability of a healthy training that looks like this; 0 where it is certain.
    p_value: float
    text: str

    def __str__(self) -> str:
        return f"{'ACCUSED' if self.accused else 'passed '} {self.test}: {self.text}"


@dataclass(frozen=True)
class Check:
    """One step's residual, in units of the claimed noise's standard deviation."""

    step: int
    #: Parameters, and the squared norm of the residual.
    degrees: int
    energy: float
    #: The residual along the sum of clipped gradients, and that sum's norm.
    along: float
    signal: float
    #: Records in the batch.
    size: int
    #: Whether the sum is known to be exact: no dropout, no other randomness.
    exact: bool = True
    #: p-values of noise that occurs twice in the step, and that an earlier step had.
    repeated: float = 1.0
    before: float = 1.0


class Recording:
    """Collects what a training does; ``claim`` is the run it is said to be, of one phase."""

    def __init__(
        self,
        claim: RunLike,
        *,
        dataset_size: int | None = None,
        false_alarm: float = 1e-4,
    ) -> None:
        run = as_run(claim)
        if len(run.phases) != 1:
            raise InvalidInput("a recorder needs a claim of one phase; record each phase by itself")
        if not 0.0 < false_alarm < 1.0:
            raise InvalidInput(f"a false-alarm rate of {false_alarm} is not between 0 and 1")
        self.claim = run
        self.dataset_size = dataset_size or run.dataset_size
        self.false_alarm = false_alarm
        self.steps = 0
        self.sizes: list[int] = []
        self.checks: list[Check] = []
        self.certain: dict[str, str] = {}
        self.notes: list[str] = []
        self._draws = _Draws(self.dataset_size) if self.dataset_size else None
        self._sees_records = False
        self._earlier: list[NDArray[numpy.float64]] = []

    # What is told.

    def step(self, *, size: int | None = None, records: Any = None) -> None:
        """Notes one update: on these records, or on this number of them."""
        self.steps += 1
        if records is not None:
            size = len(records)
            if self._draws is not None:
                self._sees_records = True
                self._draws.add(records)
        if size is not None:
            self.sizes.append(int(size))

    def check(self, check: Check) -> None:
        """The residual of a step."""
        self.checks.append(check)

    def known_noise(self, residual: NDArray[numpy.float64]) -> float:
        """p-value of the beginning of a residual that an earlier look saw too; keeps it.

        The looks of earlier sessions are in the checkpoint: a resumed training that seeds its noise
        as before draws the same noise again.
        """
        here = residual[:BEGINNING]
        norm = math.sqrt(float(here @ here))
        p_value = 1.0
        if len(here) < 16 or norm == 0.0:
            return p_value
        for there in self._earlier:
            if len(there) == len(here):
                cosine = abs(float(here @ there)) / norm
                p_value = min(p_value, _evidence.alignment(min(cosine, 1.0), len(here)))
        p_value = min(1.0, p_value * max(len(self._earlier), 1))
        self._earlier.append(here / norm)
        if len(self._earlier) > KEPT:
            # The first looks are those that a new session repeats, the last ones those of a loop.
            del self._earlier[KEPT // 2]
        return p_value

    def accuse(self, test: str, text: str) -> None:
        """A finding that needs no statistics."""
        self.certain.setdefault(test, text)

    def note(self, text: str) -> None:
        """Something that was not looked at, with the reason."""
        if text not in self.notes:
            self.notes.append(text)

    # What is found.

    def findings(self) -> tuple[Finding, ...]:
        """Every test that could be made, the accusations first."""
        found = [Finding(name, True, 0.0, text) for name, text in self.certain.items()]
        found += self._counted()
        level = self.false_alarm / len(TESTS)
        for name, p_value, text, large in [*self._noise(), *self._sampling()]:
            found.append(Finding(name, large and p_value <= level, p_value, text))
        return tuple(sorted(found, key=lambda finding: not finding.accused))

    @property
    def accused(self) -> bool:
        """Whether any test contradicts the claim."""
        return any(finding.accused for finding in self.findings())

    @property
    def noise_multiplier(self) -> float | None:
        """The noise that was measured; None where no step was looked into."""
        if not self.checks:
            return None
        energy = sum(check.energy - check.along**2 for check in self.checks)
        degrees = sum(check.degrees - 1 for check in self.checks)
        return float(self._noise_claimed * math.sqrt(max(energy, 0.0) / degrees))

    @property
    def _noise_claimed(self) -> float:
        return float(self.claim.phases[0].noise_multiplier)

    def _counted(self) -> list[Finding]:
        claimed, done = self.claim.total_steps, self.steps
        if done > claimed:
            text = f"{done} steps were taken, {claimed} are claimed"
            return [Finding("steps", True, 0.0, text)]
        return [Finding("steps", False, 1.0, f"{done} of the {claimed} steps that are claimed")]

    def _noise(self) -> list[tuple[str, float, str, bool]]:
        checks = self.checks
        if not checks:
            return []
        energy = sum(check.energy - check.along**2 for check in checks)
        degrees = sum(check.degrees - 1 for check in checks)
        measured = self.noise_multiplier or 0.0
        tolerated = (1.0 - NOISE_TOLERANCE) ** 2
        text = (
            f"noise multiplier {measured:.4g} measured in {len(checks)} steps, "
            f"{self._noise_claimed:.4g} claimed"
        )
        found = [("noise", _evidence.chi_square_below(energy / tolerated, degrees), text, True)]
        exact = [check for check in checks if check.exact and check.signal > 0.0]
        if exact:
            weight = sum(check.signal**2 for check in exact)
            slope = sum(check.along * check.signal for check in exact) / weight
            beyond = max(0.0, abs(slope) - SUM_TOLERANCE)
            text = (
                f"what was summed is {1.0 + slope:.3g} times the sum of clipped gradients, "
                f"+- {3.0 / math.sqrt(weight):.2g}"
            )
            found.append(("sum", _evidence.normal(beyond * math.sqrt(weight)), text, True))
        found += self._normaliser(exact)
        for name, key, words in (
            ("repeated noise", "repeated", "the same noise at several parameters"),
            ("noise of another step", "before", "the same noise in two steps"),
        ):
            smallest = min(getattr(check, key) for check in checks)
            p_value = min(1.0, smallest * len(checks))
            told = words if p_value < 0.01 else f"no sign of {words}"
            found.append((name, p_value, told, True))
        return found

    def _normaliser(self, exact: list[Check]) -> list[tuple[str, float, str, bool]]:
        """Does the noise shrink when the batch grows? Then the realised size divides."""
        sizes = [check.size for check in exact if check.size > 0]
        if len(sizes) < 3 or len(set(sizes)) < 2:
            return []
        used = [check for check in exact if check.size > 0]
        mean = sum(sizes) / len(sizes)
        weights = [(mean / check.size) ** 2 for check in used]
        energies = [max(check.energy - check.along**2, 0.0) for check in used]
        degrees = [float(check.degrees - 1) for check in used]
        p_value = _evidence.weighted_energy(energies, weights, degrees)
        # The slope of relative energy against what the realised size would make of it is 1.
        relative = [energy / degree for energy, degree in zip(energies, degrees, strict=True)]
        middle = sum(relative) / len(relative)
        centre = sum(weights) / len(weights)
        spread = sum((weight - centre) ** 2 for weight in weights)
        slope = 0.0
        if middle > 0.0 and spread > 0.0:
            pairs = zip(weights, relative, strict=True)
            slope = sum((w - centre) * (r / middle - 1.0) for w, r in pairs) / spread * centre
        text = (
            f"the noise follows the realised batch size with slope {slope:.2f} (0: divided by a "
            "constant, 1: by the realised size)"
        )
        return [("normaliser", p_value, text, slope > 0.25)]

    def _sampling(self) -> list[tuple[str, float, str, bool]]:
        if self.claim.sampling != "poisson" or len(self.sizes) < FEW or self.dataset_size is None:
            return []
        rate, records = float(self.claim.phases[0].sample_rate), self.dataset_size
        mean = sum(self.sizes) / len(self.sizes)
        found = [
            (
                "rate",
                _evidence.binomial(sum(self.sizes), records * len(self.sizes), rate),
                f"batches have {mean:.1f} records on average, {records * rate:.1f} are claimed",
                True,
            ),
            (
                "batch sizes",
                _evidence.dispersion(self.sizes, records, rate),
                f"standard deviation {_deviation(self.sizes, records * rate):.2f}, "
                f"{math.sqrt(records * rate * (1 - rate)):.2f} in Poisson batches",
                True,
            ),
        ]
        if self._draws is not None and self._sees_records:
            found += self._draws.tests(rate)
        return found

    @property
    def sampling(self) -> str:
        """How batches were drawn: ``poisson`` where nothing contradicts the claimed rate, another way
        where the records show it, or ``unknown``."""
        told = self._draws.scheme() if self._draws is not None and self._sees_records else None
        if told is not None:
            return told
        if len(set(self.sizes)) == 1 and len(self.sizes) >= FEW and not self._sees_records:
            everything = self.dataset_size is not None and self.sizes[0] == self.dataset_size
            # Shuffled and fixed-size batches look alike; shuffling is the one with less privacy.
            return "full" if everything else "shuffle"
        level = self.false_alarm / len(TESTS)
        tests = self._sampling()
        if tests and all(p_value > level for _, p_value, _, _ in tests):
            return "poisson"
        return "unknown" if self.claim.sampling == "poisson" or not tests else self.claim.sampling

    def run(self) -> Run:
        """The run that happened: steps taken, the sampling that was recognised, and the noise:
        the claimed one, or the measured one where the claim is refuted.

        Raises :class:`~dosimeter.Unsupported` where there is no such run: batches of no known
        kind, no noise, or steps that are not those of DP-SGD (see :data:`LAWLESS`).
        """
        if self.steps == 0:
            raise InvalidInput("no step was recorded yet")
        scheme = self.sampling
        if scheme == "unknown":
            raise Unsupported("the way batches were drawn was not recognised; no run is stated")
        noise = self._noise_claimed
        accused = {finding.test for finding in self.findings() if finding.accused}
        broken = sorted(accused & LAWLESS)
        if broken:
            raise Unsupported(
                f"no run is stated: after what was found ({', '.join(broken)}), noise and clip norm no "
                "longer bound what a record can change"
            )
        if "noise" in accused:
            noise = self.noise_multiplier or 0.0
            if noise < 1e-3 * self._noise_claimed:
                raise Unsupported("no noise was found; a run without noise has no epsilon")
        options: dict[str, Any] = {
            "noise_multiplier": noise,
            "steps": self.steps,
            "sampling": scheme,
            "adjacency": self.claim.adjacency,
            "clip_norm": self.claim.clip_norm,
            "dataset_size": self.dataset_size,
        }
        if scheme == "poisson":
            options["sample_rate"] = self.claim.phases[0].sample_rate
        elif scheme != "full":
            options["batch_size"] = max(self.sizes)
        return Run(**options)

    def compare(self, *, delta: float) -> Document:
        """The claimed epsilon beside that of the run that happened, with the findings."""
        document: Document = {
            "schema": "dosimeter.recording/1",
            "accused": self.accused,
            "findings": [asdict(finding) for finding in self.findings()],
            "notes": list(self.notes),
            "claimed": {"run": self.claim.to_dict()} | _epsilon(self.claim, delta),
            "happened": None,
        }
        try:
            run = self.run()
        except Unsupported as refusal:
            document["happened"] = {"run": None, "reason": refusal.message}
        else:
            document["happened"] = {"run": run.to_dict()} | _epsilon(run, delta)
        return document

    def state_dict(self) -> Document:
        """What a checkpoint needs, so that a resumed training is recorded as a whole."""
        return {
            "steps": self.steps,
            "sizes": list(self.sizes),
            "checks": [asdict(check) for check in self.checks],
            "certain": dict(self.certain),
            "notes": list(self.notes),
            "earlier": [beginning.tolist() for beginning in self._earlier],
            "draws": None if not self._sees_records or self._draws is None else self._draws.state(),
        }

    def load_state_dict(self, state: Document) -> None:
        """Goes on where a checkpoint ended."""
        import numpy

        self.steps = int(state["steps"])
        self.sizes = list(state["sizes"])
        self.checks = [Check(**check) for check in state["checks"]]
        self.certain = dict(state["certain"])
        self.notes = list(state["notes"])
        self._earlier = [numpy.asarray(part, dtype=float) for part in state.get("earlier", [])]
        if state["draws"] is not None and self._draws is not None:
            self._draws.load(state["draws"])
            self._sees_records = True

    def __repr__(self) -> str:
        lines = [f"<Recording of {self.steps} steps, {len(self.checks)} looked into>"]
        return "\n".join([*lines, *map(str, self.findings()), *(f"note: {n}" for n in self.notes)])


class Watching:
    """What every recorder of a framework says of its ``recording``."""

    recording: Recording

    def findings(self) -> tuple[Finding, ...]:
        """Every test that could be made, the accusations first."""
        return self.recording.findings()

    @property
    def accused(self) -> bool:
        """Whether any test contradicts the claim."""
        return self.recording.accused

    def run(self) -> Run:
        """The run that happened; see :meth:`dosimeter.recording.Recording.run`."""
        return self.recording.run()

    def compare(self, *, delta: float) -> Document:
        """The claim beside what happened, with the findings."""
        return self.recording.compare(delta=delta)

    def __repr__(self) -> str:
        return repr(self.recording)


class _Draws:
    """Which records were drawn, without keeping the batches."""

    def __init__(self, records: int) -> None:
        import numpy

        self.records = records
        self.counts: NDArray[numpy.int64] = numpy.zeros(records, dtype=numpy.int64)
        self.batches = 0
        self.largest = 0
        self.twice_in_a_batch = False
        #: Pairs of neighbouring batches that share no batch with another pair.
        self.pairs = 0
        self.shared = 0
        self._last: NDArray[numpy.int64] | None = None
        #: Whether no record came twice before (nearly) all had come once, and how often they had.
        self.partitions = True
        self.epochs = 0
        self._seen: NDArray[numpy.bool_] = numpy.zeros(records, dtype=bool)
        self._in_epoch = 0
        self._sizes_in_epoch: list[int] = []
        self.even = True
        #: Whether every epoch went through the records in their own order.
        self.ordered = True

    def add(self, records: Any) -> None:
        import numpy

        batch = numpy.asarray(records, dtype=numpy.int64).reshape(-1)
        if len(batch) and (batch.min() < 0 or batch.max() >= self.records):
            raise InvalidInput(
                f"record {int(batch.max())} was drawn from a data set of {self.records} records"
            )
        once = numpy.unique(batch)
        self.twice_in_a_batch |= len(once) != len(batch)
        numpy.add.at(self.counts, batch, 1)
        self.batches += 1
        self.largest = max(self.largest, len(batch))
        if self._last is None:
            self._last = once
        else:
            self.pairs += 1
            self.shared += len(numpy.intersect1d(self._last, once, assume_unique=True))
            self._last = None
        if self._seen[once].any():
            # A new epoch, if all but a dropped last batch had come.
            self.partitions &= self._in_epoch >= self.records - self.largest + 1
            self._end_epoch()
        self.ordered &= bool((batch == numpy.arange(len(batch)) + self._in_epoch).all())
        self._seen[once] = True
        self._in_epoch += len(once)
        self._sizes_in_epoch.append(len(batch))
        if self._in_epoch == self.records:
            self._end_epoch()

    def _end_epoch(self) -> None:
        self.epochs += 1
        sizes = self._sizes_in_epoch
        # Equal sizes, but for the last one.
        self.even &= len(set(sizes[:-1])) <= 1 and (len(sizes) < 2 or sizes[-1] <= sizes[0])
        self._sizes_in_epoch = []
        self._seen[:] = False
        self._in_epoch = 0

    def scheme(self) -> str | None:
        """What the records themselves show, without a test; None where they show nothing."""
        if self.batches < 2:
            return None
        if (self.counts == self.batches).all():
            return "full"
        if self.partitions and self.epochs >= 1 and self.batches >= FEW:
            return drawn_in_passes(even=self.even, ordered=self.ordered)
        if self.twice_in_a_batch:
            return "unknown"
        if self.batches >= FEW and self.counts.sum() == self.batches * self.largest:
            return "fixed-size"
        return None

    def tests(self, rate: float) -> list[tuple[str, float, str, bool]]:
        found = [
            (
                "records",
                _evidence.dispersion(self.counts, self.batches, rate),
                "standard deviation of the number of batches that a record is in: "
                f"{_deviation(self.counts, self.batches * rate):.2f}, "
                f"{math.sqrt(self.batches * rate * (1 - rate)):.2f} in Poisson batches",
                True,
            )
        ]
        if self.pairs:
            mean = self.records * rate * rate
            found.append(
                (
                    "neighbouring batches",
                    _evidence.binomial(self.shared, self.records * self.pairs, rate * rate),
                    f"neighbouring batches share {self.shared / self.pairs:.2f} records, "
                    f"{mean:.2f} in Poisson batches",
                    True,
                )
            )
        return found

    _KEPT = (
        "batches",
        "largest",
        "twice_in_a_batch",
        "pairs",
        "shared",
        "partitions",
        "epochs",
        "even",
        "ordered",
        "_in_epoch",
        "_sizes_in_epoch",
    )

    def state(self) -> Document:
        state = {name: getattr(self, name) for name in self._KEPT}
        arrays = {"counts": self.counts.tolist(), "seen": self._seen.nonzero()[0].tolist()}
        return state | arrays | {"last": None if self._last is None else self._last.tolist()}

    def load(self, state: Document) -> None:
        import numpy

        for name in self._KEPT:
            # States of version 0.2 do not say whether records came in order.
            setattr(self, name, state.get(name, False))
        self.counts = numpy.asarray(state["counts"], dtype=numpy.int64)
        self._seen[:] = False
        self._seen[numpy.asarray(state["seen"], dtype=numpy.int64)] = True
        last = state["last"]
        self._last = None if last is None else numpy.asarray(last, dtype=numpy.int64)


def _deviation(counts: Any, mean: float) -> float:
    return math.sqrt(sum((float(count) - mean) ** 2 for count in counts) / max(len(counts), 1))


def _epsilon(run: Run, delta: float) -> Document:
    try:
        claim = account(run, delta=delta, lens=SIGNED).select(quantity="epsilon")[0]
    except (Unsupported, NotCertified) as refusal:
        return {"epsilon": None, "reason": refusal.message}
    return {"epsilon": claim.quoted, "shown": claim.shown, "delta": delta}


def repeated(
    piece: Callable[[int, int], NDArray[numpy.float64]], total: int, *, starts: list[int], window: int
) -> float:
    """p-value of noise that occurs at two places of one residual of ``total`` entries.

    ``piece(first, last)`` gives entries. The stretches that begin at ``starts`` are compared with
    every stretch of the same length that does not overlap them, by the angle between them. Under
    independent noise of any one scale the cosine's tail is known
    (:func:`dosimeter._evidence.alignment`); all places are paid for.
    """
    import numpy

    if window < 16 or total < 2 * window:
        return 1.0
    # Long enough that most of a transform is useful, no longer than the residual.
    length = min(1 << 16, 1 << (total + window - 1).bit_length())
    length = max(length, 1 << (2 * window - 1).bit_length())
    sought = []
    for start in starts:
        entries = piece(start, min(start + window, total))
        norm = float(numpy.linalg.norm(entries))
        if len(entries) == window and norm > 0.0:
            transform = numpy.conj(numpy.fft.rfft(entries, length))
            sought.append((start, norm, transform))
    largest, compared = 0.0, 0
    for first in range(0, total - window + 1, length - window + 1):
        entries = piece(first, min(first + length, total))
        if len(entries) < window:
            break
        squares = numpy.concatenate(([0.0], numpy.cumsum(entries * entries)))
        norms = numpy.sqrt(numpy.maximum(squares[window:] - squares[:-window], 0.0))
        spectrum = numpy.fft.rfft(entries, length)
        places = numpy.arange(first, first + len(norms))
        for start, norm, transform in sought:
            products = numpy.fft.irfft(spectrum * transform, length)[: len(norms)]
            usable = (numpy.abs(places - start) >= window) & (norms > 0.0)
            if usable.any():
                compared += int(usable.sum())
                cosines = numpy.abs(products[usable]) / (norms[usable] * norm)
                largest = max(largest, float(cosines.max()))
    return min(1.0, _evidence.alignment(min(largest, 1.0), window) * max(compared, 1))
