"""Hugging Face's Trainer: a small random GPT-2 with adapters, canaries, and the verdict."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import dosimeter  # noqa: E402
from dosimeter.trainer import PrivacyCallback, language_loss  # noqa: E402

pytestmark = [pytest.mark.bridge, pytest.mark.filterwarnings("ignore::UserWarning")]
torch.set_num_threads(1)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "clinic"))


def test_a_fine_tuning_with_canaries_ends_in_a_verdict() -> None:
    import hf_trainer

    recorder = hf_trainer.train(bug=False, seed=1, canaries=128).recorder
    assert not recorder.accused and recorder.recording.steps == hf_trainer.STEPS, recorder
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dosimeter.DosimeterWarning)
        answer = recorder.audit(delta=1e-4, claim=hf_trainer.CLAIM)
    assert answer.verdict is not None and answer.verdict.status != "contradiction"


def test_losses_are_those_of_each_sequence() -> None:
    import hf_trainer

    model = hf_trainer.small_model(0)
    rows = hf_trainer.Sequences().rows[:3].clone()
    labels = rows.clone()
    labels[1, 5:] = -100
    losses = language_loss(model, {"input_ids": rows, "labels": labels})
    for row in range(3):
        one = model(input_ids=rows[row : row + 1], labels=labels[row : row + 1]).loss
        assert float(losses[row]) == pytest.approx(float(one), rel=1e-4)


def test_the_trainers_own_clipping_is_refused_by_name() -> None:
    run = dosimeter.Run(noise_multiplier=1.0, sample_rate=0.1, steps=10, dataset_size=100)
    callback = PrivacyCallback(claim=run)

    class Arguments:
        max_grad_norm = 1.0

    with pytest.raises(dosimeter.Unsupported, match="max_grad_norm"):
        callback.on_train_begin(Arguments(), None, None)
    with pytest.raises(dosimeter.InvalidInput, match="not begun"):
        _ = callback.recorder


class NoClipping:
    max_grad_norm = 0.0


def begun(claim: dosimeter.Run, **options: Any) -> PrivacyCallback:
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    callback = PrivacyCallback(claim=claim, canaries={"count": 4, "seed": 7}, **options)
    callback.on_train_begin(NoClipping(), None, None, model=model, optimizer=optimizer)
    return callback


def test_canaries_are_divided_as_the_recorder_divides() -> None:
    """Without `divisor` both take the expected batch size, from the claim or from `dataset_size`."""
    keys: dict[str, Any] = {"noise_multiplier": 1.0, "sample_rate": 0.25, "steps": 10}
    bare, whole = dosimeter.Run(**keys), dosimeter.Run(**keys, dataset_size=100)
    for callback, divisor in (
        (begun(bare, dataset_size=200), 50.0),
        (begun(whole), 25.0),
        (begun(whole, divisor=7.0), 7.0),
    ):
        recorder = callback.recorder
        assert recorder.canaries is not None
        assert recorder.canaries.divisor == recorder.divisor == divisor
    with pytest.raises(dosimeter.InvalidInput, match="`divisor` or `dataset_size`"):
        begun(bare)
