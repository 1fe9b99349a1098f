"""One question, one answer: the command line, the page's server and Python give the same document to
the byte, refusals and the fields that they name included."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import subprocess
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy
import pytest

from dosimeter import DosimeterError, Run, _core, attack, errors
from dosimeter._names import Lens, Method, Quantity, Sampling
from dosimeter.errors import in_python

if TYPE_CHECKING:
    from conftest import Program

#: Questions of each kind; a thousand in all.
EACH = {
    "account": 280,
    "calibrate": 90,
    "advice": 15,
    "curve": 40,
    "compare": 60,
    "compare-map": 15,
    "batch-sizes": 15,
    "translate": 120,
    "check": 60,
    "plan": 40,
    "panel": 25,
    "map": 6,
    "audit": 60,
    "tune": 50,
    "memorize": 40,
    "status": 10,
    "report": 10,
    "attack": 44,
    "membership": 10,
    "prove": 10,
}

#: The command of a kind, where it has another name.
COMMANDS = {
    "advice": ["calibrate"],
    "compare-map": ["compare", "--map"],
    "batch-sizes": ["compare"],
    "membership": ["attack"],
}

#: Kinds that only the page asks, so no command prints their documents.
OF_THE_PAGE = ("panel", "map")

#: Kinds whose questions name files of this machine: no request does.
WITHOUT_REQUESTS = ("tune", "memorize", "status", "report", "attack", "membership", "prove")

#: Account documents: two that are true, one with an end that is wrong, and what is none.
ACCOUNTS = ("account.json", "shuffled.json", "wrong.json", "scores.csv")

#: Keys that are words of the command and not flags, in their order.
WORDS = (
    *("kind", "question", "metric", "completions", "path", "files"),
    *("game", "attack", "losses", "members"),
)

#: How batches are drawn, with what each of them needs beyond a rate.
SCHEMES: list[dict[str, Any]] = [
    {"sampling": "poisson"},
    {"sampling": "full"},
    {"sampling": "shuffle"},
    {"sampling": "shuffle", "permutation": "kept"},
    {"sampling": "fixed-size"},
    {"sampling": "fixed-size", "replacement": True},
    {"sampling": "balls-and-bins"},
    {"sampling": "truncated-poisson", "max_batch_size": 300},
    {"sampling": "cyclic-poisson", "cycle_length": 4},
    {"sampling": "cyclic-poisson"},
    {"sampling": "in-order"},
]


#: Kinds whose questions are about a run, in numbers that reach every way to draw its batches.
ABOUT_RUNS = ("account", "calibrate", "curve", "compare", "check", "panel", "audit")


#: Targets of a calibration, each with what it needs.
TARGETS: list[dict[str, float]] = [
    {"target_epsilon": 2.0, "delta": 1e-5},
    {"target_epsilon": 2.0, "delta": 1e-6},
    {"target_advantage": 0.1},
    {"target_bayes_security": 0.9},
    {"target_tpr": 0.05, "fpr": 0.01},
    {"target_mu": 0.5, "delta": 1e-5},
    {"target_attack_accuracy": 0.55, "prior": 0.5},
    {"target_reconstruction": 0.2, "prior": 0.1},
]

#: What a calibration solves for.
UNKNOWNS = ("noise-multiplier", "steps", "sample-rate", "batch-size", "epochs")

#: Numbers that can be translated.
TRANSLATED = ("bayes_security", "advantage", "epsilon", "mu", "attack_accuracy", "tpr")

#: Limits of a policy.
LIMITS = ("max_epsilon", "max_mu", "max_advantage", "min_bayes_security", "max_tpr")

#: The loss that the hidden-state lenses need.
LOSS = {"learning_rate": 0.1, "smoothness": 1.0, "strong_convexity": 0.5}


#: Simulated games, each with parameters of its own.
GAMES: list[dict[str, Any]] = [
    {"game": "linear"},
    {"game": "zeroing"},
    {"game": "quadratic", "alpha": 0.5},
    {"game": "quadratic", "alpha": 2.0},
    {"game": "shift-register", "spread": 3.0},
    {"game": "repeaters", "variant": "printed", "threshold": 0.5},
    {"game": "repeaters"},
    {"game": "our-loss", "anyway": True},
    {"game": "our-loss", "spacing": -1.0},
]

#: Methods of audits that can be asked for by name.
NAMED = [method for method in get_args(Method) if method != "sequential"]


class Dice(random.Random):
    """What has few values comes in turn, so that none of them is left out."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.turns: dict[str, int] = {}

    def next(self, name: str, values: Sequence[Any]) -> Any:
        turn = self.turns.get(name, 0)
        self.turns[name] = turn + 1
        return values[turn % len(values)]

    def scheme(self) -> dict[str, Any]:
        found: dict[str, Any] = self.next("scheme", SCHEMES)
        return found


@pytest.mark.parametrize("kind", EACH)
def test_every_door_answers_the_same_bytes(
    kind: str, page: Page, program: Program, tmp_path: Path
) -> None:
    dice = Dice(f"dosimeter {kind}")
    refused = 0
    files = _files(tmp_path)
    for number in range(EACH[kind]):
        question = _question(kind, dice, files)
        told = _asked(kind, question, files)
        if kind not in OF_THE_PAGE:
            assert _command(kind, question, files) == told, question
        if kind not in WITHOUT_REQUESTS:
            heard = page.ask(kind, question, files)
            assert heard == (told[:2] if told[0] == "answered" else told), question
        if kind not in OF_THE_PAGE and number < 2:
            _check_process(program, kind, question, files, told)
        refused += told[0] == "refused"
    assert 0 < refused < 0.9 * EACH[kind]


def test_there_are_a_thousand_of_every_kind() -> None:
    assert sum(EACH.values()) == 1000
    asked = {kind: [] for kind in EACH}
    places = dict.fromkeys(
        ("results.csv", "plan.csv", "tuned.jsonl", "base.jsonl", "scores.csv", "missing.jsonl"), "a"
    )
    places |= dict.fromkeys(("game.csv", "folder", "work", "losses.npy", "mask.npy", *ACCOUNTS), "a")
    for kind, number in EACH.items():
        dice = Dice(f"dosimeter {kind}")
        asked[kind] = [_question(kind, dice, places) for _ in range(number)]
        assert kind not in ABOUT_RUNS or dice.turns["scheme"] >= len(SCHEMES), kind

    def values(kind: str, key: str) -> set[Any]:
        found = [question.get(key, []) for question in asked[kind]]
        return {one for value in found for one in (value if isinstance(value, list) else [value])}

    runs = [question["run"] for question in asked["account"]]
    assert {run.get("sampling") for run in runs} >= set(get_args(Sampling))
    for kind in ("account", "compare", "calibrate"):
        assert values(kind, "lens") >= set(get_args(Lens)), kind
    for kind in ("account", "compare"):
        assert values(kind, "quantity") == set(get_args(Quantity)), kind
    named = set(get_args(Method)) - {"sequential"}
    assert values("audit", "method") >= named and True in values("audit", "sequential")
    assert values("plan", "method") >= named
    assert values("calibrate", "solve") == set(UNKNOWNS)
    keys = {key for question in asked["calibrate"] for key in question}
    assert keys >= {key for target in TARGETS for key in target}
    assert {key for question in asked["translate"] for key in question} >= set(TRANSLATED)
    assert {key for question in asked["check"] for key in question["policy"]} >= set(LIMITS)
    assert values("attack", "game") == {game["game"] for game in GAMES}
    assert values("tune", "question") == {"rank", "regress", "select", "profiles", "search"}
    assert values("memorize", "metric") == {"vmr", "air", "acr"}


def test_the_page_shows_the_status_of_the_command(program: Program, tmp_path: Path) -> None:
    files = _files(tmp_path)
    with serving(program, tmp_path) as page:
        listed = json.loads(page.get("/api/experiments"))["experiments"]
        [one] = [found for found in listed if found["name"] == "game.csv"]
        shown = json.loads(page.get(f"/api/experiments/{one['id']}"))
    told = json.loads(_core.status(files["work"])[0])
    assert {key: shown[key] for key in told} == told


class Page:
    """The server of the page."""

    def __init__(self, address: str) -> None:
        self._address = urllib.parse.urlparse(address).netloc
        self._connection = http.client.HTTPConnection(self._address, timeout=60)

    def get(self, path: str) -> str:
        return self._send("GET", path, None, {})[1]

    def ask(self, kind: str, question: dict[str, Any], files: dict[str, str]) -> tuple[Any, ...]:
        path, body, media = f"/api/{kind}", json.dumps(question), "application/json"
        if kind == "audit":
            asked = urllib.parse.quote(body)
            path = f"/api/audit?figures=no&question={asked}"
            body, media = Path(files["scores.csv"]).read_text(), "text/csv"
        status, text = self._send("POST", path, body, {"Content-Type": media})
        if status == 200:
            return "answered", text
        found = json.loads(text)
        assert found["schema"] == "dosimeter.error/1"
        kinds = {
            "bad-input": errors.InvalidInput,
            "unsupported": errors.Unsupported,
            "not-certified": errors.NotCertified,
            "incomplete": errors.Incomplete,
        }
        hint = found.get("hint")
        field = (found.get("field"), found.get("value"), found.get("expected"))
        sentence = in_python(found["error"]), None if hint is None else in_python(hint)
        return "refused", kinds[found["kind"]], *sentence, found["exit_code"], *field

    def _send(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, str]:
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
        except OSError:
            # The server closes a connection that nobody used while the other doors were asked.
            self._connection.close()
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
        return answer.status, answer.read().decode()


@contextlib.contextmanager
def serving(program: Program, folder: Path) -> Iterator[Page]:
    words = [*program.start, "serve", str(folder), "--port", "0", "--no-open"]
    server = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stdout is not None
        yield Page(server.stdout.readline().strip())
    finally:
        server.terminate()
        server.communicate(timeout=30)


@pytest.fixture(scope="module")
def page(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with serving(program, tmp_path_factory.mktemp("served")) as page:
        yield page


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
    run = {"noise_multiplier": 1.0, "sample_rate": 0.1, "steps": 5}
    about = {"delta": [1e-5], "quantity": ["epsilon"], "lens": ["composition"]}
    shuffled = {"sampling": "shuffle", "adjacency": "zero-out"}
    for name, more in (("account.json", {}), ("shuffled.json", shuffled)):
        texts[name] = _core.ask("account", json.dumps(about | {"run": run | more}))[0].splitlines()
    wrong = json.loads("".join(texts["account.json"]))
    wrong["claims"][0] |= dict.fromkeys(("lower", "value", "upper"), 0.1)
    texts["wrong.json"] = [json.dumps(wrong)]
    for name, lines in texts.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    game = folder / "game.csv"
    attack("linear", run=Run(noise_multiplier=1.0, sample_rate=0.1, steps=5), trials=50, out=game)
    draw = numpy.random.default_rng(0)
    mask = draw.random((40, 20)) < 0.5
    losses = numpy.exp(draw.normal(0.0, 0.3, mask.shape) - 1.5 * mask)
    for name, matrix in (("losses.npy", losses), ("mask.npy", mask.astype(numpy.float64))):
        numpy.save(folder / name, matrix)
        texts[name] = []
    names = {name: str(folder / name) for name in [*texts, "missing.jsonl", "game.csv"]}
    return names | {"folder": str(folder), "work": f"{game}.work"}


def _table(question: dict[str, Any]) -> str:
    """What solves for the noise of every configuration gets one of them."""
    return "plan.csv" if question["question"] in ("search", "profiles") else "results.csv"


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
        elif kind == "prove":
            text, _, code = _core.prove(question["path"], Path(question["path"]).read_text())
        elif kind == "attack":
            text, _, code = _core.attack(asked, None)
        elif kind == "membership":
            (text, _, code), _ = _core.membership(asked)
        elif kind == "report":
            path, code = _core.report(asked, None)
            text = path.read_text(encoding="utf-8")
        else:
            text, _, code = _core.ask(kind, asked)
    except DosimeterError as error:
        return _refused(error)
    return "answered", text, code


def _words(kind: str, question: dict[str, Any], files: dict[str, str]) -> list[str]:
    """The question as words of a command line."""
    words = [*COMMANDS.get(kind, [kind])]
    for word in WORDS:
        given = question.get(word, [])
        words += given if isinstance(given, list) else [given]
    keys = {key: value for key, value in question.items() if key not in WORDS}
    if kind == "audit":
        words.append(files["scores.csv"])
    if kind == "tune":
        words.append(files[_table(question)])
    if kind == "compare":
        keys |= keys.pop("runs")[0]["run"]
    if "claim" in keys:
        path = Path(files["folder"], "claim.json")
        path.write_text(json.dumps({"run": keys["claim"]}))
        keys["claim"] = str(path)
    for key in ("run", "policy"):
        keys |= keys.pop(key, {})
    for key, value in keys.items():
        flag = f"--{key.replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:
            words.append(flag if one is True else f"{flag}={one}")
    return words if kind == "report" else [*words, "--format=json"]


def _command(kind: str, question: dict[str, Any], files: dict[str, str]) -> tuple[Any, ...]:
    """The command line in this process: its parser and what it prints."""
    words = _words(kind, question, files)
    try:
        code, stdout, _ = _core.command(["dosimeter", *words])
    except DosimeterError as error:
        return _refused(error)
    if kind == "report":
        stdout = Path(question["out"]).read_text(encoding="utf-8")
    return "answered", stdout, code


def _check_process(
    program: Program,
    kind: str,
    question: dict[str, Any],
    files: dict[str, str],
    told: tuple[Any, ...],
) -> None:
    """The command line as a process prints the same document, or the same refusal."""
    words = [*program.start, *_words(kind, question, files)]
    done = subprocess.run(words, capture_output=True, text=True)
    if told[0] == "refused":
        assert done.stdout == "" and done.returncode == told[4]
        assert f"error: {told[2]}" in in_python(done.stderr)
    else:
        text = Path(question["out"]).read_text(encoding="utf-8") if kind == "report" else done.stdout
        assert (text, done.returncode) == told[1:]


def _pick(dice: Dice, good: list[Any], *bad: Any) -> Any:
    """One of the good values, seldom one of the bad."""
    return dice.choice(good if dice.random() < 0.95 else list(bad))


def _run(dice: Dice, *, without: str = "") -> dict[str, Any]:
    run: dict[str, Any] = {"noise_multiplier": _pick(dice, [0.7, 1.0, 1.37, 4.0, 2.2], -1.0, 0.01)}
    scheme = dice.scheme() if dice.random() < 0.6 else {}
    if scheme.get("sampling") == "full":
        run["steps"] = _pick(dice, [1, 50, 200], 0)
    elif scheme.get("sampling") in (None, "poisson") and dice.random() < 0.7:
        run["sample_rate"] = _pick(dice, [0.01, 0.001, 0.25, 0.02, 0.05], 1.5)
        run["steps"] = _pick(dice, [1, 50, 200, 1000, 7], 0)
    else:
        # Sizes that every scheme takes; few batches, so that all of them are quick.
        run["dataset_size"] = _pick(dice, [1000], 1)
        run["batch_size"] = _pick(dice, [20, 50], 0)
        run["steps"] = dice.choice([50, 100, 7])
        if scheme.get("replacement"):
            # A record may be drawn several times, which takes long to add up.
            run |= {"batch_size": 2, "steps": 1}
        elif scheme.get("sampling") in ("balls-and-bins", "truncated-poisson"):
            run |= {"batch_size": 250, "steps": 4}
    run |= scheme
    if dice.random() < 0.2:
        run["adjacency"] = dice.choice(["add-remove", "substitute", "zero-out"])
    if dice.random() < 0.05:
        run["epochs"] = 2.5
    if not scheme and dice.random() < 0.1:
        run["group_size"] = dice.choice([2, 3, 0])
    if dice.random() < 0.95:
        run.pop(without, None)
    return run


def _question(kind: str, dice: Dice, files: dict[str, str]) -> dict[str, Any]:
    question: dict[str, Any]
    delta = _pick(dice, [1e-5, 1e-6, 0.01], 2.0, 1e-200)
    lens = "composition" if dice.random() < 0.4 else dice.next("lens", get_args(Lens))
    if kind in ("account", "compare"):
        quantities = get_args(Quantity)
        run = _run(dice)
        about = {"run": run} if kind == "account" else {"runs": [{"name": "run", "run": run}]}
        question = about | {"lens": [lens], "quantity": dice.sample(quantities, 2)}
        for key, values in (("delta", [delta]), ("epsilon", [0.5, -1.0]), ("fpr", [0.01, 0.0])):
            if dice.random() < (0.8 if key == "delta" else 0.2):
                question[key] = [dice.choice(values)]
        if dice.random() < 0.1:
            question["directions"] = True
        if kind == "account" and dice.random() < 0.1:
            question["attack_prior"] = [dice.choice([0.5, 0.1, 1.0])]
        if kind == "account" and dice.random() < 0.05:
            question["candidates"] = dice.choice([4, 1, 0])
        if dice.random() < 0.3:
            question["prior"] = [dice.choice([0.1, 0.5, 0.0])]
        if kind == "account" and lens.startswith("hidden-state"):
            question |= LOSS
        return question
    if kind == "panel":
        return {"run": _run(dice), "points": _pick(dice, [5, 9], 0)}
    if kind == "map":
        grid = {"columns": _pick(dice, [2, 3], 1), "rows": 2, "milliseconds": 20_000}
        return {"run": _run(dice), "delta": delta, **grid}
    if kind == "report":
        # A run has many figures, which take seconds; scores have few.
        about = dice.choice([{"files": [files["scores.csv"]]}] * 8 + [{"run": {"steps": 3}}])
        asked = {"delta": delta, "format": "md", "out": files["folder"] + "/report.md"}
        covers = [{}, {"title": "One", "owner": "Two", "date": "2026-02-28"}, {"date": "2026-02-30"}]
        return about | asked | dice.choice(covers)
    if kind in ("calibrate", "advice"):
        solve = dice.choice(UNKNOWNS)
        target = dice.next("target", TARGETS)
        question = _pick(dice, [target], {"target_epsilon": -1.0, "delta": delta}) | {}
        if kind == "calibrate":
            question["lens"] = lens
            without = {"batch-size": "sample_rate", "epochs": "steps"}.get(solve, solve)
            run = _run(dice, without=without.replace("-", "_"))
            # Half of the pairs, which a search asks for many times.
            run.pop("adjacency", None)
            if solve == "steps":
                # Few steps with replacement take seconds each.
                run.pop("replacement", None)
            question |= {"solve": solve, "run": run}
        else:
            run = {"dataset_size": 50000, "epochs": dice.choice([1.0, 5.0])}
            sizes = [dice.choice([256, 256, 0]), dice.choice([512, 1000])]
            question |= {"batch_sizes": sizes, "run": run}
        return question
    if kind == "compare-map":
        noise = dice.choice([{"noise_multiplier": 1.0}, {"noise_multiplier": 2.0}, {}])
        grid = {"sample_rates": [0.01, 0.1], "steps_list": [10, _pick(dice, [100], 0)]}
        return {**noise, **grid, "delta": [delta]}
    if kind == "batch-sizes":
        question = {"batch_sizes": [256, 1000], "dataset_size": 50000, "epochs": 5.0}
        if dice.random() < 0.8:
            question["heuristic_epsilon"] = dice.choice([2.0, 4.0])
        return question | {"delta": [delta]}
    if kind == "audit":
        question = {
            "delta": [_pick(dice, [0.0, 1e-5, 1e-3], -1.0)],
            "confidence": _pick(dice, [0.9, 0.95, 0.99], 1.5),
            "method": [_pick(dice, [dice.next("method", NAMED)], "none")],
        }
        if dice.random() < 0.4:
            question["design"] = dice.choice(["runs", "one-run"])
        if dice.random() < 0.1:
            question["sequential"] = True
            question.pop("method")
        claim = dice.choice(["", "", "claim_epsilon", "claim", "run"])
        if claim == "claim_epsilon":
            question[claim] = _pick(dice, [0.5, 8.0], -1.0)
        elif claim:
            question[claim] = _run(dice)
        return question
    if kind == "tune":
        asked = dice.choice(["rank", "regress", "select"] * 5 + ["search", "profiles"])
        question = {"question": asked} | dice.choice([{}, {"epsilon": 8.0}, {"epsilon": 3.0}])
        if asked == "search":
            trials = dice.choice(["geometric", "logarithmic", "poisson"])
            expected = dice.choice([2.0, 5.0, 0.5])
            size = dice.choice([33508, 33508, 0])
            return question | {"dataset_size": size, "expected_trials": expected, "trials": trials}
        if asked == "profiles":
            return question | {"dataset_size": dice.choice([33508, 0])}
        if asked == "select":
            return question | {"min_utility": [dice.choice([0.75, 0.85, 0.99])]}
        if asked == "regress":
            question["unit"] = dice.choice(["configurations", "runs"])
        return question | {"confidence": dice.choice([0.9, 0.95, 1.0])}
    if kind == "memorize":
        names = ["tuned.jsonl", "tuned.jsonl", "tuned.jsonl", "missing.jsonl"]
        question = {"metric": dice.choice(["vmr", "air", "vmr", "air", "acr"])}
        if question["metric"] == "acr":
            # A search for prompts takes minutes: without a model it is refused.
            return question | {"secrets": files["missing.jsonl"]}
        if dice.random() < 0.9:
            question["completions"] = files[dice.choice(names)]
        if dice.random() < 0.5:
            question["base"] = files["base.jsonl"]
        if dice.random() < 0.5:
            question["match"] = dice.choice(["prefix", "contains", "words", "exact"])
        if dice.random() < 0.5:
            question["normalize"] = dice.choice(["none", "space", "case", "loose"])
        return question | {"confidence": dice.choice([0.9, 0.95, 0.0])}
    if kind == "attack":
        run = {
            "noise_multiplier": _pick(dice, [0.7, 1.0, 2.2], -1.0),
            "sample_rate": _pick(dice, [0.01, 0.1], 1.5),
            "steps": dice.choice([3, 10]),
        }
        if dice.random() < 0.1:
            run |= dice.choice([{"clip_norm": 2.0}, {"adjacency": "substitute"}])
        question = {"run": run} | dice.next("game", GAMES)
        if dice.random() < 0.9:
            question["delta"] = delta
        if dice.random() < 0.3:
            work = {"out": files["folder"] + "/played.csv", "threads": 1, "force": True}
            question |= work | {"trials": dice.choice([20, 50]), "observe": "all"}
        return question | {"seed": dice.choice([0, 7]), "direction": dice.choice(["add", "remove"])}
    if kind == "membership":
        name = dice.choice(["lira", "rmia"])
        question = {"attack": name, "losses": files["losses.npy"], "members": files["mask.npy"]}
        question |= {"lira": {"fixed_variance": True}, "rmia": {"gamma": 1.0, "a": 0.2}}[name]
        if dice.random() < 0.3:
            question["members"] = files["missing.jsonl"]
        shares = {"delta": dice.choice([0.0, 0.01]), "fpr": [0.05], "top": dice.choice([3, 10])}
        return question | shares | {"target": dice.choice([0, 3, 99])}
    if kind == "status":
        return {"path": files[dice.choice(["game.csv", "work", "scores.csv", "folder"])]}
    if kind == "prove":
        return {"path": files[dice.next("account", ACCOUNTS)]}
    if kind == "curve":
        curve = dice.choice(["tradeoff", "profile", "steps"])
        question = {"kind": curve, "run": _run(dice), "points": _pick(dice, [3, 5], 1)}
        if dice.random() < 0.3:
            question["first"] = dice.choice([5, 5, 0, 10_000])
        if dice.random() < 0.5:
            question["lens"] = [lens]
        if dice.random() < 0.2:
            question["direction"] = dice.choice(["both", "add", "remove"])
        return question | ({"delta": delta} if curve == "steps" else {})
    if kind == "translate":
        question = {dice.choice(TRANSLATED): dice.choice([0.6, 0.9, -1.0]), "delta": delta}
        for key, values in (("fpr", [0.01, 0.0]), ("prior", [0.5, 0.1])):
            if dice.random() < 0.3:
                question[key] = dice.choice(values)
        return question
    if kind == "check":
        policy = {dice.choice(LIMITS): dice.choice([0.3, 0.9]), "delta": delta, "lens": lens}
        if "max_tpr" in policy or dice.random() < 0.1:
            policy["fpr"] = _pick(dice, [0.01], 0.0)
        return {"run": _run(dice), "policy": policy}
    rates = {"attack_fpr": dice.choice([0.01, 0.05, 0.0]), "attack_tpr": dice.choice([0.5, 0.9])}
    question = {
        "target_epsilon": _pick(dice, [0.5, 1.0], -1.0),
        "delta": dice.choice([0.0, 1e-5]),
        "threshold": "fixed",
    }
    question |= dice.choice([rates, rates, {"mu": 3.0}, {"mu": 0.0}, rates | {"mu": 1.0}, {}])
    if dice.random() < 0.4:
        question["method"] = dice.next("method", NAMED)
    if dice.random() < 0.2:
        question["design"] = dice.choice(["runs", "one-run"])
    return question


def test_refusals_speak_of_keywords() -> None:
    assert in_python("give --sample-rate") == "give sample_rate"
