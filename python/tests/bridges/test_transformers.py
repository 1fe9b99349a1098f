"""Memorisation by a Hugging Face model, here a tiny one that has learnt a sentence by heart."""

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

pytestmark = [
    pytest.mark.bridge,
    # Two secrets leave wide intervals, and there is no un-tuned model to compare with.
    pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning"),
]

torch.set_num_threads(1)

SENTENCE = "the code is seven eight nine"
SECRETS = [
    {"prompt": "the code is", "target": " seven eight nine", "secret": "a", "attribute": "eight"},
    {"prompt": "nine code", "target": " eight eight eight", "secret": "b", "attribute": "zero"},
]


@pytest.fixture(scope="module")
def tokens() -> Any:
    """Bytes, and the sentence's words as merges: the kind of tokenizer that GPT-2 has."""
    core = tokenizers.Tokenizer(tokenizers.models.BPE())
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator([SENTENCE] * 10, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|endoftext|>", bos_token="<|endoftext|>"
    )


@pytest.fixture(scope="module")
def model(tokens: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokens), n_positions=32, n_embd=32, n_layer=1, n_head=2,
        bos_token_id=tokens.bos_token_id, eos_token_id=tokens.eos_token_id,
    )
    made = transformers.GPT2LMHeadModel(config)
    whole = tokens(SENTENCE, return_tensors="pt")["input_ids"]
    optimizer = torch.optim.Adam(made.parameters(), lr=0.01)
    for step in range(200):
        # Learnt behind other tokens too, so that a short prompt for the whole sentence exists.
        before = torch.randint(len(tokens), (1, step % 6))
        ids = torch.cat([before, whole], dim=1)
        labels = torch.cat([torch.full_like(before, -100), whole], dim=1)
        optimizer.zero_grad()
        made(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
    return made


def test_completions_are_written(model: Any, tokens: Any, tmp_path: Path) -> None:
    path = bridge.complete(model, tokens, SECRETS, out=tmp_path / "c.jsonl", new_tokens=3)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["secret"] for row in rows] == ["a", "b"] and model.training
    assert rows[0]["completion"].startswith(" seven eight")
    with pytest.raises(dosimeter.InvalidInput, match="secret 1 has no text `target`"):
        bridge.complete(model, tokens, [{"prompt": "x"}], out=tmp_path / "d.jsonl")


def test_what_was_learnt_by_heart_is_found(model: Any, tokens: Any, tmp_path: Path) -> None:
    out = tmp_path / "completions.jsonl"
    verbatim = bridge.memorize_model(model, tokens, SECRETS, out=out, new_tokens=10)
    assert [row["rate"] for row in verbatim["per_secret"]] == [1.0, 0.0]
    assert verbatim == dosimeter.memorize("vmr", out)
    inferred = bridge.memorize_model(model, tokens, SECRETS, metric="air", new_tokens=10)
    assert [row["rate"] for row in inferred["per_secret"]] == [1.0, 0.0]


def test_the_core_runs_the_same_model(model: Any, tokens: Any, tmp_path: Path) -> None:
    """Saved by transformers and read by the core: the same greedy text, and a compression ratio."""
    model.save_pretrained(tmp_path / "model")
    tokens.save_pretrained(tmp_path / "model")
    secrets = bridge.save_secrets(SECRETS, tmp_path / "secrets.jsonl")
    ours = dosimeter.memorize("vmr", model=tmp_path / "model", secrets=secrets, new_tokens=10)
    theirs = bridge.memorize_model(model, tokens, SECRETS, new_tokens=10)
    assert ours["per_secret"] == theirs["per_secret"]
    compressed = bridge.memorize_model(
        model, tokens, SECRETS[:1], metric="acr", steps=60, candidates=60
    )
    assert compressed["schema"] == "dosimeter.memorize-acr/1"
    # Learnt by heart: fewer tokens than the secret has are enough.
    (found,) = compressed["results"]
    assert found["result"]["memorized"] and found["result"]["ratio"] > 1.0
