"""Full fine-tuning of GPT-2 (random weights) in eager PyTorch, as `device_lora.rs full` does it:
without privacy, and with ghost clipping written by hand (Li et al. 2022: norms from the inner
products of inputs and of slopes, then a second backward pass of the weighted losses), noise, Adam.

    python device_full.py
"""

import json
import statistics
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.pytorch_utils import Conv1D

BATCH, LENGTH, STEPS, WARM_UP, CLIP = 64, 256, 8, 3, 1.0


def square(x, d):
    """Squared norms of every example's d' x."""
    return (torch.bmm(x, x.transpose(1, 2)).float() * torch.bmm(d, d.transpose(1, 2)).float()).sum((1, 2))


def measure(name, dtype, private):
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    config = GPT2Config(attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, use_cache=False)
    model = GPT2LMHeadModel(config).to("cuda").train()
    tokens = torch.randint(0, 50257, (BATCH, LENGTH), device="cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    squares = []

    def watch(module, inputs, output):
        x = inputs[0].detach()

        def slope(d):
            if not watching:
                return
            if isinstance(module, torch.nn.Embedding):
                # The positions' embedding is one for the batch: its slopes are those of the tokens'.
                if x.shape[0] == BATCH:
                    gram = torch.bmm(d, d.transpose(1, 2)).float()
                    same = tokens[:, :, None] == tokens[:, None, :]
                    squares.append((gram * same).sum((1, 2)))
                    squares.append(gram.diagonal(dim1=1, dim2=2).sum(1))
            elif isinstance(module, torch.nn.LayerNorm):
                y = torch.nn.functional.layer_norm(x, x.shape[-1:])
                squares.append((d * y).sum(1).float().pow(2).sum(1) + d.sum(1).float().pow(2).sum(1))
            else:
                squares.append(square(x.to(d.dtype), d))
                if getattr(module, "bias", None) is not None:
                    squares.append(d.sum(1).float().pow(2).sum(1))

        output.register_hook(slope)

    if private:
        kinds = (Conv1D, torch.nn.Linear, torch.nn.Embedding, torch.nn.LayerNorm)
        for module in model.modules():
            if isinstance(module, kinds):
                module.register_forward_hook(watch)
    watching = True

    def losses():
        with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
            logits = model(tokens).logits[:, :-1]
            each = torch.nn.functional.cross_entropy(
                logits.reshape(-1, logits.shape[-1]).float(), tokens[:, 1:].reshape(-1), reduction="none"
            )
        return each.view(BATCH, -1).mean(1)

    def step():
        nonlocal watching
        optimizer.zero_grad(set_to_none=True)
        each = losses()
        if private:
            watching = True
            squares.clear()
            torch.autograd.grad(each.sum(), list(model.parameters()), retain_graph=True)
            factors = (CLIP / sum(squares).sqrt()).clamp(max=1.0)
            watching = False
            (each * factors.detach()).sum().backward()
            for p in model.parameters():
                p.grad.add_(torch.randn_like(p), alpha=CLIP).div_(BATCH)
        else:
            each.mean().backward()
        optimizer.step()
        return each.mean().item()

    seconds = []
    for number in range(STEPS + WARM_UP):
        torch.cuda.synchronize()
        start = time.perf_counter()
        loss = step()
        torch.cuda.synchronize()
        if number >= WARM_UP:
            seconds.append(time.perf_counter() - start)
    middle = statistics.median(seconds)
    rate = BATCH * LENGTH / middle
    what = "ghost clipping" if private else "no privacy"
    print(f"torch {name:5} {what:14} {rate:9.0f} tokens/s  {1e3 * middle:.1f} ms per step; loss {loss:.4f}")
    del model, optimizer
    torch.cuda.empty_cache()
    return {"precision": name, "private": private, "tokens_per_second": rate}


print(torch.__version__, torch.cuda.get_device_name())
found = []
for name, dtype in [("bf16", torch.bfloat16), ("tf32", torch.float32), ("f32", torch.float32)]:
    for private in [False, True]:
        try:
            found.append(measure(name, dtype, private))
        except Exception as error:  # one row that fails leaves the others
            print(f"torch {name} private={private}: {type(error).__name__}: {error}"[:300])
print(json.dumps({"rows": found}))
