"""Audits of any JAX training whose step has a function that returns the sum of clipped gradients,
such as jax-privacy's ``clipped_grad``; with optax or without.

::

    canary = GradientCanary(params, clip_norm=1.0, sample_rate=0.01, count=1000, seed=7)

    @jax.jit
    def step(params, state, batch, number):
        summed = canary.insert(clipped(params, batch), number)     # the one line that is new
        updates, state = optimizer.update(noised(summed), state)
        return optax.apply_updates(params, updates), state

    ...
    scores = canary.scores(start, params)
    print(canary.audit(scores, delta=1e-5, claim=run))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy

from ._directions import Directions, Kind, mixed
from .auditing import Audit, audit
from .errors import InvalidInput
from .recording import BEGINNING, Check, Recording, Watching, repeated
from .runs import RunLike

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GradientCanary", "Recorder"]


class GradientCanary:
    """Gradients of imaginary records, in the training by a coin, and how far the model follows.

    The same canaries as :class:`dosimeter.torch.GradientCanary`, with the same directions. There is
    no state: :meth:`insert` is a function of the clipped sum and the number of the step, and is
    traced like any other. ``params`` says which shapes there are.
    """

    def __init__(
        self,
        params: Any,
        *,
        clip_norm: float,
        sample_rate: float,
        count: int = 1,
        direction: Kind = "signs",
        seed: int = 0,
        member: bool | None = None,
    ) -> None:
        if not (clip_norm > 0.0 and 0.0 < sample_rate <= 1.0):
            raise InvalidInput(
                f"clip_norm is {clip_norm} and sample_rate {sample_rate}; the norm must be above 0, the "
                "rate in (0, 1]"
            )
        leaves = jax.tree_util.tree_leaves(params)
        if not leaves:
            raise InvalidInput("there are no parameters")
        self.sizes = [int(numpy.prod(leaf.shape)) for leaf in leaves]
        self.clip_norm, self.sample_rate, self.count, self.seed = clip_norm, sample_rate, count, seed
        self.directions = Directions(direction, count, sum(self.sizes), seed)
        coins = numpy.random.default_rng([seed, 0xC014]).random(count) < 0.5
        #: Which canaries are in.
        self.included: NDArray[numpy.bool_] = (
            coins if member is None else numpy.full(count, bool(member))
        )
        self._fair = member is None

    def drawn(self, step: Any) -> Any:
        """Which canaries are in and sampled at a step; ``step`` may be traced."""
        key = jax.random.fold_in(jax.random.key(self.seed & 0xFFFFFFFF), step)
        coins = jax.random.bernoulli(key, self.sample_rate, (self.count,))
        return coins & jnp.asarray(self.included)

    def insert(self, summed: Any, step: Any) -> Any:
        """The sum of clipped gradients, and the canaries that this step samples."""
        coefficients = self.clip_norm * self.drawn(step).astype(jnp.float32)
        pattern = self._pattern(coefficients)
        leaves, shape = jax.tree_util.tree_flatten(summed)
        offset, changed = 0, []
        for leaf in leaves:
            added = self._values(pattern, offset, leaf.size).astype(leaf.dtype)
            changed.append(leaf + added.reshape(leaf.shape))
            offset += leaf.size
        if offset != self.directions.total:
            raise InvalidInput(f"{offset} gradients for {self.directions.total} parameters")
        return jax.tree_util.tree_unflatten(shape, changed)

    def wrap(self, clipped: Callable[..., Any]) -> Callable[..., Any]:
        """``f(step, ...)`` from a function that returns the sum of clipped gradients."""
        return lambda step, *arguments, **options: self.insert(
            clipped(*arguments, **options), step
        )

    def _pattern(self, coefficients: Any) -> Any:
        if self.directions.kind == "coordinates":
            return coefficients
        if self.directions.kind == "blocks":
            return coefficients / math.sqrt(self.directions.repeats)
        padded = jnp.zeros(self.directions.period).at[: self.count].set(coefficients)
        return _hadamard(padded) / math.sqrt(self.directions.support)

    def _places(self, offset: int, size: int) -> Any:
        entries = jnp.arange(offset, offset + size)
        if self.directions.kind == "signs":
            return entries % self.directions.period
        return jnp.minimum(entries // self.directions.repeats, self.directions.period - 1)

    def _signs(self, offset: int, size: int) -> Any:
        """The signs of the entries; zero beyond the directions."""
        entries = jnp.arange(offset, offset + size, dtype=jnp.uint32)
        bits = (mixed(entries >> 5, self.seed, jnp.uint32) >> (entries & jnp.uint32(31))) & 1
        found = 1.0 - 2.0 * bits.astype(jnp.float32)
        return jnp.where(entries < self.directions.support, found, 0.0)

    def _values(self, pattern: Any, offset: int, size: int) -> Any:
        if self.directions.kind == "coordinates":
            places = self.directions.coordinates()
            here = (places >= offset) & (places < offset + size)
            return jnp.zeros(size).at[places[here] - offset].set(pattern[numpy.flatnonzero(here)])
        return self._signs(offset, size) * pattern[self._places(offset, size)]

    def products(self, tree: Any) -> NDArray[numpy.float64]:
        """Inner products of a tree like the parameters with all directions."""
        offset = 0
        sums = numpy.zeros(self.directions.period)
        for leaf in jax.tree_util.tree_leaves(tree):
            flat = numpy.asarray(leaf, dtype=numpy.float64).reshape(-1)
            if self.directions.kind == "coordinates":
                places = self.directions.coordinates()
                here = (places >= offset) & (places < offset + len(flat))
                sums[here] = flat[places[here] - offset]
            else:
                signed = flat * numpy.asarray(self._signs(offset, len(flat)))
                places = numpy.asarray(self._places(offset, len(flat)))
                sums += numpy.bincount(places, weights=signed, minlength=self.directions.period)
            offset += len(flat)
        return self.directions.products(sums)

    def scores(
        self, start: Any, params: Any, *, maximised: bool = False
    ) -> NDArray[numpy.float64]:
        """How far the parameters moved along each canary, from start to end."""
        moved = self.products(params) - self.products(start)
        return moved if maximised else -moved

    def evidence(
        self, noised: Any, *, noise_multiplier: float | None = None, divisor: float = 1.0
    ) -> NDArray[numpy.float64]:
        """What one step's noisy sum, divided by ``divisor``, shows of each canary. Add up over the
        steps: the score of an attacker who sees every update."""
        seen = self.products(noised) * (divisor / self.clip_norm)
        if noise_multiplier is None:
            return seen
        exponent = (seen - 0.5) / noise_multiplier**2
        if self.sample_rate >= 1.0:
            return exponent
        rate = self.sample_rate
        found: NDArray[numpy.float64] = numpy.logaddexp(
            math.log1p(-rate), math.log(rate) + exponent
        )
        return found

    def audit(self, scores: Any, **options: Any) -> Audit:
        """Audits scores as canaries of one training; the keywords of :func:`dosimeter.audit`."""
        if not self._fair:
            raise InvalidInput("canaries of one training need coins: leave `member` out")
        found = numpy.asarray(scores, dtype=numpy.float64).reshape(-1)
        if len(found) != self.count:
            raise InvalidInput(f"{len(found)} scores for {self.count} canaries")
        options = {"design": "one-run"} | options
        return audit(members=found[self.included], nonmembers=found[~self.included], **options)


def _hadamard(values: Any) -> Any:
    length, half = values.shape[0], 1
    while half < length:
        pairs = values.reshape(-1, 2, half)
        values = jnp.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1)
        values = values.reshape(length)
        half *= 2
    return values


class Recorder(Watching):
    """Watches a training of any JAX loop and tests it against ``claim``.

    Call :meth:`step` once for each update, outside of ``jit``. With ``loss(params, record)``, the
    loss of one record, the clipped sum is computed anew at the steps that are looked into; without
    it, give it as ``summed``. ``divisor`` is what the noisy gradient was divided by: 1 for a sum.
    :class:`dosimeter.recording.Watching` says what it found.
    A healthy training is accused with probability ``false_alarm`` at most.
    """

    def __init__(
        self,
        *,
        claim: RunLike,
        loss: Callable[[Any, Any], Any] | None = None,
        dataset_size: int | None = None,
        divisor: float = 1.0,
        every: int = 100,
        false_alarm: float = 1e-4,
    ) -> None:
        if every < 1:
            raise InvalidInput(f"every is {every}; give a whole number of at least 1")
        self.recording = Recording(claim, dataset_size=dataset_size, false_alarm=false_alarm)
        self.loss, self.divisor, self.every = loss, divisor, every
        self._clipped = None if loss is None else jax.jit(self._clipped_sum)

    def step(
        self,
        *,
        noised: Any = None,
        params: Any = None,
        batch: Any = None,
        summed: Any = None,
        records: Any = None,
        size: int | None = None,
        known: Literal["exact", "random"] = "exact",
    ) -> None:
        """One update: ``noised`` is the gradient with its noise as the optimizer gets it, ``batch``
        its records and ``params`` the parameters before it, ``records`` their numbers in the data
        set. ``known="random"`` says that the loss is random (dropout): clipping is not tested."""
        recording = self.recording
        due = recording.steps % self.every == 0
        leaves = jax.tree_util.tree_leaves(batch)
        if size is None and records is None and leaves:
            size = int(leaves[0].shape[0])
        recording.step(size=size, records=records)
        if not due or noised is None:
            return
        if summed is None and self._clipped is not None and params is not None:
            summed = self._clipped(params, batch)
        if summed is None:
            recording.note("clipping and noise were not looked at: give `loss` or `summed`")
            return
        count = recording.sizes[-1] if recording.sizes else 0
        self._look(_flat(noised) * self.divisor, _flat(summed), count, known == "exact")

    def _look(self, noised: Any, summed: Any, size: int, exact: bool) -> None:
        recording = self.recording
        claim = recording.claim
        scale = float(claim.phases[0].noise_multiplier) * claim.clip_norm
        residual = noised - summed
        norm = float(numpy.linalg.norm(summed))
        total = len(residual)
        window = min(4096, total // 8)
        again = before = 1.0
        if window >= 16:
            largest = int(numpy.argmax(numpy.abs(summed)))
            starts = sorted({0, min(largest, total - window)})
            again = repeated(
                lambda first, last: residual[first:last], total, starts=starts, window=window
            )
            before = recording.known_noise(residual[: min(window, BEGINNING)])
        recording.check(
            Check(
                step=recording.steps,
                degrees=total,
                energy=float(residual @ residual) / scale**2,
                along=float(residual @ summed) / (norm * scale) if norm > 0.0 else 0.0,
                signal=norm / scale,
                size=size,
                exact=exact,
                repeated=again,
                before=before,
            )
        )

    def _clipped_sum(self, params: Any, batch: Any) -> Any:
        assert self.loss is not None
        bound = self.recording.claim.clip_norm
        gradients = jax.vmap(jax.grad(self.loss), in_axes=(None, 0))(params, batch)
        leaves = jax.tree_util.tree_leaves(gradients)
        squares = sum(jnp.sum(leaf.reshape(leaf.shape[0], -1) ** 2, axis=1) for leaf in leaves)
        factors = jnp.minimum(1.0, bound / jnp.sqrt(jnp.maximum(squares, 1e-30)))
        return jax.tree_util.tree_map(
            lambda leaf: jnp.tensordot(factors.astype(leaf.dtype), leaf, axes=1), gradients
        )


def _flat(tree: Any) -> NDArray[numpy.float64]:
    leaves = jax.tree_util.tree_leaves(tree)
    return numpy.concatenate([numpy.asarray(leaf, dtype=numpy.float64).reshape(-1) for leaf in leaves])
