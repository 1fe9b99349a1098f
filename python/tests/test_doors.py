"""One question, one answer: Python and the command line give the same document to the byte,
refusals and the fields that they name included."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dosimeter import DosimeterError, _core
from dosimeter.errors import in_python

#: Questions of each kind; a thousand in all.
EACH = {
    "account": 290,
    "calibrate": 100,
    "advice": 20,
    "curve": 90,
    "compare": 60,
    "compare-map": 20,
    "batch-sizes": 20,
    "translate": 120,
    "check": 100,
    "plan": 40,
    "audit": 40,
    "tune": 50,
    "memorize": 40,
    "status": 10,
}

#: The command of a kind, where it has another name.
COMMANDS = {
    "advice": ["calibrate"],
    "compare-map": ["compare", "--map"],
    "batch-sizes": ["compare"],
}

#: Keys that are words of the command and not flags, in their order.
WORDS = ("kind", "question", "metric", "completions", "path")


@pytest.mark.parametrize("kind", EACH)
def test_the_command_and_python_answer_the_same_bytes(kind: str, tmp_path: Path) -> None:
    dice = random.Random(f"dosimeter {kind}")
    refused = 0
    files = _files(tmp_path)
    for _ in range(EACH[kind]):
        question = _question(kind, dice, files)
        told = _command(kind, question, files)
        assert told == _asked(kind, question, files), question
        refused += told[0] == "refused"
    assert 0 < refused < 0.9 * EACH[kind]


def test_there_are_a_thousand() -> None:
    assert sum(EACH.values()) == 1000


def _files(folder: Path) -> dict[str, str]:
    """A table of trainings, scores, completions and a folder that holds no experiment."""
    columns = "batch_size,steps,learning_rate,clip_norm,epsilon,delta,seed,score_vmr,utility"
    rows = [
        f"{b},{t},{e},1,{epsilon},1e-5,{seed},{b * t / 9e4 + seed / 50 + e},{0.9 - e}"
        for epsilon in (4, 8)
        for b in (32, 64)
        for t in (100, 400)
        for e in (0.1, 0.2)
        for seed in (0, 1)
    ]
    secrets = [
        {"prompt": "The code is", "target": f" {n}", "completion": f" {n - n % 3}.", "secret": str(n)}
        for n in range(4400, 4412)
    ]
    scores = [f"{(7 * row) % 60 + 25 * (row % 2)},{row % 2}" for row in range(60)]
    texts = {
        "results.csv": [columns, *rows],
        "plan.csv": [columns, rows[-1]],
        "tuned.jsonl": [json.dumps(row) for row in secrets],
        "base.jsonl": [json.dumps(row | {"completion": " red"}) for row in secrets],
        "scores.csv": ["score,member", *scores],
    }
    for name, lines in texts.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    game = folder / "game.csv"
    played = ["attack", "linear", "--noise-multiplier=1", "--sample-rate=0.1", "--steps=5"]
    _core.command(["dosimeter", *played, "--trials=50", f"--out={game}"], None, False)
    names = {name: str(folder / name) for name in [*texts, "missing.jsonl", "game.csv"]}
    return names | {"folder": str(folder), "work": f"{game}.work"}


def _table(question: dict[str, Any]) -> str:
    """A search solves for the noise of every configuration: it gets one."""
    return "plan.csv" if question["question"] == "search" else "results.csv"


def _refused(error: DosimeterError) -> tuple[Any, ...]:
    field = (error.field, error.value, error.expected)
    return "refused", type(error), error.message, error.hint, error.code, *field


def _asked(kind: str, question: dict[str, Any], files: dict[str, str]) -> tuple[Any, ...]:
    asked = json.dumps(question)
    try:
        if kind == "audit":
            text, _, code = _core.audit(asked, [files["scores.csv"]], [], [], None)
        elif kind == "tune":
            text, _, code = _core.tune(asked, files[_table(question)])
        elif kind == "memorize":
            text, _, code = _core.memorize(asked)
        elif kind == "status":
            text, _, code = _core.status(question["path"])
        else:
            text, _, code = _core.ask(kind, asked)
    except DosimeterError as error:
        return _refused(error)
    return "answered", text, code


def _command(kind: str, question: dict[str, Any], files: dict[str, str]) -> tuple[Any, ...]:
    arguments = ["dosimeter", *COMMANDS.get(kind, [kind])]
    arguments += [question[word] for word in WORDS if word in question]
    given = {key: value for key, value in question.items() if key not in WORDS}
    if kind == "audit":
        arguments.append(files["scores.csv"])
    if kind == "tune":
        arguments.append(files[_table(question)])
    if kind == "compare":
        given |= given.pop("runs")[0]["run"]
    for key, value in given.items():
        if isinstance(value, dict):
            for name, one in value.items():
                arguments.append(f"--{name.replace('_', '-')}={one}")
        else:
            for one in value if isinstance(value, list) else [value]:
                arguments.append(f"--{key.replace('_', '-')}={one}")
    try:
        code, stdout, _ = _core.command([*arguments, "--format=json"], None, False)
    except DosimeterError as error:
        return _refused(error)
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


def _question(kind: str, dice: random.Random, files: dict[str, str]) -> dict[str, Any]:
    delta = dice.choice([1e-5, 1e-6, 0.01, 1e-5, 2.0])
    lens = dice.choice(["composition", "last-iterate", "full-batch", "gaussian-clt"])
    if kind in ("account", "compare"):
        quantities = ["epsilon", "advantage", "bayes-security", "attack-accuracy"]
        run = _run(dice)
        about = {"run": run} if kind == "account" else {"runs": [{"name": "run", "run": run}]}
        return {
            **about,
            "delta": [delta],
            "lens": [lens],
            "quantity": dice.sample(quantities, 2),
        }
    if kind in ("calibrate", "advice"):
        solve = dice.choice(["noise-multiplier", "steps", "sample-rate"])
        target, value = dice.choice([("epsilon", 2.0), ("advantage", 0.3), ("epsilon", -1.0)])
        question: dict[str, Any] = {f"target_{target}": value}
        if kind == "calibrate":
            question |= {"solve": solve, "run": _run(dice, without=solve.replace("-", "_"))}
        else:
            run = {"dataset_size": 50000, "epochs": dice.choice([1.0, 5.0])}
            question |= {"batch_sizes": dice.sample([64, 256, 1000], 2), "run": run}
        return question | ({"delta": delta} if target == "epsilon" else {})
    if kind == "compare-map":
        noise = dice.choice([{"noise_multiplier": 1.0}, {"noise_multiplier": 2.0}, {}])
        grid = {"sample_rates": [0.01, 0.1], "steps_list": [10, 100]}
        return {**noise, **grid, "delta": [delta]}
    if kind == "batch-sizes":
        question = {"batch_sizes": [256, 1000], "dataset_size": 50000, "epochs": 5.0}
        if dice.random() < 0.8:
            question["heuristic_epsilon"] = dice.choice([2.0, 4.0])
        return question | {"delta": [delta]}
    if kind == "audit":
        question = {
            "delta": [dice.choice([0.0, 1e-5, 1e-3, -1.0])],
            "confidence": dice.choice([0.9, 0.95, 0.99, 1.5]),
            "method": [dice.choice(["gdp", "bayes", "clopper-pearson"])],
        }
        return question | dice.choice([{}, {"claim_epsilon": 0.5}, {"claim_epsilon": -1.0}])
    if kind == "tune":
        asked = dice.choice(["rank", "regress", "select"] * 5 + ["search"])
        question = {"question": asked} | dice.choice([{}, {"epsilon": 8.0}, {"epsilon": 3.0}])
        if asked == "search":
            trials = dice.choice(["geometric", "logarithmic", "poisson"])
            expected = dice.choice([5.0, 20.0, 0.5])
            return question | {"dataset_size": 33508, "expected_trials": expected, "trials": trials}
        if asked == "select":
            return question | {"min_utility": [dice.choice([0.75, 0.85, 0.99])]}
        if asked == "regress":
            question["unit"] = dice.choice(["configurations", "runs"])
        return question | {"confidence": dice.choice([0.9, 0.95, 1.0])}
    if kind == "memorize":
        names = ["tuned.jsonl", "tuned.jsonl", "tuned.jsonl", "missing.jsonl"]
        question = {"metric": dice.choice(["vmr", "air"])}
        if dice.random() < 0.9:
            question["completions"] = files[dice.choice(names)]
        if dice.random() < 0.5:
            question["base"] = files["base.jsonl"]
        if dice.random() < 0.5:
            question["match"] = dice.choice(["prefix", "contains", "words", "exact"])
        if dice.random() < 0.5:
            question["normalize"] = dice.choice(["none", "space", "case", "loose"])
        return question | {"confidence": dice.choice([0.9, 0.95, 0.0])}
    if kind == "status":
        return {"path": files[dice.choice(["game.csv", "work", "scores.csv", "folder"])]}
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
