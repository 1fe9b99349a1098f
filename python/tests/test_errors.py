"""Every refusal is an exception that names the value and the way out, in Python's words."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import dosimeter
from dosimeter import DosimeterError, InvalidInput, NotCertified, Unsupported


def test_the_kinds(run: dosimeter.Run) -> None:
    with pytest.raises(InvalidInput, match="sample rate 1.3 is outside"):
        dosimeter.Run(noise_multiplier=1.0, sample_rate=1.3, steps=10)
    with pytest.raises(InvalidInput, match="give sample_rate"):
        dosimeter.Run(noise_multiplier=1.0, batch_size=3, steps=10)
    with pytest.raises(InvalidInput, match="whole number"):
        dosimeter.Run(noise_multiplier=1.0, sample_rate=0.1, steps=10.5)
    with pytest.raises(InvalidInput, match="none of: poisson"):
        dosimeter.Run(noise_multiplier=1, sample_rate=0.1, steps=1, sampling="balls")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="unknown variant `moments`"):
        dosimeter.account(run, lens="moments")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="unknown key `sigma`"):
        dosimeter.Run(phases=[{"sigma": 1.0}])
    with pytest.raises(NotCertified):
        dosimeter.account({"noise_multiplier": 1e-3, "sample_rate": 0.1, "steps": 10}, delta=1e-5)
    with pytest.raises(Unsupported, match="does not hold"):
        dosimeter.account({**run.flags(), "sampling": "shuffle"}, lens="composition", delta=1e-5)
    with pytest.raises(Unsupported):
        dosimeter.calibrate(
            "steps", target_advantage=0.1, noise_multiplier=1, sample_rate=0.1, sampling="shuffle"
        )
    with pytest.raises(InvalidInput, match="target_epsilon needs a delta"):
        dosimeter.calibrate("steps", target_epsilon=1, noise_multiplier=1, sample_rate=0.1)
    with pytest.raises(InvalidInput, match="an account or its document is needed, not int"):
        dosimeter.prove(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="(?s)is not an account document.* --format json"):
        dosimeter.prove("account.json")
    with pytest.raises(TypeError):
        dosimeter.account(run, 1e-5)  # type: ignore[misc]
    with pytest.raises(TypeError):
        dosimeter.Run(1.0, 0.01, 1000)  # type: ignore[misc]


def test_hints_and_codes_come_along() -> None:
    with pytest.raises(InvalidInput) as caught:
        dosimeter.attack("linear", run={"noise_multiplier": 1, "sample_rate": 0.1, "steps": 5})
    error = caught.value
    assert error.code == 2 and error.hint is not None and "delta 1e-5" in error.hint
    assert "--" not in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.code) == (InvalidInput, str(error), 2)
    assert issubclass(InvalidInput, ValueError) and issubclass(InvalidInput, DosimeterError)


def test_files_are_named() -> None:
    with pytest.raises(InvalidInput, match="nowhere.toml"):
        dosimeter.account("nowhere.toml", delta=1e-5)
    with pytest.raises(InvalidInput, match="nowhere.csv"):
        dosimeter.audit("nowhere.csv")


def test_what_a_reader_should_know_is_a_warning() -> None:
    run = dosimeter.Run(noise_multiplier=1, dataset_size=1000, batch_size=10, steps=10)
    with pytest.warns(dosimeter.DosimeterWarning, match="above 1/n"):
        account = dosimeter.account(run, delta=1e-2, lens="composition")
    assert account.warnings


def test_documents_of_another_schema_are_refused(run: dosimeter.Run) -> None:
    with pytest.raises(InvalidInput, match="schema"):
        dosimeter.Account.from_json('{"schema": "dosimeter.audit/1"}')
    with pytest.raises(InvalidInput, match="not an object"):
        dosimeter.Audit.from_dict([])  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.5, "many", None])
def test_counts_are_whole_numbers(value: Any) -> None:
    run = dosimeter.Run(noise_multiplier=1, sample_rate=0.01, steps=10)
    target: Any = {"target_epsilon": 2, "delta": 1e-5, "dataset_size": 1000, "epochs": 2}
    with pytest.raises(InvalidInput, match="whole number"):
        dosimeter.advise([value], **target)
    if value is not None:
        with pytest.raises(InvalidInput, match="whole number"):
            dosimeter.attack("linear", run=run, trials=value)
    with pytest.raises(InvalidInput, match="whole number"):
        dosimeter.experiment(float).run(trials=value, out="scores.csv")
