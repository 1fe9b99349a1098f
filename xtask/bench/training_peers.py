"""PyTorch and Opacus doing what `crates/training` does; one JSON object on stdout.

training_peers.py rate  mlp|cnn  hooks|ghost|functional|plain  THREADS SECONDS
training_peers.py adult SEED FOLDER
training_peers.py versions
"""

import json
import statistics
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import torch
from torch import nn

BATCH = 256


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def cnn():
    """The network of Opacus' MNIST example."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 32), nn.ReLU(), nn.Linear(32, 10),
    )


def private_step(model, mode, x, y):
    """One DP-SGD step by Opacus on a given batch."""
    from opacus import PrivacyEngine

    data = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    common = dict(module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0,
                  max_grad_norm=1.0, poisson_sampling=False)
    if mode == "ghost":
        model, optimizer, criterion, _ = PrivacyEngine().make_private(
            criterion=criterion, grad_sample_mode="ghost", **common)
    else:
        model, optimizer, _ = PrivacyEngine().make_private(**common)

    def step():
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

    return step


def functional_step(model, x, y):
    """The same by torch.func: vmap over per-example gradients."""
    from torch.func import functional_call, grad, vmap

    names = [name for name, _ in model.named_parameters()]
    values = [p.detach() for p in model.parameters()]

    def loss(parameters, x, y):
        out = functional_call(model, dict(zip(names, parameters)), (x.unsqueeze(0),))
        return nn.functional.cross_entropy(out, y.unsqueeze(0))

    each = vmap(grad(loss), in_dims=(None, 0, 0))

    def step():
        gradients = each(values, x, y)
        squares = sum(g.flatten(1).pow(2).sum(1) for g in gradients)
        factors = (1.0 / squares.sqrt()).clamp(max=1.0)
        for value, g in zip(values, gradients):
            total = torch.einsum("b,b...->...", factors, g)
            value -= 0.05 / BATCH * (total + torch.randn_like(total))

    return step


def plain_step(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def rate(what, mode, threads, seconds):
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = mlp() if what == "mlp" else cnn()
    x, y = torch.randn(BATCH, 1, 28, 28), torch.randint(0, 10, (BATCH,))
    step = {
        "hooks": lambda: private_step(model, "hooks", x, y),
        "ghost": lambda: private_step(model, "ghost", x, y),
        "functional": lambda: functional_step(model, x, y),
        "plain": lambda: plain_step(model, x, y),
    }[mode]()
    for _ in range(3):
        step()
    start = time.perf_counter()
    step()
    count = max(1, int(seconds / 7 / (time.perf_counter() - start)))
    rates = []
    began, used = time.perf_counter(), time.process_time()
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(count):
            step()
        rates.append(count / (time.perf_counter() - start))
    used = time.process_time() - used
    return {"rate": statistics.median(rates), "low": min(rates), "high": max(rates),
            "cpu_rate": 7 * count / used, "cores": used / (time.perf_counter() - began)}


def adult(seed, folder):
    """108-128-tanh-2 on Adult: Adam 1e-4, clip norm 2, Poisson batches of 256, sigma 3.51, 30 epochs."""
    import numpy as np
    from opacus import PrivacyEngine

    torch.set_num_threads(1)
    torch.manual_seed(seed)

    def load(part):
        x = np.fromfile(f"{folder}/adult-{part}.f32", dtype="<f4").reshape(-1, 108)
        y = np.fromfile(f"{folder}/adult-{part}.u32", dtype="<u4").astype("int64")
        return torch.from_numpy(x), torch.from_numpy(y)

    x, y = load("train")
    model = nn.Sequential(nn.Linear(108, 128), nn.Tanh(), nn.Linear(128, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=3.51,
        max_grad_norm=2.0, poisson_sampling=True)
    start = time.perf_counter()
    steps = 0
    for _ in range(30):
        for a, b in loader:
            optimizer.zero_grad()
            if len(a):
                nn.functional.cross_entropy(model(a), b).backward()
            optimizer.step()
            steps += 1
    x, y = load("test")
    with torch.no_grad():
        right = (model(x).argmax(1) == y).double().mean().item()
    return {"accuracy": right, "wall_s": time.perf_counter() - start, "steps": steps}


def versions():
    import importlib.metadata as metadata

    return {name: metadata.version(name) for name in ("torch", "opacus")}


def main():
    what, rest = sys.argv[1], sys.argv[2:]
    if what == "rate":
        answer = rate(rest[0], rest[1], int(rest[2]), float(rest[3]))
    elif what == "adult":
        answer = adult(int(rest[0]), rest[1])
    else:
        answer = versions()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
