"""What a new user of the package met: translations, reports from memory, libraries that are not
there, and claims about another run."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

import dosimeter


def test_translations_are_exact_and_go_both_ways() -> None:
    found = dosimeter.translate(mu=1, delta=1e-5)
    assert found["gaussian-curve"]["epsilon"].value == pytest.approx(4.377178095681, abs=1e-9)
    assert found["gaussian-curve"]["tpr"].value == pytest.approx(0.092362248, abs=1e-8)
    two = dosimeter.translate(epsilon=2, delta=1e-5)
    mu = two["gaussian-curve"]["mu"].value
    again = dosimeter.translate(mu=mu, delta=1e-5)["gaussian-curve"]["epsilon"].value
    assert again == pytest.approx(2.0, abs=1e-9)
    told = dosimeter.translate(advantage=0.1, delta=1e-5)["any-mechanism"]["epsilon"]
    assert told.value == float("inf") and told.reason


def test_a_run_is_read_by_itself(run: dosimeter.Run) -> None:
    reading = dosimeter.translate(run, delta=1e-5)["run"]
    claim = dosimeter.account(run, delta=1e-5, lens="composition")[0]
    assert reading["epsilon"].upper == claim.upper and reading.standing == "proven"


@pytest.mark.parametrize("given", ["audit", "arrays"])
def test_a_report_of_scores_in_memory(run: dosimeter.Run, tmp_path: Path, given: str) -> None:
    members, others = [float(k % 7) + 1 for k in range(60)], [float(k % 5) for k in range(60)]
    scores: Any = (members, others)
    if given == "audit":
        scores = dosimeter.audit(members=members, nonmembers=others, delta=1e-5)
    page = dosimeter.report(
        run, scores=scores, delta=1e-5, title="Model 7", owner="Team B", out=tmp_path / "r.html"
    )
    document = page.to_dict()
    assert document["schema"] == "dosimeter.report/1"
    assert "Model 7" in page.text and "60" in page.text


def test_a_missing_library_is_named(run: dosimeter.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name in ("pandas", "pyarrow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest)

    account = dosimeter.account(run, delta=1e-5, lens="composition")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        account.to_pandas()
    with pytest.raises(ModuleNotFoundError, match="pip install pyarrow"):
        account.to_arrow()


def test_a_report_refuses_scores_of_another_run(run: dosimeter.Run, tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    dosimeter.attack("linear", run=run, trials=200, out=out)
    other = dosimeter.Run(noise_multiplier=7.0, sample_rate=0.01, steps=10)
    page = tmp_path / "r.html"
    with pytest.raises(dosimeter.InvalidInput, match="another run"):
        dosimeter.report(other, scores=out, delta=1e-5, out=page)
    meant = dosimeter.report(other, scores=out, delta=1e-5, other_run=True, out=page)
    commands = meant.to_dict()["provenance"]["commands"]
    assert len(commands) == 1 and "--other-run" in commands[0]


def test_a_report_of_scores_in_memory_names_no_command(run: dosimeter.Run, tmp_path: Path) -> None:
    members, nonmembers = [0.9] * 100, [0.1] * 100
    page = dosimeter.report(
        run, scores=(members, nonmembers), delta=1e-5, out=tmp_path / "r.html"
    )
    provenance = page.to_dict()["provenance"]
    assert provenance["commands"] == []
    assert [(file["name"], file["role"]) for file in provenance["inputs"]] == [("in memory", "scores")]
    text = dosimeter.report(
        run, scores=(members, nonmembers), delta=1e-5, out=tmp_path / "r.md"
    ).text
    assert "dosimeter report" not in text


def test_scores_of_another_run_are_refused(run: dosimeter.Run, tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    dosimeter.attack("linear", run=run, trials=100, out=out)
    other = dosimeter.Run(noise_multiplier=2.0, sample_rate=0.01, steps=1000)
    with pytest.raises(dosimeter.InvalidInput, match="another run"):
        dosimeter.audit(out, delta=1e-5, claim=other)
    assert dosimeter.audit(out, delta=1e-5, claim=other, other_run=True).verdict is not None
    assert dosimeter.audit(out, delta=1e-5, claim=run).verdict is not None


def test_the_unit_is_kept(run: dosimeter.Run) -> None:
    named = dosimeter.Run(noise_multiplier=1, sample_rate=0.01, steps=1000, unit="one user's words")
    assert named.unit == "one user's words" and run.unit is None
    assert dosimeter.Run.from_json(named.to_json()) == named != run
    account = dosimeter.account(named, delta=1e-5)
    assert account.sign is not None and "one user's words" in account.sign.statement
    assert dosimeter.Account.from_json(account.to_json()) == account


def test_advice_is_on_the_safe_side() -> None:
    advice = dosimeter.advise([64, 512], target_epsilon=2, delta=1e-5, dataset_size=20_000, epochs=5)
    for row in advice.rows:
        assert row.noise_shown is not None
        run = dosimeter.Run(
            noise_multiplier=float(row.noise_shown),
            dataset_size=20_000,
            batch_size=row.batch_size,
            epochs=5,
        )
        assert dosimeter.account(run, delta=1e-5, lens="composition")[0].upper <= 2.0
    assert advice.recommended in (64, 512)


def test_what_is_printed_is_short_and_written_as_the_command_line_writes_it(run: dosimeter.Run) -> None:
    account = dosimeter.account(run, delta=1e-5)
    lines = str(account).splitlines()
    assert lines[0].startswith("Sign: epsilon <= 1.829 at delta 1e-5")
    assert lines[1] == "epsilon @ delta 1e-5 <= 1.829 (proven, composition)"
    others = lines[lines.index("Other lenses (`claims` has all their numbers):") + 1 :]
    assert len(lines) < 25 and sum("renyi" in line for line in others) == 1
    kept = dosimeter.check(run, max_epsilon=8, delta=1e-5)
    assert str(kept) == "pass  epsilon @ delta 1e-5 <= 1.829 (proven, composition); max_epsilon is 8"


def test_a_frame_begins_with_what_a_person_looks_for(run: dosimeter.Run) -> None:
    pytest.importorskip("pandas")
    frame = dosimeter.account(run, delta=1e-5).to_pandas()
    assert list(frame.columns[:3]) == ["lens", "quantity", "delta"]
    assert frame.columns[-1] == "assumptions" and frame["shown"][0] == "<= 1.829"


def test_one_run_is_compared_as_a_list_of_one(run: dosimeter.Run) -> None:
    one = dosimeter.compare(run, delta=1e-5, lens="composition")
    assert one == dosimeter.compare([run], delta=1e-5, lens="composition")
