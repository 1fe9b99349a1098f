"""The step of device_lora.rs in eager PyTorch: transformers' GPT-2 with random weights, LoRA of rank
16 on c_attn, every example's own gradients by one batched product each, clipping, noise and Adam.

    python device_lora.py
"""

import json
import statistics
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

BATCH, LENGTH, RANK, STEPS, WARM_UP, CLIP = 64, 256, 16, 12, 3, 1.0


class Adapter(torch.nn.Module):
    def __init__(self, base, dtype):
        super().__init__()
        self.base = base
        inputs, outputs = base.weight.shape
        self.down = torch.randn(inputs, RANK, device="cuda") / inputs**0.5
        self.up = torch.zeros(RANK, outputs, device="cuda")
        self.dtype = dtype
        self.gradients = None

    def forward(self, x):
        down, up = self.down.to(self.dtype), self.up.to(self.dtype)
        low = x @ down
        y = self.base(x) + low @ up

        def hook(d):
            # Each example's gradients, as one batched product over its places.
            self.gradients = (
                torch.bmm(x.detach().transpose(1, 2), d @ up.t()).float(),
                torch.bmm(low.detach().transpose(1, 2), d).float(),
            )

        if y.requires_grad:
            y.register_hook(hook)
        return y


def measure(name, dtype):
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    config = GPT2Config(attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, use_cache=False)
    model = GPT2LMHeadModel(config).to("cuda", dtype).requires_grad_(False).train()
    adapters = []
    for block in model.transformer.h:
        block.attn.c_attn = Adapter(block.attn.c_attn, dtype)
        adapters.append(block.attn.c_attn)
    tokens = torch.randint(0, 50257, (BATCH, LENGTH), device="cuda")
    moments = [[torch.zeros_like(p) for p in (a.down, a.up)] for a in adapters]
    squares = [[torch.zeros_like(p) for p in (a.down, a.up)] for a in adapters]

    def step(number):
        states = model.transformer.wte(tokens).requires_grad_(True)
        logits = model(inputs_embeds=states).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]).float(), tokens[:, 1:].reshape(-1), reduction="sum"
        ) / (LENGTH - 1)
        torch.autograd.grad(loss, states)
        norms = sum(
            g.flatten(1).pow(2).sum(1) for adapter in adapters for g in adapter.gradients
        ).sqrt()
        factors = (CLIP / norms).clamp(max=1.0)
        for adapter, first, second in zip(adapters, moments, squares):
            for p, g, m, v in zip((adapter.down, adapter.up), adapter.gradients, first, second):
                total = torch.einsum("b,bij->ij", factors, g)
                mean = (total + CLIP * torch.randn_like(total)) / BATCH
                m.mul_(0.9).add_(mean, alpha=0.1)
                v.mul_(0.999).addcmul_(mean, mean, value=0.001)
                rate = 1e-3 / (1 - 0.9**number)
                p.addcdiv_(m, (v / (1 - 0.999**number)).sqrt().add_(1e-8), value=-rate)
        return loss.item() / BATCH

    seconds = []
    for number in range(1, STEPS + WARM_UP + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        loss = step(number)
        torch.cuda.synchronize()
        if number > WARM_UP:
            seconds.append(time.perf_counter() - start)
    middle = statistics.median(seconds)
    rate = BATCH * LENGTH / middle
    print(f"torch {name:5} {rate:9.0f} tokens/s  {1e3 * middle:.1f} ms per step; loss {loss:.4f}")
    return {"precision": name, "tokens_per_second": rate, "milliseconds": 1e3 * middle}


print(torch.__version__, torch.cuda.get_device_name())
found = [
    measure("f32", torch.float32),
    measure("tf32", torch.float32),
    measure("bf16", torch.bfloat16),
]
print(json.dumps({"rows": found}))
