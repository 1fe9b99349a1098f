"""Ten tasks that a new user comes with, each one command or twenty lines. Those that need PyTorch
are skipped, and say so, where it is not installed."""

from __future__ import annotations

import ast
import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Program

import dosimeter

RECIPE = ("-s", "1.1", "--dataset-size", "50000", "--batch-size", "512", "--epochs", "60", "-d", "1e-5")


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    path = tmp_path / "run.toml"
    path.write_text(
        "[run]\nnoise_multiplier = 1.1\ndataset_size = 50000\nbatch_size = 512\nepochs = 60\n"
        'unit = "one picture"\n'
    )
    return str(path)


def test_a_epsilon_of_an_opacus_recipe_and_what_an_attacker_can_do(program: Program) -> None:
    text = program("account", *RECIPE).stdout
    assert text.startswith("Sign: epsilon <= 3.955 at delta 1e-5")
    assert "An attack that wrongly accuses 1 of 1,000 records" in text


def test_b_what_a_shuffling_loader_may_claim(program: Program) -> None:
    shuffled = ("--sampling", "shuffle", "--adjacency", "zero-out")
    answer = program.json("account", *RECIPE, *shuffled)
    claim = answer["claims"][0]
    assert claim["standing"] == "proven" and claim["shown"] == "<= 54.05"
    assert "for zeroing out one record" in answer["sign"]["statement"]
    # 512 does not divide 50,000: a record that is sometimes left out has no proven lower end.
    assert claim.get("at_least") is None
    assert not any("leak at least" in warning for warning in answer["warnings"])
    # Where batches fill the epoch, the worst case stands beside the number.
    whole = [("500" if value == "512" else value) for value in RECIPE]
    answer = program.json("account", *whole, *shuffled)
    assert 10.69 < answer["claims"][0]["at_least"] < 10.70
    assert any("leak at least epsilon 10.69" in warning for warning in answer["warnings"])


def test_c_which_batch_and_noise(program: Program) -> None:
    target = ("--target-epsilon", "3", "-d", "1e-6", "--dataset-size", "100000", "--epochs", "20")
    advice = program.json("calibrate", *target, "--batch-sizes")
    chosen = [row for row in advice["rows"] if row["batch_size"] == advice["recommended"]]
    assert chosen[0]["proven"] == "<= 3.000" and advice["reason"]


def test_d_a_thousand_scores_of_canaries(program: Program, tmp_path: Path) -> None:
    dice = random.Random(5)
    coins = [dice.random() < 0.5 for _ in range(1000)]
    rows = "".join(f"{dice.gauss(2.0 * coin, 1)},{int(coin)}\n" for coin in coins)
    path = tmp_path / "canaries.csv"
    path.write_text("score,member\n" + rows)
    claim = ("--design", "one-run", "-d", "1e-5", "--claim-epsilon")
    assert program.json("audit", str(path), *claim, "8")["verdict"]["status"] != "contradiction"
    low = program.json("audit", str(path), *claim, "0.3", code=3)
    assert low["verdict"]["status"] == "contradiction"


# A healthy run of a few steps shows nothing, and the audit says so.
@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning", "ignore::UserWarning")
def test_e_a_fine_tuning_of_gpt_2_with_adapters(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="task (e) needs PyTorch")
    transformers = pytest.importorskip("transformers", reason="task (e) needs transformers")
    peft = pytest.importorskip("peft", reason="task (e) needs peft")
    pytest.importorskip("accelerate", reason="task (e) needs accelerate")
    from dosimeter.trainer import PrivacyCallback, language_loss
    run = dosimeter.Run(noise_multiplier=1.0, dataset_size=200, batch_size=16, steps=24)
    model, rows = _gpt_2_with_adapters(torch, transformers, peft)
    batches = [rows[torch.rand(200) < 16 / 200] for _ in range(24)]
    class Private(transformers.Trainer):  # type: ignore[misc, name-defined]
        def training_step(self, model: Any, inputs: Any, *_: Any) -> Any:
            trained = [value for value in model.parameters() if value.requires_grad]
            for value in trained:
                value.grad = torch.randn_like(value) / 16
            losses = language_loss(model, inputs)
            for loss in losses:
                gradient = torch.autograd.grad(loss, trained, retain_graph=True)
                norm = float(sum(piece.pow(2).sum() for piece in gradient)) ** 0.5
                for value, piece in zip(trained, gradient, strict=True):
                    value.grad += piece / max(1.0, norm) / 16
            return losses.detach().mean()
    callback = PrivacyCallback(claim=run, divisor=16, every=1, canaries={"count": 100, "seed": 7})
    options = {"args": _options(transformers, tmp_path), "data_collator": _whole_batch}
    callback.watch(Private(model, train_dataset=batches, callbacks=[callback], **options)).train()
    audit = callback.recorder.audit(delta=1e-5, claim=run)

    assert not callback.recorder.accused, callback.recorder
    assert callback.recorder.recording.steps == 24
    assert audit.verdict is not None and audit.verdict.status in ("consistent", "inconclusive")


def _gpt_2_with_adapters(torch: Any, transformers: Any, peft: Any) -> Any:
    """A small GPT-2 with random weights, low-rank adapters, and 200 sequences of tokens."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=12, n_embd=32, n_layer=2, n_head=2, bos_token_id=0,
        eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )
    adapters = peft.LoraConfig(r=4, target_modules=["c_attn"], lora_dropout=0.0, fan_in_fan_out=True)
    model = peft.get_peft_model(transformers.GPT2LMHeadModel(config), adapters)
    return model, torch.randint(64, (200, 12))


def _options(transformers: Any, folder: Path) -> Any:
    """SGD on the processor, one item (a Poisson batch) per step, nothing logged or saved."""
    return transformers.TrainingArguments(
        output_dir=str(folder), max_steps=24, per_device_train_batch_size=1, max_grad_norm=0.0,
        learning_rate=0.1, optim="sgd", report_to=[], save_strategy="no", disable_tqdm=True,
        use_cpu=True, logging_strategy="no",
    )


def _whole_batch(items: Any) -> dict[str, Any]:
    return {"input_ids": items[0], "labels": items[0]}


def test_f_a_pdf_for_compliance(program: Program, recipe: str, tmp_path: Path) -> None:
    out = tmp_path / "report.pdf"
    cover = ("--title", "Model 7", "--owner", "Team B", "--date", "2026-11-16")
    done = subprocess.run(
        [*program.start, "report", recipe, "-d", "1e-5", "--out", str(out), *cover],
        capture_output=True, text=True,
    )
    if "not part of this build" in done.stderr:
        pytest.skip("task (f) needs a build with the feature pdf")
    assert done.returncode == 0, done.stderr
    assert out.read_bytes().startswith(b"%PDF-")
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", str(out), "-"], capture_output=True, text=True).stdout
        assert "Team B" in text and "one picture" in " ".join(text.split())


def test_g_a_paragraph_for_a_model_card(program: Program, recipe: str) -> None:
    card = program("report", recipe, "-d", "1e-5", "--format", "card", "--out", "-").stdout
    assert card.startswith("---\n") and "3.955" in card and "one picture" in card


def test_h_the_same_in_python_and_a_notebook() -> None:
    run = dosimeter.Run(noise_multiplier=1.1, dataset_size=50_000, batch_size=512, epochs=60)
    account = dosimeter.account(run, delta=1e-5)
    assert account.sign is not None
    assert account.sign.statement.startswith("epsilon <= 3.955 at delta 1e-5")
    page = account._repr_html_()
    assert page.index("Sign:") < page.index("composition") < page.index("Other lenses")
    assert "[last-iterate]" in page  # whose assumption it is
    pandas = pytest.importorskip("pandas", reason="the frame of task (h) needs pandas")
    assert isinstance(account.to_pandas(), pandas.DataFrame)


def test_i_a_pipeline_that_fails_above_epsilon_8(program: Program, recipe: str, tmp_path: Path) -> None:
    program("check", recipe, "--max-epsilon", "8", "-d", "1e-5")
    loud = tmp_path / "loud.toml"
    loud.write_text(Path(recipe).read_text().replace("1.1", "0.5"))
    program("check", str(loud), "--max-epsilon", "8", "-d", "1e-5", code=3)


# A healthy run of a few steps shows nothing, and the audit says so.
@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
def test_j_a_canary_audit_of_my_own_resnet_loop() -> None:
    torch = pytest.importorskip("torch", reason="task (j) needs PyTorch")
    from dosimeter.torch import GradientCanary
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, pictures, labels = (part.to(device) for part in _residual(torch))
    trained = list(model.parameters())
    optimizer = torch.optim.SGD(trained, lr=0.1)
    run = dosimeter.Run(noise_multiplier=2.0, dataset_size=400, batch_size=40, steps=12)
    watched = {"clip_norm": 1.0, "sample_rate": run.sample_rate, "divisor": 40}
    canaries = GradientCanary(optimizer, **watched, count=400, seed=7)
    for _ in range(12):
        chosen = torch.rand(400) < run.sample_rate
        losses = torch.nn.functional.cross_entropy(model(pictures[chosen]), labels[chosen], reduction="none")
        for value in trained:
            value.grad = 2.0 * torch.randn_like(value) / 40
        for loss in losses:
            gradient = torch.autograd.grad(loss, trained, retain_graph=True)
            norm = float(sum(piece.pow(2).sum() for piece in gradient)) ** 0.5
            for value, piece in zip(trained, gradient, strict=True):
                value.grad += piece / max(1.0, norm) / 40
        optimizer.step()
    audit = canaries.audit(delta=1e-5, claim=run)

    assert audit.verdict is not None and audit.verdict.status != "contradiction"


def _residual(torch: Any) -> Any:
    """A network with a skip connection, 400 pictures and their labels."""
    torch.manual_seed(5)

    class Residual(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
            self.second = torch.nn.Conv2d(8, 8, 3, padding=1)
            self.last = torch.nn.Linear(8, 10)

        def forward(self, pictures: Any) -> Any:
            seen = torch.relu(self.first(pictures))
            return self.last((seen + torch.relu(self.second(seen))).mean((2, 3)))

    return Residual(), torch.randn(400, 3, 8, 8), torch.randint(10, (400,))


def lines(task: ast.FunctionDef) -> int:
    """The lines of a task: what a user writes, without the checks of what came out."""
    checks = [
        node for node in task.body
        if isinstance(node, ast.Assert) or "importorskip" in ast.unparse(node)
    ]
    left_out = {line for node in checks for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    body = range(task.body[0].lineno, (task.end_lineno or 0) + 1)
    written = [text[line - 1].strip() for line in body if line not in left_out]
    return sum(1 for line in written if line and not line.startswith("#"))


def test_no_task_is_longer_than_twenty_lines() -> None:
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    tasks = {node.name[5]: node for node in functions if re.match(r"test_[a-j]_", node.name)}
    assert sorted(tasks) == list("abcdefghij")
    long = {name: lines(task) for name, task in tasks.items() if lines(task) > 20}
    assert not long, long
    # Helpers hold what a user has before the task begins, not the task.
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert "clinic" not in ast.unparse(node) and "hf_trainer" not in ast.unparse(node)


def test_numbers_of_the_tasks_are_the_documents(program: Program) -> None:
    """The line to sign quotes the claim of the document."""
    answer = program.json("account", *RECIPE)
    claim = answer["claims"][0]
    assert claim["shown"] in answer["sign"]["statement"]
    assert json.dumps(answer).count('"sign"') == 1
