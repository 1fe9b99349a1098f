"""Directions of gradient canaries: orthonormal, from a seed, never stored.

A flat parameter vector has ``total`` entries. Canary j's direction has norm 1:

- ``signs``: entry i is s(i) H[j, i mod m] / sqrt(n), with m the power of two that is at least the
  number of canaries, H the Hadamard matrix of order m, n the largest multiple of m up to
  ``total``, and s(i) a sign from a hash of (seed, i). Rows of H are orthogonal, so the directions
  are, exactly. All sums and all scores cost one pass over the parameters and one fast transform
  of length m.
- ``blocks``: the parameters are cut into as many blocks as canaries; the j-th has signs / sqrt(size).
- ``coordinates``: a parameter of its own for every canary.

Everything is linear in a *pattern* of a few numbers: entry i of a sum of canaries is
s(i) pattern[place(i)].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .errors import InvalidInput

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

Kind = Literal["signs", "blocks", "coordinates"]

#: Parameters that are looked at together: temporaries stay in the cache.
CHUNK = 1 << 18


@dataclass(frozen=True)
class Directions:
    """Orthonormal directions of ``count`` canaries among ``total`` parameters."""

    kind: Kind
    count: int
    total: int
    seed: int

    def __post_init__(self) -> None:
        if self.kind not in ("signs", "blocks", "coordinates"):
            raise InvalidInput(
                f"there are no directions `{self.kind}`; choose signs, blocks or coordinates"
            )
        if self.count < 1:
            raise InvalidInput(f"count is {self.count}; give at least 1 canary")
        if self.period * self.repeats < 1 or self.count > self.total:
            raise InvalidInput(
                f"{self.count} canaries need more than the {self.total} parameters for directions "
                f"`{self.kind}`"
            )

    @property
    def period(self) -> int:
        """Length of the pattern."""
        if self.kind == "signs":
            return 1 << (self.count - 1).bit_length()
        return self.count

    @property
    def repeats(self) -> int:
        """How many parameters share an entry of the pattern."""
        return self.total // self.period

    @property
    def support(self) -> int:
        """Parameters beyond this one are in no direction."""
        return self.period * self.repeats

    def pattern(self, coefficients: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
        """The pattern of a sum of canaries with these coefficients."""
        import numpy

        if self.kind == "coordinates":
            return coefficients
        if self.kind == "blocks":
            return coefficients / math.sqrt(self.repeats)
        padded = numpy.zeros(self.period)
        padded[: self.count] = coefficients
        return hadamard(padded) / math.sqrt(self.support)

    def products(self, sums: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
        """Inner products with all directions, from the signed sums of each place."""
        if self.kind == "coordinates":
            return sums
        if self.kind == "blocks":
            return sums / math.sqrt(self.repeats)
        return hadamard(sums)[: self.count] / math.sqrt(self.support)

    def coordinates(self) -> NDArray[numpy.int64]:
        """The parameters of the canaries, for ``coordinates``."""
        import numpy

        generator = numpy.random.default_rng([self.seed, 0xC00D])
        if self.total <= 1 << 24:
            return generator.permutation(self.total)[: self.count].astype(numpy.int64)
        found: dict[int, None] = {}
        while len(found) < self.count:
            found.update(dict.fromkeys(generator.integers(self.total, size=self.count).tolist()))
        return numpy.array(list(found)[: self.count], dtype=numpy.int64)

    def dense(self, canary: int) -> NDArray[numpy.float64]:
        """One direction written out: for tests, and for models that are small."""
        import numpy

        coefficients = numpy.zeros(self.count)
        coefficients[canary] = 1.0
        pattern = self.pattern(coefficients)
        direction = numpy.zeros(self.total)
        if self.kind == "coordinates":
            direction[self.coordinates()] = coefficients
            return direction
        places = numpy.arange(self.support)
        places = places % self.period if self.kind == "signs" else places // self.repeats
        direction[: self.support] = signs(self.seed, 0, self.support) * pattern[places]
        return direction


def hadamard(values: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """The fast Walsh-Hadamard transform, unnormalised; the length is a power of two."""
    import numpy

    length, half = len(values), 1
    found = numpy.array(values, dtype=numpy.float64)
    while half < length:
        pairs = found.reshape(-1, 2, half)
        found = numpy.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1)
        found = found.reshape(length)
        half *= 2
    return found


def mixed(words: Any, seed: int, word: Callable[[int], Any] = int) -> Any:
    """MurmurHash3's finaliser of 32-bit words that are held in integers of that width or more.

    ``words`` may be of NumPy or PyTorch (int64), or of JAX (uint32, with ``word`` its type): every
    product is taken modulo 2^32.
    """
    mask = word(0xFFFFFFFF)
    first, second = (word(key) for key in keys(seed))
    words = (words ^ first) & mask
    words = ((words ^ (words >> 16)) * word(0x85EBCA6B)) & mask
    words = ((words ^ (words >> 13)) * word(0xC2B2AE35)) & mask
    return (words ^ (words >> 16)) ^ second


def keys(seed: int) -> tuple[int, int]:
    """Two 32-bit words from a seed of any size."""
    import numpy

    first, second = numpy.random.SeedSequence([seed, 0x51617]).generate_state(2)
    return int(first), int(second)


def signs(seed: int, start: int, stop: int) -> NDArray[numpy.float64]:
    """The signs s(start), ..., s(stop - 1), 32 from each hashed word."""
    import numpy

    words = numpy.arange(start >> 5, (stop + 31) >> 5, dtype=numpy.int64)
    bits = (mixed(words, seed)[:, None] >> numpy.arange(32)) & 1
    found: NDArray[numpy.float64] = 1.0 - 2.0 * bits.reshape(-1)
    return found[start - (start >> 5 << 5) :][: stop - start]
