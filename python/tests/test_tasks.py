"""Ten tasks that a new user comes with, each one command or twenty lines. Those that need PyTorch
are skipped, and say so, where it is not installed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Program

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
    assert "An attack that accuses 1 of 1,000 records" in text


def test_b_what_a_shuffling_loader_may_claim(program: Program) -> None:
    shuffled = ("--sampling", "shuffle", "--adjacency", "zero-out")
    answer = program.json("account", *RECIPE, *shuffled)
    claim = answer["claims"][0]
    assert claim["standing"] == "proven" and claim["shown"] == "<= 54.35"
    assert "for zeroing out one record" in answer["sign"]["statement"]
    # Less than a Poisson analysis would report is never said without the worst case beside it.
    assert any("leak at least epsilon 10.70" in warning for warning in answer["warnings"])


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
@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
def test_e_a_fine_tuning_of_gpt_2_with_adapters() -> None:
    pytest.importorskip("torch", reason="task (e) needs PyTorch")
    pytest.importorskip("transformers", reason="task (e) needs transformers")
    sys.path.insert(0, str(REPOSITORY / "python" / "clinic"))
    import hf_trainer

    patient = hf_trainer.train(bug=False, seed=1, canaries=20)
    audit = patient.recorder.audit(delta=1e-5, claim=hf_trainer.CLAIM)
    assert audit.verdict.status in ("consistent", "inconclusive")


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

    torch.manual_seed(5)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = _residual(torch).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = dosimeter.Run(noise_multiplier=1.0, dataset_size=400, batch_size=40, steps=12)
    canaries = GradientCanary(
        optimizer, clip_norm=1.0, sample_rate=run.sample_rate, divisor=40, count=100, seed=7
    )
    pictures, labels = torch.randn(400, 3, 8, 8, device=device), torch.randint(10, (400,), device=device)
    for _ in range(12):
        optimizer.zero_grad()
        total = [torch.zeros_like(value) for value in model.parameters()]
        for index in torch.nonzero(torch.rand(400) < 0.1)[:, 0].tolist():
            loss = torch.nn.functional.cross_entropy(model(pictures[index][None]), labels[index][None])
            gradient = torch.autograd.grad(loss, list(model.parameters()))
            norm = sum(piece.pow(2).sum() for piece in gradient).sqrt()
            for sofar, piece in zip(total, gradient, strict=True):
                sofar += piece / max(1.0, float(norm))
        for value, sofar in zip(model.parameters(), total, strict=True):
            value.grad = (sofar + torch.randn_like(sofar)) / 40
        optimizer.step()
    audit = canaries.audit(delta=1e-5, claim=run)
    assert audit.verdict is not None and audit.verdict.status != "contradiction"


def _residual(torch: Any) -> Any:
    class Residual(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
            self.second = torch.nn.Conv2d(8, 8, 3, padding=1)
            self.last = torch.nn.Linear(8, 10)

        def forward(self, pictures: Any) -> Any:
            seen = torch.relu(self.first(pictures))
            return self.last((seen + torch.relu(self.second(seen))).mean((2, 3)))

    return Residual()


def test_numbers_of_the_tasks_are_the_documents(program: Program) -> None:
    """The line to sign quotes the claim of the document."""
    answer = program.json("account", *RECIPE)
    claim = answer["claims"][0]
    assert claim["shown"] in answer["sign"]["statement"]
    assert json.dumps(answer).count('"sign"') == 1
