"""The attacker of an audit with many trainings. It sees every update. It knows the code with its
mistake, all records but the target, and which of them are in each batch: all that a guarantee of
differential privacy allows an attacker to know."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from common import CLIP, NOISE, RATE


class Attacker:
    """Adds up what every step says about the target: the logarithm of the likelihood ratio.

    ``noise`` is the standard deviation that the attacker counts on. ``view`` is what it looks at,
    where the mistake leaves some directions without noise.
    """

    def __init__(
        self,
        *,
        rate: float = RATE,
        noise: float = NOISE * CLIP,
        view: Callable[[Any], Any] | None = None,
    ) -> None:
        self.rate, self.noise, self.view = rate, noise, view
        self.score = 0.0

    def see(self, published: Any, without: Any, with_target: Any) -> None:
        """One step: the noisy sum that was published, and the sums that the code gives without
        noise, for the batch without the target and with it. All are flat vectors."""
        left = numpy.asarray(published, dtype=float) - without
        shift = numpy.asarray(with_target, dtype=float) - without
        if self.view is not None:
            left, shift = self.view(left), self.view(shift)
        exponent = float(left @ shift - 0.5 * (shift @ shift)) / self.noise**2
        self.score += float(
            numpy.logaddexp(math.log1p(-self.rate), math.log(self.rate) + exponent)
        )


class Differences:
    """Compares what is left of each step with a step whose noise should be another one: the step
    ``period`` earlier in the first period. Where the noise is the same, the target is left."""

    def __init__(self, period: int) -> None:
        self.period = period
        self.first: list[Any] = []
        self.steps = 0
        self.score = 0.0

    def see(self, published: Any, without: Any, with_target: Any = None) -> None:
        """One step, as for :class:`Attacker`."""
        left = numpy.asarray(published, dtype=float) - without
        if self.steps < self.period:
            self.first.append(left)
        else:
            other = self.first[self.steps % self.period]
            self.score = max(self.score, float(numpy.linalg.norm(left - other)))
        self.steps += 1
