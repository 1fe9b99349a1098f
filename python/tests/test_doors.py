"""One question, one answer: Python and the command line give the same document to the byte,
refusals included."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from dosimeter import DosimeterError, _core
from dosimeter.errors import in_python

#: Questions of each kind; a thousand in all.
EACH = {
    "account": 450,
    "calibrate": 120,
    "curve": 100,
    "translate": 150,
    "check": 120,
    "plan": 60,
}


@pytest.mark.parametrize("kind", EACH)
def test_the_command_and_python_answer_the_same_bytes(kind: str) -> None:
    dice = random.Random(f"dosimeter {kind}")
    refused = 0
    for _ in range(EACH[kind]):
        question = _question(kind, dice)
        told = _command(kind, question)
        assert told == _asked(kind, question), question
        refused += told[0] == "refused"
    assert 0 < refused < 0.9 * EACH[kind]


def _asked(kind: str, question: dict[str, Any]) -> tuple[Any, ...]:
    try:
        text, _, code = _core.ask(kind, json.dumps(question))
    except DosimeterError as error:
        return "refused", error.message, error.hint, error.code
    return "answered", text, code


def _command(kind: str, question: dict[str, Any]) -> tuple[Any, ...]:
    arguments = ["dosimeter", kind]
    for key, value in question.items():
        if key == "kind":
            arguments.insert(2, value)
        elif isinstance(value, dict):
            for name, one in value.items():
                arguments.append(f"--{name.replace('_', '-')}={one}")
        else:
            for one in value if isinstance(value, list) else [value]:
                arguments.append(f"--{key.replace('_', '-')}={one}")
    try:
        code, stdout, _ = _core.command([*arguments, "--format=json"], None, False)
    except DosimeterError as error:
        return "refused", error.message, error.hint, error.code
    return "answered", stdout, code


def _run(dice: random.Random, *, without: str = "") -> dict[str, Any]:
    run: dict[str, Any] = {
        "noise_multiplier": dice.choice([0.7, 1.0, 1.37, 4.0, 1.1, 2.2, -1.0, 0.01]),
        "sample_rate": dice.choice([0.01, 0.001, 0.25, 0.02, 0.05, 1.5]),
        "steps": dice.choice([1, 50, 200, 1000, 7, 0]),
    }
    if dice.random() < 0.2:
        run["sampling"] = dice.choice(["poisson", "shuffle", "fixed-size", "full"])
    if dice.random() < 0.2:
        run["adjacency"] = dice.choice(["add-remove", "substitute"])
    if dice.random() < 0.1:
        run["epochs"] = 2.5
    if dice.random() < 0.9:
        run.pop(without, None)
    return run


def _question(kind: str, dice: random.Random) -> dict[str, Any]:
    delta = dice.choice([1e-5, 1e-6, 0.01, 1e-5, 2.0])
    lens = dice.choice(["composition", "last-iterate", "full-batch", "gaussian-clt"])
    if kind == "account":
        quantities = ["epsilon", "advantage", "bayes-security", "attack-accuracy"]
        return {
            "run": _run(dice),
            "delta": [delta],
            "lens": [lens],
            "quantity": dice.sample(quantities, 2),
        }
    if kind == "calibrate":
        solve = dice.choice(["noise-multiplier", "steps", "sample-rate"])
        target, value = dice.choice([("epsilon", 2.0), ("advantage", 0.3), ("epsilon", -1.0)])
        question = {
            "solve": solve,
            "run": _run(dice, without=solve.replace("-", "_")),
            f"target_{target}": value,
        }
        return question | ({"delta": delta} if target == "epsilon" else {})
    if kind == "curve":
        curve = dice.choice(["tradeoff", "profile", "steps"])
        question = {"kind": curve, "run": _run(dice), "points": dice.choice([3, 5, 1])}
        return question | ({"delta": delta} if curve == "steps" else {})
    if kind == "translate":
        given = dice.choice(["bayes_security", "epsilon", "mu", "attack_accuracy", "tpr"])
        return {given: dice.choice([0.6, 0.9, -1.0]), "delta": delta}
    if kind == "check":
        limit = dice.choice(["max_epsilon", "max_advantage", "min_bayes_security"])
        return {"run": _run(dice), "policy": {limit: dice.choice([0.3, 0.9]), "delta": delta}}
    return {
        "target_epsilon": dice.choice([0.5, 1.0, -1.0]),
        "delta": dice.choice([0.0, 1e-5]),
        "attack_fpr": dice.choice([0.01, 0.05, 0.0]),
        "attack_tpr": dice.choice([0.5, 0.9]),
        "threshold": "fixed",
    }


def test_refusals_speak_of_keywords() -> None:
    assert in_python("give --sample-rate") == "give sample_rate"
