"""MLflow: what is logged can be read back."""

from __future__ import annotations

from pathlib import Path

import pytest

mlflow = pytest.importorskip("mlflow")

import dosimeter  # noqa: E402
import dosimeter.mlflow as bridge  # noqa: E402

pytestmark = pytest.mark.bridge


def test_claims_bounds_and_report_are_logged(
    run: dosimeter.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The small package `mlflow-skinny` has no database.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    experiment = mlflow.create_experiment("e", artifact_location=(tmp_path / "files").as_uri())
    account = dosimeter.account(run, delta=1e-5)
    game = dosimeter.attack("linear", run=run, trials=500, out=tmp_path / "scores.csv")
    with mlflow.start_run(experiment_id=experiment) as active:
        metrics = bridge.log(account)
        bridge.log(game.audit(delta=1e-5, claim=run))
        bridge.log(dosimeter.report(run, delta=1e-5, out=tmp_path / "report.html"))
    logged = mlflow.MlflowClient().get_run(active.info.run_id)
    name = "dosimeter/composition/both/epsilon at delta 1e-5"
    assert metrics[name] == account[0].upper == logged.data.metrics[name]
    assert logged.data.params["dosimeter.noise_multiplier"] == "1.0"
    assert logged.data.tags["dosimeter.verdict"] in ("consistent", "inconclusive")
    files = mlflow.artifacts.list_artifacts(run_id=active.info.run_id, artifact_path="dosimeter")
    assert {Path(file.path).name for file in files} >= {
        "account.json", "audit.json", "report.html"
    }
    text = mlflow.artifacts.load_text(f"runs:/{active.info.run_id}/dosimeter/account.json")
    assert dosimeter.Account.from_json(text) == account
