"""Objects: they do not change, are shown well, and survive pickles and documents."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest

import dosimeter


def everything(run: dosimeter.Run, folder: Path) -> list[Any]:
    account = dosimeter.account(run, delta=1e-5)
    game = dosimeter.attack("linear", run=run, trials=200, out=folder / "scores.csv", delta=1e-5)
    return [
        run,
        account,
        account[0],
        dosimeter.account({**run.flags(), "sampling": "shuffle", "dataset_size": 1000}),
        dosimeter.calibrate("steps", target_advantage=0.2, noise_multiplier=1, sample_rate=0.01),
        dosimeter.tradeoff(run, points=5),
        dosimeter.profile(run, points=5),
        dosimeter.steps(run, delta=1e-5, points=5, lens=["composition", "renyi"]),
        dosimeter.compare({"a": run}, delta=1e-5, lens="composition"),
        dosimeter.figure(run),
        game,
        game.audit(delta=1e-5, claim=run),
    ]


@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
def test_round_trips_and_representations(run: dosimeter.Run, tmp_path: Path) -> None:
    for thing in everything(run, tmp_path):
        kind = type(thing)
        assert pickle.loads(pickle.dumps(thing)) == thing, kind
        again = kind.from_json(thing.to_json())
        assert again == thing and hash(again) == hash(thing), kind
        assert again.to_json() == thing.to_json(), kind
        assert thing != "something else"
        shown = thing._repr_html_()
        assert shown.startswith("<") and shown.count("<table>") == shown.count("</table>")
        assert len(repr(thing)) < 400
        attribute = next(
            name for name in ("lens", "kind", "run", "runs", "title", "game", "steps", "design")
            if hasattr(thing, name)
        )
        with pytest.raises(AttributeError):
            setattr(thing, attribute, "other")


def test_the_account_in_a_notebook_has_its_figure(run: dosimeter.Run) -> None:
    page = dosimeter.account(run, delta=1e-5)._repr_html_()
    assert "<svg" in page and "heuristic" in page and "&lt;= 1.829" in page
    assert "<script" not in page
    assert "<svg" in dosimeter.tradeoff(run)._repr_html_()


def test_html_is_escaped() -> None:
    claim = dosimeter.account(
        {"noise_multiplier": 1, "sample_rate": 0.01, "steps": 10}, lens="composition"
    )[0]
    hostile = dataclasses.replace(claim, lens="<script>alert(1)</script>")  # type: ignore[arg-type]
    assert "<script>" not in hostile._repr_html_()
    named = dosimeter.compare({"<b>": claim_run()}, lens="composition")
    assert "<b><b></b>" not in named._repr_html_()


def claim_run() -> dosimeter.Run:
    return dosimeter.Run(noise_multiplier=1, sample_rate=0.01, steps=10)


def test_an_account_is_a_sequence_of_claims(run: dosimeter.Run) -> None:
    account = dosimeter.account(run, delta=[1e-5, 1e-6])
    assert len(account) == len(list(account)) == len(account.claims)
    assert account[0] in account and account[-1] == account.claims[-1]
    assert account[:2] == account.claims[:2]
    assert account.index(account[3]) == 3
    assert {claim.at.delta for claim in account.select(quantity="mu")} == {1e-5, 1e-6}


def test_infinity_is_null_with_a_reason_in_documents() -> None:
    # One step with very little noise: the Rényi lens has no finite number at a tiny delta, or
    # it does and is finite; whichever it is, the document says so.
    claim = dosimeter.account(
        {"noise_multiplier": 1, "sample_rate": 0.01, "steps": 10}, lens="composition", delta=1e-5
    )[0]
    infinite = dataclasses.replace(
        claim, value=float("inf"), upper=float("inf"), reason="no bound is known"
    )
    document = infinite.to_dict()
    assert document["value"] is None and document["upper"] is None and document["reason"]
    assert dosimeter.Claim.from_dict(document) == infinite


def test_records_at_risk_are_shown_on_the_safe_side() -> None:
    numpy = pytest.importorskip("numpy")
    draw = numpy.random.default_rng(3)
    members = draw.random((60, 40)) < 0.5
    losses = numpy.exp(draw.normal(0.0, 0.2, (60, 40)) - 2.0 * members)
    found = dosimeter.lira(losses, members, top=40)
    page = found._repr_html_()
    assert len(found.at_risk) == 40
    for one in found.at_risk:
        quoted = float(one["shown"].removeprefix(">= "))
        assert 0.999 * one["epsilon_lower"] <= quoted <= one["epsilon_lower"], one
        assert f"<td>&gt;= {one['shown'].removeprefix('>= ')}</td>" in page
