"""MLflow: a report and its claims in a run (extra ``dosimeter[mlflow]``)."""

from __future__ import annotations

import os
from typing import Any, Union

import mlflow

from ._values import plain
from .auditing import Audit
from .claims import Account
from .reporting import Report

__all__ = ["log", "metric_name"]


def metric_name(*parts: str) -> str:
    """A name that MLflow accepts; slashes group metrics in its page."""
    return "/".join(("dosimeter", *parts))


def log(what: Union[Account, Audit, Report], *, run_id: str | None = None) -> dict[str, float]:
    """Logs an account, an audit or a report to a run (the active one unless ``run_id``).

    An account becomes one metric per claim (the end that may be quoted), its run the parameters and
    its document an artifact; an audit one metric per bound; a report an artifact. Numbers that are
    infinite are left to the document. Returns the metrics.
    """
    metrics: dict[str, float] = {}
    if isinstance(what, Account):
        for claim in what:
            place = f"{claim.quantity} at {claim.at}" if str(claim.at) else claim.quantity
            place = place.replace(",", "")
            metrics[metric_name(str(claim.lens), claim.direction, place)] = claim.quoted
        parameters = {f"dosimeter.{key}": value for key, value in what.run.to_dict().items()}
        mlflow.log_params(parameters, run_id=run_id)
        mlflow.log_dict(what.to_dict(), "dosimeter/account.json", run_id=run_id)
    elif isinstance(what, Audit):
        for bound in what.bounds:
            if bound.epsilon_lower is not None:
                place = f"epsilon_lower at delta {plain(bound.delta)}"
                metrics[metric_name("audit", bound.method, place)] = bound.epsilon_lower
        tags: dict[str, Any] = {"dosimeter.design": what.design}
        if what.verdict is not None:
            tags["dosimeter.verdict"] = what.verdict.status
        mlflow.MlflowClient().log_dict(_run_id(run_id), what.to_dict(), "dosimeter/audit.json")
        for key, value in tags.items():
            mlflow.MlflowClient().set_tag(_run_id(run_id), key, value)
    else:
        mlflow.log_artifact(os.fspath(what.path), "dosimeter", run_id=run_id)
    finite = {name: value for name, value in metrics.items() if abs(value) != float("inf")}
    mlflow.log_metrics(finite, run_id=run_id)
    return finite


def _run_id(run_id: str | None) -> str:
    if run_id is not None:
        return run_id
    active = mlflow.active_run() or mlflow.start_run()
    return str(active.info.run_id)
