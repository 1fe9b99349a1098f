"""Completions of a Hugging Face model, here a tiny one with a memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

import dosimeter  # noqa: E402
import dosimeter.transformers as bridge  # noqa: E402

pytestmark = pytest.mark.bridge

WORDS = ["<pad>", "<end>", "the", "code", "is", "seven", "eight", "nine", "of", "card"]


def tokenizer() -> Any:
    words = tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<pad>")
    core = tokenizers.Tokenizer(words)
    core.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<end>"
    )


def trained(tokens: Any) -> Any:
    """A model that has learnt one sentence by heart."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(WORDS), n_positions=16, n_embd=32, n_layer=1, n_head=2,
        bos_token_id=1, eos_token_id=1,
    )
    model = transformers.GPT2LMHeadModel(config)
    ids = tokens("the code is seven eight nine", return_tensors="pt")["input_ids"]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    return model


def test_what_was_learnt_by_heart_is_completed(tmp_path: Path) -> None:
    tokens = tokenizer()
    model = trained(tokens)
    secrets = [
        {"prompt": "the code is", "target": "seven eight nine", "secret": "a"},
        {"prompt": "card of", "target": "eight eight", "secret": "b"},
    ]
    path = bridge.complete(model, tokens, secrets, out=tmp_path / "c.jsonl", new_tokens=3)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["secret"] for row in rows] == ["a", "b"]
    assert rows[0]["completion"].strip() == "seven eight nine"
    assert model.training
    with pytest.raises(dosimeter.InvalidInput, match="secret 1 has no text `target`"):
        bridge.complete(model, tokens, [{"prompt": "x"}], out=tmp_path / "d.jsonl")
