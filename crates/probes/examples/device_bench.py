"""The other side of device_bench.rs: PyTorch on the same device in the same call.

python3 crates/probes/examples/device_bench.py [quick|wide [vmap] [f32|tf32|bf16]]

1. Ceilings: a large device-to-device copy (bytes read plus written) and a large f32 product.
2. The DP-SGD step of the 784-128-10 net written by hand for M replicas: ghost norms, one bmm for
   each clipped sum, torch.randn for the noise; eager and under torch.compile, given the same
   fixed batches of 256 records for each replica as device_bench.rs.
3. Opacus on the network of its MNIST example, one model, default hooks and ghost clipping, when
   the package can be imported.
4. WideResNet-16-4 with group norm and standardised weights, channels last: SGD without privacy,
   eager and under torch.compile; DP-SGD by vmap of grad, eager and compiled (`wide`: only this; `wide vmap`:
   only the last; `wide bf16`: in that precision).

Each number is the median of several repetitions after a warm-up, the device synchronised.
"""

import json
import statistics
import sys
import time

import torch

device = "cuda"
rows = []


def clock(work, repetitions=5, ends=None):
    """Median seconds; `ends` is filled with the least and the most."""
    work()
    torch.cuda.synchronize()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    if ends is not None:
        ends.extend([min(times), max(times)])
    return statistics.median(times)


def ceilings():
    a = torch.empty(2**30, dtype=torch.float32, device=device).normal_()
    b = torch.empty_like(a)
    seconds = clock(lambda: b.copy_(a))
    copy = 2 * a.numel() * 4 / seconds / 1e12
    del a, b
    x = torch.randn(8192, 8192, device=device)
    y = torch.randn(8192, 8192, device=device)
    torch.backends.cuda.matmul.allow_tf32 = False
    single = 2 * 8192**3 / clock(lambda: x @ y) / 1e12
    torch.backends.cuda.matmul.allow_tf32 = True
    tensor = 2 * 8192**3 / clock(lambda: x @ y) / 1e12
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"copy {copy:.2f} TB/s; product f32 {single:.1f} TFLOP/s, tf32 {tensor:.1f} TFLOP/s")
    rows.append({"copy_tb_s": copy, "f32_tflop_s": single, "tf32_tflop_s": tensor})


def step(x, y, w1, b1, w2, b2, x2):
    h = torch.relu(torch.baddbmm(b1.unsqueeze(1), x, w1))
    z = torch.baddbmm(b2.unsqueeze(1), h, w2)
    d2 = torch.softmax(z, 2) - y
    d1 = torch.bmm(d2, w2.transpose(1, 2)) * (h > 0)
    n = (x2 + 1) * d1.square().sum(2) + (h.square().sum(2) + 1) * d2.square().sum(2)
    c = (1.0 / n.sqrt()).clamp(max=1.0).unsqueeze(2)
    d1 = d1 * c
    d2 = d2 * c
    share = 0.1 / 256
    w1 = w1 - share * (torch.bmm(x.transpose(1, 2), d1) + torch.randn_like(w1))
    b1 = b1 - share * (d1.sum(1) + torch.randn_like(b1))
    w2 = w2 - share * (torch.bmm(h.transpose(1, 2), d2) + torch.randn_like(w2))
    b2 = b2 - share * (d2.sum(1) + torch.randn_like(b2))
    return w1, b1, w2, b2


def by_hand(models, batch=256):
    x = torch.randn(models, batch, 784, device=device)
    labels = torch.randint(0, 10, (models, batch), device=device)
    y = torch.nn.functional.one_hot(labels, 10).float()
    x2 = x.square().sum(2)
    start = [
        torch.randn(models, 784, 128, device=device) * 0.03,
        torch.zeros(models, 128, device=device),
        torch.randn(models, 128, 10, device=device) * 0.1,
        torch.zeros(models, 10, device=device),
    ]
    compiled = torch.compile(step)
    for name, function in [("by hand, eager", step), ("by hand, torch.compile", compiled)]:
        for tf32 in [False, True]:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            steps = max(4, 40_000 // models)

            def work():
                state = start
                for _ in range(steps):
                    state = function(x, y, *state, x2)

            rate = models * steps / clock(work)
            precision = "tf32" if tf32 else "f32"
            print(f"PyTorch {name:24} {precision:5} M={models:5}  {rate:10.0f} model-steps/s")
            rows.append({"model": name, "precision": precision, "replicas": models, "rate": rate})
    torch.backends.cuda.matmul.allow_tf32 = False


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 16, 8, 2, padding=3)
        self.conv2 = torch.nn.Conv2d(16, 32, 4, 2)
        self.fc1 = torch.nn.Linear(32 * 4 * 4, 32)
        self.fc2 = torch.nn.Linear(32, 10)

    def forward(self, x):
        pool = torch.nn.functional.max_pool2d
        x = pool(torch.relu(self.conv1(x)), 2, 1)
        x = pool(torch.relu(self.conv2(x)), 2, 1).reshape(-1, 512)
        return self.fc2(torch.relu(self.fc1(x)))


def opacus(mode, batch=256, steps=40):
    from opacus import PrivacyEngine

    model = Net().to(device)
    data = torch.utils.data.TensorDataset(
        torch.randn(60_000, 1, 28, 28), torch.randint(0, 10, (60_000,))
    )
    loader = torch.utils.data.DataLoader(data, batch_size=batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = torch.nn.CrossEntropyLoss()
    made = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0,
        max_grad_norm=1.0, poisson_sampling=False,
        **({"grad_sample_mode": "ghost", "criterion": criterion} if mode == "ghost" else {}),
    )
    if mode == "ghost":
        model, optimizer, criterion, _ = made
    else:
        model, optimizer, _ = made
    x = torch.randn(batch, 1, 28, 28, device=device)
    y = torch.randint(0, 10, (batch,), device=device)

    def work():
        for _ in range(steps):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()

    rate = steps / clock(work)
    print(f"Opacus MNIST CNN, {mode}: {rate:.0f} model-steps/s")
    rows.append({"model": "Opacus MNIST CNN", "mode": mode, "rate": rate})


def vectorised(models=256, batch=256, steps=4):
    """torch.func: vmap over models of vmap over records."""
    from torch.func import functional_call, grad, stack_module_state, vmap

    nets = [Net().to(device) for _ in range(models)]
    parameters, _ = stack_module_state(nets)
    base = Net().to("meta")
    x = torch.randn(models, batch, 1, 28, 28, device=device)
    y = torch.randint(0, 10, (models, batch), device=device)

    def loss(parameters, x, y):
        z = functional_call(base, parameters, (x.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(z, y.unsqueeze(0))

    def one(parameters, x, y):
        each = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
        norms = sum(g.flatten(1).square().sum(1) for g in each.values()).sqrt()
        factors = (1.0 / norms).clamp(max=1.0)
        return {k: torch.einsum("b,b...->...", factors, g) for k, g in each.items()}

    def work():
        state = parameters
        for _ in range(steps):
            sums = vmap(one)(state, x, y)
            state = {k: v - 0.1 / 256 * (sums[k] + torch.randn_like(v)) for k, v in state.items()}

    rate = models * steps / clock(work, 3)
    print(f"torch.func CNN M={models}: {rate:.0f} model-steps/s")
    rows.append({"model": "torch.func CNN", "replicas": models, "rate": rate})


class Standardised(torch.nn.Conv2d):
    def forward(self, x):
        w = self.weight
        w = w - w.mean((1, 2, 3), keepdim=True)
        w = w / (w.square().sum((1, 2, 3), keepdim=True) + 1e-5).sqrt()
        return torch.nn.functional.conv2d(x, w, self.bias, self.stride, self.padding)


class Block(torch.nn.Module):
    def __init__(self, before, after, stride, first):
        super().__init__()
        norm = torch.nn.GroupNorm
        self.norm1 = norm(16, before)
        self.conv1 = Standardised(before, after, 3, stride, 1)
        self.norm2 = norm(16, after)
        self.conv2 = Standardised(after, after, 3, 1, 1)
        self.short = None
        if first:
            self.short = torch.nn.Sequential(
                torch.nn.ReLU(), norm(16, before), Standardised(before, after, 1, stride)
            )

    def forward(self, x):
        y = self.conv1(self.norm1(torch.relu(x)))
        y = self.conv2(self.norm2(torch.relu(y)))
        return y + (x if self.short is None else self.short(x))


class Wide(torch.nn.Module):
    """WideResNet-16-4, as the crate builds it."""

    def __init__(self):
        super().__init__()
        layers, before = [Standardised(3, 16, 3, 1, 1)], 16
        for stage, after in enumerate([64, 128, 256]):
            for block in range(2):
                stride = 2 if block == 0 and stage > 0 else 1
                layers.append(Block(before, after, stride, block == 0))
                before = after
        self.layers = torch.nn.Sequential(*layers)
        self.norm = torch.nn.GroupNorm(16, 256)
        self.output = torch.nn.Linear(256, 10)

    def forward(self, x):
        x = self.norm(torch.relu(self.layers(x)))
        return self.output(x.mean((2, 3)))


def wide_step(private, batch, precision, compiled, steps=10):
    """Milliseconds of a step."""
    from torch.func import functional_call, grad, vmap

    torch.backends.cuda.matmul.allow_tf32 = precision != "f32"
    torch.backends.cudnn.allow_tf32 = precision != "f32"
    model = Wide().to(device, memory_format=torch.channels_last)
    x = torch.randn(batch, 3, 32, 32, device=device).to(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (batch,), device=device)
    cast = torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16")
    entropy = torch.nn.functional.cross_entropy

    def plain(x, y):
        with cast:
            loss = entropy(model(x).float(), y)
        return loss

    def one(parameters, x, y):
        with cast:
            z = functional_call(model, parameters, (x.unsqueeze(0),))
        return entropy(z.float(), y.unsqueeze(0))

    def clipped(parameters, x, y):
        each = vmap(grad(one), in_dims=(None, 0, 0))(parameters, x, y)
        norms = sum(g.flatten(1).square().sum(1) for g in each.values()).sqrt()
        factors = (1.0 / norms).clamp(max=1.0)
        return {k: torch.einsum("b,b...->...", factors, g) for k, g in each.items()}

    if private:
        function = torch.compile(clipped) if compiled else clipped
        state = {k: v.detach() for k, v in model.named_parameters()}

        def work():
            nonlocal state
            for _ in range(steps):
                sums = function(state, x, y)
                state = {
                    k: v - 0.1 / batch * (sums[k] + torch.randn_like(v)) for k, v in state.items()
                }
    else:
        function = torch.compile(plain) if compiled else plain
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def work():
            for _ in range(steps):
                optimizer.zero_grad()
                function(x, y).backward()
                optimizer.step()

    ends = []
    milliseconds = 1e3 * clock(work, ends=ends) / steps
    least, most = (1e3 * end / steps for end in ends)
    kind = ("DP-SGD, vmap of grad" if private else "without privacy") + (", compiled" if compiled else "")
    print(f"PyTorch WideResNet-16-4 {kind:32} {precision:5} B={batch:5} {milliseconds:8.3f} [{least:.3f}..{most:.3f}] ms", flush=True)
    rows.append(
        {"model": "WideResNet-16-4", "kind": kind, "precision": precision, "batch": batch,
         "milliseconds": milliseconds, "least": least, "most": most}
    )


def wide():
    settings = [
        (private, batch, precision, compiled)
        for compiled, private in [(False, False), (True, False), (False, True), (True, True)]
        for batch in [256, 1024]
        for precision in ["f32", "tf32", "bf16"]
        if not (private and batch == 1024)
        if "vmap" not in sys.argv or (private and compiled)
        if not {"f32", "tf32", "bf16"} & set(sys.argv) or precision in sys.argv
    ]
    for private, batch, precision, compiled in settings:
        try:
            wide_step(private, batch, precision, compiled)
        except Exception as error:  # noqa: BLE001  the rest is still worth having
            print(f"{private} {batch} {precision} {compiled}: not measured ({error})")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    print(torch.__version__, torch.cuda.get_device_name())
    ceilings()
    wide()
    if "wide" in sys.argv:
        print(json.dumps({"torch": torch.__version__, "rows": rows}))
        sys.exit()
    for models in [4096] if "quick" in sys.argv else [256, 4096]:
        by_hand(models)
    for mode in ["hooks", "ghost"]:
        try:
            opacus(mode)
        except Exception as error:  # noqa: BLE001  the rest is still worth having
            print(f"Opacus, {mode}: not measured ({type(error).__name__}: {error})")
    try:
        vectorised(64)
    except Exception as error:  # noqa: BLE001
        print(f"torch.func: not measured ({type(error).__name__}: {error})")
    print(json.dumps({"torch": torch.__version__, "rows": rows}))
