"""Hugging Face's Trainer, fine-tuning low-rank adapters of a small GPT-2 with random weights. The
mistake: gradient accumulation clips the gradient of every micro-batch in place of every record's."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy
import torch
import transformers
from attacker import Attacker
from common import TARGET, Patient, main

import dosimeter
from dosimeter.trainer import PrivacyCallback, language_loss

RECORDS, BATCH, STEPS, LENGTH, TOKENS = 200, 16, 24, 12, 64
CLIP, NOISE, MICRO = 0.05, 1.0, 4
CLAIM = dosimeter.Run(
    noise_multiplier=NOISE, sample_rate=BATCH / RECORDS, steps=STEPS, clip_norm=CLIP,
    dataset_size=RECORDS,
)


class LowRank(torch.nn.Module):
    """A frozen layer and a trained product of two thin matrices beside it."""

    def __init__(self, layer: Any, rank: int = 4) -> None:
        super().__init__()
        self.layer = layer
        rows, columns = layer.weight.shape
        self.down = torch.nn.Parameter(torch.randn(rows, rank) / rows**0.5)
        self.up = torch.nn.Parameter(0.1 * torch.randn(rank, columns))

    def forward(self, inputs: Any) -> Any:
        return self.layer(inputs) + inputs @ self.down @ self.up


def small_model(seed: int) -> Any:
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=TOKENS, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager",
    )
    model = transformers.GPT2LMHeadModel(config)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for block in model.transformer.h:
        block.attn.c_attn = LowRank(block.attn.c_attn)
    return model


class Sequences(torch.utils.data.Dataset):  # type: ignore[misc]
    """Random sequences that repeat their first half."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        half = torch.randint(TOKENS, (RECORDS, LENGTH // 2), generator=generator)
        self.rows = torch.cat([half, half], 1)

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


class Coins(torch.utils.data.Sampler):  # type: ignore[misc]
    """Poisson batches."""

    def __init__(self, seed: int, member: bool = True) -> None:
        self.seed, self.member = seed, member

    def __iter__(self) -> Any:
        generator = numpy.random.default_rng(self.seed)
        for _ in range(STEPS):
            chosen = numpy.flatnonzero(generator.random(RECORDS) < BATCH / RECORDS)
            chosen = chosen if self.member else chosen[chosen != TARGET]
            # The Trainer cannot take an empty batch; at these rates there is none in 10^6 steps.
            yield chosen.tolist() or [1]

    def __len__(self) -> int:
        return STEPS


class DPTrainer(transformers.Trainer):  # type: ignore[misc]
    """A Trainer whose step clips every record and adds noise."""

    bug = False
    seed = 0
    member = True
    attacker: Attacker | None = None

    def get_train_dataloader(self) -> Any:
        coins = Coins(self.seed, self.member)
        return torch.utils.data.DataLoader(self.train_dataset, batch_sampler=coins)

    def summed(self, model: Any, trained: list[Any], inputs: Any) -> tuple[list[Any], Any]:
        """The sum of clipped gradients, and the losses of the last records."""
        total, losses = [torch.zeros_like(value) for value in trained], torch.zeros(1)
        count = len(inputs["input_ids"])
        size = MICRO if self.bug else 1
        for start in range(0, count, size):
            part = {name: value[start : start + size] for name, value in inputs.items()}
            losses = language_loss(model, part)
            gradient = torch.autograd.grad(losses.sum(), trained)
            norm = sum(piece.pow(2).sum() for piece in gradient).sqrt()
            factor = (CLIP * size / norm).clamp(max=1.0)
            for sofar, piece in zip(total, gradient, strict=True):
                sofar += factor * piece
        return total, losses

    def training_step(self, model: Any, inputs: Any, *_: Any) -> Any:
        model.train()
        trained = [value for value in model.parameters() if value.requires_grad]
        total, losses = self.summed(model, trained, inputs)
        noised = [part + NOISE * CLIP * torch.randn_like(part) for part in total]
        if self.attacker is not None:
            rows, target = inputs["input_ids"], self.train_dataset[TARGET]["input_ids"]
            others = rows[(rows != target).any(1)]
            both = [others, torch.cat([target[None], others])]
            sums = [self.summed(model, trained, {"input_ids": r, "labels": r})[0] for r in both]
            self.attacker.see(*(flat(part) for part in (noised, *sums)))
        for value, part in zip(trained, noised, strict=True):
            value.grad = part / BATCH
        return losses.detach().mean()


def flat(parts: Any) -> Any:
    return torch.cat([part.detach().reshape(-1) for part in parts]).double().numpy()


def train(
    *,
    bug: bool,
    seed: int,
    canaries: int = 0,
    member: bool = True,
    every: int = 2,
    attacker: Attacker | None = None,
) -> Patient:
    """A DP Trainer that clips micro-batches."""
    model = small_model(seed)
    callback = PrivacyCallback(
        claim=CLAIM, divisor=BATCH, every=1 if canaries else every,
        canaries={"count": canaries, "seed": seed, "observe": "all", "noise_multiplier": NOISE}
        if canaries else None,
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, max_steps=STEPS, max_grad_norm=0.0, learning_rate=0.1,
            optim="sgd", report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True,
            logging_strategy="no", seed=seed,
        )
        trainer = DPTrainer(
            model, arguments, train_dataset=Sequences(), callbacks=[callback],
        )
        trainer.bug, trainer.seed, trainer.member, trainer.attacker = bug, seed, member, attacker
        callback.watch(trainer).train()
    return Patient(callback.recorder, 0.0 if attacker is None else attacker.score)


if __name__ == "__main__":
    main(train)
