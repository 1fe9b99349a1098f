"""Tail probabilities that err upwards: what a :class:`dosimeter.recording.Recording` accuses with.

Each function gives an upper bound on the probability that a healthy training shows a statistic as
extreme as the one seen. The bounds are Chernoff's, so they hold for every sample size and are not
approximations; a test that rejects when the bound is at most ``a`` is wrong with probability at
most ``a``. NumPy is all they need.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

#: Beyond this many standard deviations a count enters the dispersion with this distance.
_WINSOR = 6.0


def normal(z: float) -> float:
    """P(|Z| >= z) of a standard Gaussian; exact."""
    return math.erfc(abs(z) / math.sqrt(2.0))


def chi_square_below(statistic: float, degrees: float) -> float:
    """P(chi-square with ``degrees`` <= statistic), from above.

    With x = statistic / degrees < 1 the minimum over l of E exp(l (s - X)) is
    (x exp(1 - x))^(degrees / 2).

    >>> chi_square_below(50.0, 100) < 1e-4 < chi_square_below(80.0, 100)
    True
    """
    share = statistic / degrees
    if share >= 1.0:
        return 1.0
    if share <= 0.0:
        return 0.0
    return math.exp(0.5 * degrees * (1.0 - share + math.log(share)))


def binomial(count: int, trials: int, rate: float) -> float:
    """Probability of a Binomial(trials, rate) at least as far on the same side, doubled.

    >>> binomial(50, 100, 0.5) == 1.0 and binomial(90, 100, 0.5) < 1e-12
    True
    """
    share = count / trials
    exponent = 0.0
    for part, base in ((share, rate), (1.0 - share, 1.0 - rate)):
        if part > 0.0:
            if base <= 0.0:
                return 0.0
            exponent += part * math.log(part / base)
    return min(1.0, 2.0 * math.exp(-trials * max(exponent, 0.0)))


def alignment(cosine: float, dimensions: int) -> float:
    """P(|cos| >= cosine) of the angle between two independent Gaussian vectors, from above.

    A cap of the sphere in d dimensions has at most the share exp(-d x^2 / 2) (K. Ball, An
    Elementary Introduction to Modern Convex Geometry, 1997, Lemma 2.2).
    """
    return min(1.0, 2.0 * math.exp(-0.5 * dimensions * cosine * cosine))


def dispersion(counts: Sequence[int] | NDArray[numpy.int64], trials: int, rate: float) -> float:
    """Counts that vary otherwise than independent Binomial(trials, rate), doubled.

    The statistic is the sum of squared distances from the mean, each distance cut at six standard
    deviations; Chernoff's bound with the exact distribution of one term.

    >>> import numpy
    >>> healthy = numpy.random.default_rng(0).binomial(1000, 0.05, size=200)
    >>> dispersion(healthy, 1000, 0.05) > 0.01 and dispersion([50] * 200, 1000, 0.05) < 1e-50
    True
    """
    import numpy

    mean = trials * rate
    deviation = math.sqrt(trials * rate * (1.0 - rate))
    cut = _WINSOR * deviation + 3.0
    low, high = max(0, math.floor(mean - cut)), min(trials, math.ceil(mean + cut))
    support = numpy.arange(low, high + 1, dtype=numpy.float64)
    weights = numpy.exp([_log_binomial(k, trials, rate) for k in range(low, high + 1)])
    # What lies beyond is at the cut.
    beyond = max(0.0, 1.0 - float(weights.sum())) + 1e-12
    squares = numpy.append(numpy.minimum((support - mean) ** 2, cut * cut), cut * cut)
    weights = numpy.append(weights, beyond)
    seen = numpy.minimum((numpy.asarray(counts, dtype=numpy.float64) - mean) ** 2, cut * cut)
    statistic, number = float(seen.sum()), len(seen)
    tilts = numpy.logspace(-6.0, 2.0, 81) / max(deviation, 0.5) ** 2
    best = 0.0
    for signed in (-tilts, tilts):
        # log E exp(tilt X) for every tilt, by the largest exponent.
        exponents = signed[:, None] * squares
        top = exponents.max(axis=1)
        log_moments = top + numpy.log((weights * numpy.exp(exponents - top[:, None])).sum(axis=1))
        best = min(best, float((number * log_moments - signed * statistic).min()))
    return min(1.0, 2.0 * math.exp(best))


def weighted_energy(
    energies: Sequence[float], weights: Sequence[float], degrees: Sequence[float]
) -> float:
    """P(the share of energy under large weights is at least the one seen), from above.

    ``energies`` are chi-squares of ``degrees`` degrees times one unknown scale. With r the seen
    ratio of sum w_i E_i to sum E_i, the event is sum (w_i - r) E_i >= 0, whose moments do not
    depend on the scale.
    """
    import numpy

    energy = numpy.asarray(energies, dtype=numpy.float64)
    weight = numpy.asarray(weights, dtype=numpy.float64)
    degree = numpy.asarray(degrees, dtype=numpy.float64)
    total = float(energy.sum())
    if total <= 0.0 or len(energy) < 2:
        return 1.0
    centred = weight - float((weight * energy).sum()) / total
    largest = float(centred.max())
    if largest <= 0.0:
        return 1.0
    tilts = numpy.linspace(0.0, 1.0, 200)[1:-1] / (2.0 * largest)
    logs = numpy.log1p(-2.0 * tilts[:, None] * centred) @ degree
    return math.exp(min(0.0, float(-0.5 * logs.max())))


def _log_binomial(count: int, trials: int, rate: float) -> float:
    if rate >= 1.0:
        return 0.0 if count == trials else -math.inf
    return (
        math.lgamma(trials + 1)
        - math.lgamma(count + 1)
        - math.lgamma(trials - count + 1)
        + count * math.log(rate)
        + (trials - count) * math.log1p(-rate)
    )
