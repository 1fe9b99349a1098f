"""JAX: gradient canaries under jit, with jax-privacy's clipped gradients and optax."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
jax_privacy = pytest.importorskip("jax_privacy")

import jax.numpy as jnp  # noqa: E402

import dosimeter  # noqa: E402
from dosimeter.jax import GradientCanary, Recorder  # noqa: E402

pytestmark = pytest.mark.bridge

RECORDS, BATCH, STEPS, WIDTH = 400, 40, 30, 10
RUN = dosimeter.Run(noise_multiplier=1.0, dataset_size=RECORDS, batch_size=BATCH, steps=STEPS)


@pytest.mark.parametrize("kind", ["signs", "blocks", "coordinates"])
def test_directions_are_those_of_every_framework(kind: Any) -> None:
    params = {"a": jnp.zeros((10, 50)), "b": jnp.zeros(503)}
    canary = GradientCanary(params, clip_norm=2.0, sample_rate=1.0, count=7, direction=kind, seed=5)
    inserted = jax.jit(canary.insert)(params, 3)
    flat = numpy.concatenate([numpy.asarray(leaf).reshape(-1) for leaf in jax.tree.leaves(inserted)])
    dense = numpy.stack([canary.directions.dense(j) for j in range(7)])
    assert numpy.abs(flat - 2.0 * canary.included @ dense).max() < 1e-6
    assert numpy.allclose(canary.products(inserted), 2.0 * canary.included, atol=1e-5)


def loss(params: Any, inputs: Any, label: Any, weight: Any) -> Any:
    logits = inputs @ params["weight"] + params["bias"]
    return (weight * optax.softmax_cross_entropy_with_integer_labels(logits, label)).sum()


def train(
    seed: int, *, noise: float = 1.0, count: int = 0, claimed: float = 1.0
) -> tuple[Any, Any, Any]:
    generator = numpy.random.default_rng(seed)
    inputs = generator.normal(size=(RECORDS, WIDTH)).astype(numpy.float32)
    labels = (inputs.sum(axis=1) > 0).astype(numpy.int32)
    params = {"weight": jnp.zeros((WIDTH, 64)), "bias": jnp.zeros(64)}
    clipped = jax.jit(
        jax_privacy.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2, 3))
    )
    canary = None
    insert: Any = lambda summed, _: summed  # noqa: E731
    if count:
        canary = GradientCanary(params, clip_norm=1.0, sample_rate=BATCH / RECORDS, count=count, seed=seed)
        insert = canary.insert
    optimizer = optax.sgd(0.1)
    privatizer = jax_privacy.noise_addition.gaussian_privatizer(stddev=noise, prng_key=jax.random.key(seed))
    state, noise_state = optimizer.init(params), privatizer.init(params)

    @jax.jit
    def update(params: Any, state: Any, summed: Any, noise_state: Any, step: Any) -> Any:
        noised, noise_state = privatizer.update(insert(summed, step), noise_state)
        mean = jax.tree.map(lambda leaf: leaf / BATCH, noised)
        updates, state = optimizer.update(mean, state)
        return optax.apply_updates(params, updates), state, noised, noise_state

    recorder = Recorder(
        claim=RUN, every=3, loss=lambda params, record: loss(params, *(x[None] for x in record))
    )
    evidence = numpy.zeros(max(count, 1))
    for step in range(STEPS):
        chosen = numpy.flatnonzero(generator.random(RECORDS) < BATCH / RECORDS)
        # One shape for all batches: records of weight 0 fill up.
        filled = numpy.resize(chosen, 2 * BATCH)
        weights = (numpy.arange(2 * BATCH) < len(chosen)).astype(numpy.float32)
        batch = inputs[filled], labels[filled], weights
        summed = clipped(params, *batch)
        before = params
        params, state, noised, noise_state = update(params, state, summed, noise_state, step)
        if canary is None:
            recorder.step(noised=noised, params=before, batch=batch, records=chosen)
        else:
            rest = jax.tree.map(jnp.subtract, noised, summed)
            evidence += canary.evidence(rest, noise_multiplier=claimed)
    return recorder, canary, evidence


def test_clipped_grad_of_jax_privacy_is_recorded() -> None:
    recorder, _, _ = train(0)
    assert not recorder.accused and recorder.run() == RUN, recorder
    assert recorder.recording.noise_multiplier == pytest.approx(1.0, rel=0.05)
    recorder, _, _ = train(1, noise=0.5)
    assert {f.test for f in recorder.findings() if f.accused} == {"noise"}, recorder


def test_canaries_in_one_run() -> None:
    """Much noise is claimed, so that 500 canaries can refute it."""
    claim = dosimeter.Run(noise_multiplier=4.0, dataset_size=RECORDS, batch_size=BATCH, steps=STEPS)
    statuses = []
    for noise in (4.0, 0.02):
        _, canary, evidence = train(2, noise=noise, count=500, claimed=4.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dosimeter.DosimeterWarning)
            answer = canary.audit(evidence, delta=1e-5, claim=claim)
        assert answer.verdict is not None
        statuses.append(answer.verdict.status)
    assert statuses[0] != "contradiction" and statuses[1] == "contradiction", statuses


def test_the_last_iterate_moves_along_the_canaries() -> None:
    params = {"w": jnp.zeros(1000)}
    canary = GradientCanary(params, clip_norm=1.0, sample_rate=1.0, count=100, seed=1)
    summed = jax.jit(canary.wrap(lambda p: jax.tree.map(jnp.zeros_like, p)))(0, params)
    moved = jax.tree.map(lambda p, g: p - 0.5 * g, params, summed)
    assert numpy.allclose(canary.scores(params, moved), 0.5 * canary.included, atol=1e-5)
    with pytest.raises(dosimeter.InvalidInput, match="gradients for"):
        canary.insert({"w": jnp.zeros(999)}, 0)
