"""What a recorder with 1,000 gradient canaries costs on a model of ResNet-18's size: seconds and
memory, beside a step of training. ``python overhead.py --batch 256``; ``cargo xtask bench recorder``
runs it. A smaller batch shows a larger share: the canaries cost the same at any batch size."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

import dosimeter
from dosimeter.torch import GradientCanary, Recorder, cross_entropy


def block(inside: int, outside: int, stride: int) -> Any:
    return torch.nn.Sequential(
        torch.nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
        torch.nn.GroupNorm(32, outside),
        torch.nn.ReLU(),
        torch.nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
        torch.nn.GroupNorm(32, outside),
        torch.nn.ReLU(),
    )


class Residual(torch.nn.Module):
    """ResNet-18's blocks with group norm, for images of 32 x 32."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        widths, inside = [(64, 1), (128, 2), (256, 2), (512, 2)], 64
        self.blocks, self.skips = torch.nn.ModuleList(), torch.nn.ModuleList()
        for width, stride in widths:
            for number in range(2):
                step = stride if number == 0 else 1
                self.blocks.append(block(inside, width, step))
                same = inside == width and step == 1
                self.skips.append(
                    torch.nn.Identity() if same else torch.nn.Conv2d(inside, width, 1, step)
                )
                inside = width
        self.last = torch.nn.Linear(512, 10)

    def forward(self, images: Any) -> Any:
        found = self.first(images)
        for inner, skip in zip(self.blocks, self.skips, strict=True):
            found = inner(found) + skip(found)
        return self.last(found.mean((2, 3)))


def peak(work: Any, device: Any) -> int:
    """By how many bytes the process (Linux), or its use of the GPU, grows meanwhile."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return int(torch.cuda.max_memory_allocated() - before)

    def resident(key: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(key)).split()[1])

    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def timed(work: Any, device: Any) -> float:
    """Seconds: of the processor, all threads together, or of the clock on a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return time.perf_counter() - start
    start = time.process_time()
    work()
    return time.process_time() - start


def measured(batch: int, device: Any, repeats: int) -> dict[str, Any]:
    """Medians of the parts of a step, and the memory of what the recorder adds."""
    torch.manual_seed(0)
    model = Residual().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    parameters = list(model.parameters())
    size = sum(parameter.numel() for parameter in parameters)
    run = dosimeter.Run(noise_multiplier=1.0, dataset_size=50_000, batch_size=batch, steps=1000)
    # A rate at which every step draws some canaries: one costs as much as all of them.
    canaries = GradientCanary(
        optimizer, clip_norm=1.0, sample_rate=0.5, divisor=batch, count=1000, seed=7
    )
    recorder = Recorder(model, optimizer, claim=run, loss=cross_entropy, canaries=canaries)
    images = torch.randn(batch, 3, 32, 32, device=device)
    labels = torch.randint(10, (batch,), device=device)

    def plain() -> None:
        optimizer.zero_grad()
        cross_entropy(model, (images, labels)).mean().backward()

    def private() -> None:
        """One record at a time: the plainest private step, and the one with the least memory."""
        total = [torch.zeros_like(parameter) for parameter in parameters]
        for index in range(batch):
            one = slice(index, index + 1)
            loss = cross_entropy(model, (images[one], labels[one])).sum()
            gradient = torch.autograd.grad(loss, parameters)
            norm = float(sum(part.pow(2).sum() for part in gradient)) ** 0.5
            for sofar, part in zip(total, gradient, strict=True):
                sofar.add_(part, alpha=min(1.0, 1.0 / norm))
        for parameter, sofar in zip(parameters, total, strict=True):
            parameter.grad = (sofar + torch.randn_like(sofar)) / batch

    def inserted() -> None:
        # Any step but those that are looked into.
        recorder.recording.steps = 1
        recorder._step()

    def looked() -> None:
        recorder._look(batch)
        recorder._batches = []

    def median(work: Any, told: bool = False, times: int = repeats) -> float:
        found = []
        for _ in range(times + 1):
            if told:
                recorder.batch((images, labels))
            found.append(timed(work, device))
        return sorted(found[1:] or found)[(len(found) - 1) // 2 if len(found) > 1 else 0]

    # Memory first, before anything was freed that could be used again, and with a batch of one, so
    # that activations do not hide it.
    memory = []
    optimizer.zero_grad()
    cross_entropy(model, (images[:1], labels[:1])).mean().backward()
    for work in (inserted, lambda: recorder._look(1)):
        recorder._batches = []
        recorder.batch((images[:1], labels[:1]))
        memory.append(peak(work, device) / (4 * size))
    recorder._batches = []
    answer: dict[str, Any] = {
        "parameters": size,
        "batch": batch,
        "device": str(device),
        "threads": torch.get_num_threads(),
        "step": median(plain),
        "private_step": median(private, times=0),
        "canaries": median(inserted, told=True),
        "look": median(looked, told=True, times=0),
        "every": recorder.every,
        "copies_of_the_parameters": max(memory),
    }
    each = answer["canaries"] + answer["look"] / recorder.every
    answer["overhead"] = each / answer["private_step"]
    answer["overhead_without_privacy"] = each / answer["step"]
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object in place of the table")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    found = measured(chosen.batch, torch.device(chosen.device), chosen.repeats)
    if chosen.json:
        print(json.dumps(found))
        return
    print(
        f"{found['parameters']:,} parameters, batch {found['batch']}, {found['device']}, "
        f"{found['threads']} threads; seconds"
    )
    print(f"a step without privacy        {found['step']:8.3f}")
    print(f"a private step                {found['private_step']:8.3f}")
    print(f"canaries, every step          {found['canaries']:8.3f}")
    print(f"a look, every {found['every']} steps       {found['look']:8.3f}")
    print(f"overhead on a private step    {found['overhead']:8.2%}")
    print(f"overhead on a step without    {found['overhead_without_privacy']:8.2%}")
    print(f"memory: {found['copies_of_the_parameters']:.2f} copies of the parameters")


if __name__ == "__main__":
    main()
