"""Memorisation metrics on any Hugging Face model: greedy completions for ``memorize``, the
verbatim memorisation and attribute inference ratios of them, and the compression ratio for
architectures that the core runs itself."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _asking
from ._types import Document
from .errors import InvalidInput
from .training import memorize

__all__ = ["complete", "memorize_model", "save_secrets"]


def complete(
    model: Any,
    tokenizer: Any,
    secrets: Iterable[Mapping[str, Any]],
    *,
    out: str | os.PathLike[str],
    new_tokens: int = 50,
) -> Path:
    """Greedy completions of prompts, as the JSONL that ``dosimeter memorize`` reads.

    ``secrets`` have ``prompt`` and ``target``, and perhaps ``secret`` and ``attribute``, which are
    kept. The model is any with ``generate``, the tokenizer its own.
    """
    import torch

    path = Path(out)
    was_training = model.training
    model.eval()
    with path.open("w", encoding="utf-8") as file, torch.no_grad():
        for row, secret in enumerate(secrets, 1):
            for key in ("prompt", "target"):
                if not isinstance(secret.get(key), str):
                    raise InvalidInput(f"secret {row} has no text `{key}`")
            encoded = tokenizer(secret["prompt"], return_tensors="pt")
            ids = encoded["input_ids"].to(model.device)
            produced = model.generate(
                ids,
                attention_mask=encoded["attention_mask"].to(model.device),
                max_new_tokens=new_tokens,
                do_sample=False,
                num_beams=1,
                pad_token_id=_padding(tokenizer),
            )
            text = tokenizer.decode(produced[0, ids.shape[1] :], skip_special_tokens=True)
            file.write(json.dumps({**secret, "completion": text}) + "\n")
    model.train(was_training)
    return path


def _padding(tokenizer: Any) -> int:
    token = tokenizer.pad_token_id
    return int(tokenizer.eos_token_id if token is None else token)


def save_secrets(secrets: Iterable[Mapping[str, Any]], out: str | os.PathLike[str]) -> Path:
    """Secrets as the JSONL that ``dosimeter memorize`` reads."""
    path = Path(out)
    with path.open("w", encoding="utf-8") as file:
        for secret in secrets:
            file.write(json.dumps(dict(secret)) + "\n")
    return path


def memorize_model(
    model: Any,
    tokenizer: Any,
    secrets: Iterable[Mapping[str, Any]],
    *,
    metric: str = "vmr",
    out: str | os.PathLike[str] | None = None,
    new_tokens: int = 50,
    **options: Any,
) -> Document:
    """How much of the secrets a model gives away: ``vmr``, ``air`` or ``acr``.

    For the ratios of completions the prompts are completed here, by any model, and kept in ``out``
    where it is given. For ``acr`` the model is saved to a temporary folder and searched by the
    core, which knows the architectures of GPT-2 and Llama and refuses others by name. Further
    keywords are the flags of ``dosimeter memorize``.
    """
    with _asking.scratch() as folder:
        if metric == "acr":
            model.save_pretrained(folder / "model")
            tokenizer.save_pretrained(folder / "model")
            path = save_secrets(secrets, folder / "secrets.jsonl")
            return memorize("acr", model=folder / "model", secrets=path, **options)
        path = complete(
            model, tokenizer, secrets, out=out or folder / "completions.jsonl", new_tokens=new_tokens
        )
        return memorize(metric, path, **options)
