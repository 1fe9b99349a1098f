"""What a recorder with 1,000 gradient canaries costs on a model of ResNet-18's size: seconds of the
processor and memory, beside a step of training. ``python overhead.py [BATCH]``."""

from __future__ import annotations

import sys
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


def peak(work: Any) -> int:
    """By how many bytes the process grows meanwhile (Linux)."""

    def resident(key: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(key)).split()[1])

    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def main() -> None:
    batch = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Residual()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    size = sum(parameter.numel() for parameter in model.parameters())
    run = dosimeter.Run(noise_multiplier=1.0, dataset_size=50_000, batch_size=batch, steps=1000)
    canaries = GradientCanary(
        optimizer, clip_norm=1.0, sample_rate=run.sample_rate, divisor=batch, count=1000, seed=7
    )
    recorder = Recorder(model, optimizer, claim=run, loss=cross_entropy, canaries=canaries)
    images, labels = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))

    def measured(work: Any) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    def plain() -> None:
        optimizer.zero_grad()
        cross_entropy(model, (images, labels)).mean().backward()

    def private() -> None:
        """One record at a time: the plainest private step, and the one with the least memory."""
        total = [torch.zeros_like(parameter) for parameter in model.parameters()]
        for index in range(batch):
            one = slice(index, index + 1)
            loss = cross_entropy(model, (images[one], labels[one])).sum()
            gradient = torch.autograd.grad(loss, list(model.parameters()))
            norm = float(sum(part.pow(2).sum() for part in gradient)) ** 0.5
            for sofar, part in zip(total, gradient, strict=True):
                sofar.add_(part, alpha=min(1.0, 1.0 / norm))
        for parameter, sofar in zip(model.parameters(), total, strict=True):
            parameter.grad = (sofar + torch.randn_like(sofar)) / batch

    step = measured(plain)
    dp_step = measured(private)
    recorder.batch((images, labels))
    recorder.recording.steps = 1
    inserted = measured(recorder._step)
    recorder.batch((images, labels))
    looked = measured(lambda: recorder._look(batch))
    recorder._batches = []
    # Memory with a batch of one, so that activations do not hide it.
    recorder.batch((images[:1], labels[:1]))
    memory = [peak(recorder._step)]
    recorder.batch((images[:1], labels[:1]))
    memory.append(peak(lambda: recorder._look(1)))
    each = inserted + looked / recorder.every
    print(f"{size:,} parameters, batch {batch}, processor seconds on one thread")
    print(f"a step without privacy        {step:8.2f}")
    print(f"a private step                {dp_step:8.2f}")
    print(f"canaries, every step          {inserted:8.2f}")
    print(f"a look, every {recorder.every} steps       {looked:8.2f}")
    print(f"overhead on a private step    {each / dp_step:8.2%}")
    print(f"overhead on a step without    {each / step:8.2%}")
    for name, bytes_ in zip(("canaries", "a look"), memory, strict=True):
        print(f"memory of {name}: {bytes_ / (4 * size):.2f} copies of the parameters")


if __name__ == "__main__":
    main()
