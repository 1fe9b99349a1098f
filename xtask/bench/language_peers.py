"""A hand-written LoRA DP-Adam step in PyTorch on the same random Llama: one batch, per-example
adapter gradients by batched products, clip, noise, Adam. Prints processor seconds per step."""

import json
import math
import sys
import time

import torch

names = "layers width heads keys hidden vocabulary batch length rank steps threads".split()
o = dict(zip(names, map(int, sys.argv[1:])))
torch.manual_seed(1)
torch.set_num_threads(o["threads"])
L, W, H, K, F, V, B, T, R = (o[n] for n in names[:9])
D = W // H


def weight(outputs, inputs):
    return 0.02 * torch.randn(outputs, inputs)


class Lora(torch.autograd.Function):
    """x W' + s (x A') B', keeping per-example gradients of A and B."""

    @staticmethod
    def forward(ctx, x, w, a, b, scale, store):
        low = x @ a.T
        ctx.save_for_backward(x, w, a, b, low)
        ctx.scale, ctx.store = scale, store
        return x @ w.T + scale * (low @ b.T)

    @staticmethod
    def backward(ctx, dy):
        x, w, a, b, low = ctx.saved_tensors
        back = ctx.scale * (dy @ b)
        ctx.store.append(back.transpose(1, 2) @ x)
        ctx.store.append(ctx.scale * (dy.transpose(1, 2) @ low))
        return dy @ w + back @ a, None, None, None, None, None


def norm(x):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)


angles = torch.outer(torch.arange(T).float(), 10000.0 ** (-torch.arange(D // 2).float() / (D // 2)))
cos, sin = angles.cos(), angles.sin()


def rotate(x):
    a, b = x[..., : D // 2], x[..., D // 2 :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


embedding = weight(V, W)
blocks = [
    dict(q=weight(W, W), k=weight(K * D, W), v=weight(K * D, W), o=weight(W, W),
         g=weight(F, W), u=weight(F, W), d=weight(W, F),
         qa=torch.randn(R, W) / math.sqrt(W), qb=torch.zeros(W, R),
         va=torch.randn(R, W) / math.sqrt(W), vb=torch.zeros(K * D, R))
    for _ in range(L)
]
parameters = [b[n] for b in blocks for n in ("qa", "qb", "va", "vb")]
first = [torch.zeros_like(p) for p in parameters]
second = [torch.zeros_like(p) for p in parameters]
tokens = torch.tensor([[(i * 131 + j * 17) % V for j in range(T)] for i in range(B)])
scale = 32.0 / R


def step(t):
    stores = [([], []) for _ in blocks]
    x = embedding[tokens].requires_grad_(True)
    h = x
    for b, (sq, sv) in zip(blocks, stores):
        n = norm(h)
        q = Lora.apply(n, b["q"], b["qa"], b["qb"], scale, sq).view(B, T, H, D).transpose(1, 2)
        k = (n @ b["k"].T).view(B, T, K, D).transpose(1, 2)
        v = Lora.apply(n, b["v"], b["va"], b["vb"], scale, sv).view(B, T, K, D).transpose(1, 2)
        q, k = rotate(q), rotate(k)
        k, v = (z.repeat_interleave(H // K, 1) for z in (k, v))
        a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + a.transpose(1, 2).reshape(B, T, W) @ b["o"].T
        n = norm(h)
        h = h + (torch.nn.functional.silu(n @ b["g"].T) * (n @ b["u"].T)) @ b["d"].T
    logits = norm(h)[:, :-1] @ embedding.T
    losses = torch.nn.functional.cross_entropy(
        logits.reshape(-1, V), tokens[:, 1:].reshape(-1), reduction="none").view(B, -1).mean(1)
    losses.sum().backward()
    gradients = [g for sq, sv in stores for g in (*sq, *sv)]
    with torch.no_grad():
        norms = torch.sqrt(sum((g * g).sum((1, 2)) for g in gradients))
        factors = (1.0 / norms).clamp(max=1.0)
        for p, g, m, s in zip(parameters, gradients, first, second):
            g = (torch.einsum("i,ijk->jk", factors, g) + torch.randn_like(p)) / B
            m.mul_(0.9).add_(g, alpha=0.1)
            s.mul_(0.999).addcmul_(g, g, value=0.001)
            p -= 1e-3 / (1 - 0.9**t) * m / ((s / (1 - 0.999**t)).sqrt() + 1e-8)


step(1)
begin, start = time.process_time(), time.perf_counter()
for t in range(o["steps"]):
    step(t + 2)
print(json.dumps({"processor_seconds": (time.process_time() - begin) / o["steps"],
                  "clock_seconds": (time.perf_counter() - start) / o["steps"]}))
