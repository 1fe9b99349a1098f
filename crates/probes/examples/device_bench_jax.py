"""WideResNet-16-4 in JAX, beside device_bench.rs and device_bench.py on the same device.

python3 crates/probes/examples/device_bench_jax.py

Group norm, standardised weights, images channels last, batch 256: DP-SGD by vmap of grad under jit,
and SGD without privacy under jit. Each number is the median of five repetitions of ten steps after a
warm-up, with the range. f32 multiplies in f32, TF32 rounds operands to 11 bits; in bf16 the operands
of convolutions are bf16.
"""

import json
import statistics
import sys
import time

import jax
import jax.numpy as jnp

STEPS = 10
BATCH = 256


def parameters(key):
    keys = iter(jax.random.split(key, 64))

    def conv(before, after, size):
        return {"w": jax.random.normal(next(keys), (size, size, before, after)), "b": jnp.zeros(after)}

    def norm(channels):
        return {"s": jnp.ones(channels), "b": jnp.zeros(channels)}

    blocks, before = [], 16
    for after in [64, 128, 256]:
        for block in range(2):
            own = {"n1": norm(before), "c1": conv(before, after, 3), "n2": norm(after), "c2": conv(after, after, 3)}
            if block == 0:
                own |= {"n3": norm(before), "c3": conv(before, after, 1)}
            blocks.append(own)
            before = after
    output = {"w": jax.random.normal(next(keys), (256, 10)) / 16, "b": jnp.zeros(10)}
    return {"first": conv(3, 16, 3), "blocks": blocks, "norm": norm(256), "output": output}


def forward(p, x, narrow):
    def conv(own, x, stride, padding):
        w = own["w"] - own["w"].mean((0, 1, 2), keepdims=True)
        w = w / jnp.sqrt(jnp.square(w).sum((0, 1, 2), keepdims=True) + 1e-5)
        if narrow:
            w, x = w.astype(jnp.bfloat16), x.astype(jnp.bfloat16)
        y = jax.lax.conv_general_dilated(
            x, w, (stride, stride), [(padding, padding)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y.astype(jnp.float32) + own["b"]

    def norm(own, x):
        groups = x.reshape(*x.shape[:3], 16, -1)
        mean = groups.mean((1, 2, 4), keepdims=True)
        variance = groups.var((1, 2, 4), keepdims=True)
        return ((groups - mean) * jax.lax.rsqrt(variance + 1e-5)).reshape(x.shape) * own["s"] + own["b"]

    x = conv(p["first"], x, 1, 1)
    for number, own in enumerate(p["blocks"]):
        stride = 2 if number in (2, 4) else 1
        y = conv(own["c1"], norm(own["n1"], jax.nn.relu(x)), stride, 1)
        y = conv(own["c2"], norm(own["n2"], jax.nn.relu(y)), 1, 1)
        short = conv(own["c3"], norm(own["n3"], jax.nn.relu(x)), stride, 0) if "c3" in own else x
        x = y + short
    x = norm(p["norm"], jax.nn.relu(x)).mean((1, 2))
    return x @ p["output"]["w"] + p["output"]["b"]


def measure(private, precision):
    narrow = precision == "bf16"

    def loss(p, x, y):
        z = jax.nn.log_softmax(forward(p, x, narrow))
        return -jnp.take_along_axis(z, y[:, None], 1).mean()

    def sums(p, x, y):
        if not private:
            return jax.grad(loss)(p, x, y)
        one = jax.grad(lambda p, x, y: loss(p, x[None], y[None]))
        each = jax.vmap(one, (None, 0, 0))(p, x, y)
        squares = sum(jnp.square(g).reshape(BATCH, -1).sum(1) for g in jax.tree.leaves(each))
        factors = jnp.minimum(1.0, jax.lax.rsqrt(squares))
        return jax.tree.map(lambda g: jnp.tensordot(factors, g, 1), each)

    @jax.jit
    def step(p, key, x, y):
        found, treedef = jax.tree.flatten(sums(p, x, y))
        if private:
            keys = jax.random.split(key, len(found))
            found = [(g + jax.random.normal(k, g.shape)) / BATCH for g, k in zip(found, keys)]
        return jax.tree.map(lambda v, g: v - 0.1 * g, p, jax.tree.unflatten(treedef, found))

    key = jax.random.key(0)
    x = jax.random.normal(key, (BATCH, 32, 32, 3))
    y = jax.random.randint(key, (BATCH,), 0, 10)
    state = parameters(key)
    names = {"f32": "highest", "tf32": "tensorfloat32", "bf16": "default"}
    times = []
    with jax.default_matmul_precision(names[precision]):
        for repetition in range(6):
            start = time.perf_counter()
            for number in range(STEPS):
                state = step(state, jax.random.fold_in(key, number), x, y)
            jax.block_until_ready(state)
            if repetition:
                times.append(1e3 * (time.perf_counter() - start) / STEPS)
    kind = "DP-SGD, vmap of grad, jit" if private else "without privacy, jit"
    middle = statistics.median(times)
    print(f"JAX WideResNet-16-4 {kind:28} {precision:5} {middle:8.3f} [{min(times):.3f}..{max(times):.3f}] ms", flush=True)
    return {"kind": kind, "precision": precision, "milliseconds": middle, "least": min(times), "most": max(times)}


if __name__ == "__main__":
    print(jax.__version__, jax.devices()[0])
    rows = []
    for private in [True, False]:
        for precision in ["tf32", "f32", "bf16"]:
            try:
                rows.append(measure(private, precision))
            except Exception as error:  # noqa: BLE001  the rest is still worth having
                print(f"{private} {precision}: not measured ({type(error).__name__}: {str(error)[:300]})", flush=True)
    print(json.dumps({"jax": jax.__version__, "rows": rows}))
    sys.exit()
