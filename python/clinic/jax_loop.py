"""JAX with optax. The mistake: the key of the noise is never split, so every step adds the same
noise, which cancels in the difference of two updates."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy
import optax
from attacker import Differences
from common import (
    BATCH, CLAIM, CLASSES, CLIP, NOISE, STEPS, TARGET, WIDTH, Patient, main, points, poisson,
)

from dosimeter.jax import Recorder


def loss(params: Any, record: Any) -> Any:
    inputs, label = record
    hidden = jnp.tanh(inputs @ params["first"] + params["bias"])
    return optax.softmax_cross_entropy_with_integer_labels(hidden @ params["second"], label)


@jax.jit
def clipped_sum(params: Any, batch: Any, weights: Any) -> Any:
    gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0))(params, batch)
    squares = sum(jnp.sum(g.reshape(len(g), -1) ** 2, axis=1) for g in jax.tree.leaves(gradients))
    factors = weights * jnp.minimum(1.0, CLIP / jnp.sqrt(squares))
    return jax.tree.map(lambda g: jnp.tensordot(factors, g, axes=1), gradients)


@jax.jit
def noised(summed: Any, key: Any) -> Any:
    leaves, shape = jax.tree.flatten(summed)
    keys = jax.random.split(key, len(leaves))
    pairs = zip(leaves, keys, strict=True)
    return jax.tree.unflatten(
        shape, [leaf + NOISE * CLIP * jax.random.normal(k, leaf.shape) for leaf, k in pairs]
    )


def padded(chosen: Any) -> tuple[Any, Any]:
    """One shape for all batches: records of weight 0 fill up."""
    filled = numpy.resize(chosen if len(chosen) else [0], 3 * BATCH)
    return filled, (numpy.arange(3 * BATCH) < len(chosen)).astype(numpy.float32)


def flat(tree: Any) -> Any:
    parts = [numpy.asarray(leaf, dtype=float).reshape(-1) for leaf in jax.tree.leaves(tree)]
    return numpy.concatenate(parts)


def train(
    *,
    bug: bool,
    seed: int,
    member: bool = True,
    every: int = 3,
    attacker: Differences | None = None,
) -> Patient:
    """A JAX loop that uses one key for all steps."""
    inputs, labels = points()
    key = jax.random.key(seed)
    first, second, key = jax.random.split(key, 3)
    params = {
        "first": 0.2 * jax.random.normal(first, (WIDTH, 32)),
        "bias": jnp.zeros(32),
        "second": 0.2 * jax.random.normal(second, (32, CLASSES)),
    }
    optimizer = optax.sgd(0.5)
    state = optimizer.init(params)
    recorder = Recorder(claim=CLAIM, every=every)
    generator = numpy.random.default_rng(seed)
    for _ in range(STEPS):
        chosen = poisson(generator, member)
        filled, weights = padded(chosen)
        summed = clipped_sum(params, (inputs[filled], labels[filled]), weights)
        if not bug:
            key, noise_key = jax.random.split(key)
        else:
            noise_key = key
        gradient = noised(summed, noise_key)
        recorder.step(noised=gradient, summed=summed, records=chosen)
        if attacker is not None:
            others, some = padded(chosen[chosen != TARGET])
            rest = clipped_sum(params, (inputs[others], labels[others]), some)
            attacker.see(flat(gradient), flat(rest))
        gradient = jax.tree.map(lambda g: g / BATCH, gradient)
        updates, state = optimizer.update(gradient, state)
        params = optax.apply_updates(params, updates)
    return Patient(recorder, 0.0 if attacker is None else attacker.score)


if __name__ == "__main__":
    main(train)
