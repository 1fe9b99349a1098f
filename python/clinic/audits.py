"""Audits of the clinic's scripts by many trainings with and without one loud record:
``python audits.py [SCRIPT …] [--trials 75] [--folder .] [--table FILE.csv]``. The same line again
resumes. The column "audit" of docs/clinic.md comes from the table.

The attacker sees every update and knows everything but whether the target was there
(``attacker.py``); what it looks at is chosen for each script before any score is seen.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import math
import warnings
from pathlib import Path
from typing import Any

import torch
from attacker import Attacker, Differences
from common import BATCH, CLAIM, CLIP, NOISE, STEPS

import dosimeter

NEVER = 10**9
DELTA = 1e-5
#: Scripts by what the attacker looks at.
LOUD = (
    "forgotten_noise", "noise_of_the_mean", "realised_batch", "clipped_batch", "clipped_mean",
    "accumulation", "batch_norm", "shuffled_loader", "ghost_clipping", "resumed", "hf_trainer",
)
SCRIPTS = (*LOUD, "same_seed", "jax_loop", "resumed_noise", "learned_normaliser")
COLUMNS = (
    "script", "mistake", "trainings", "delta", "epsilon_claimed", "epsilon_lower", "verdict", "auroc",
)


def attacker_of(script: str) -> Any:
    if script == "same_seed":
        return Attacker(noise=0.02, view=importlib.import_module(script).between_ranks)
    if script in ("jax_loop", "resumed_noise"):
        return Differences(1 if script == "jax_loop" else STEPS // 2)
    if script == "hf_trainer":
        module = importlib.import_module(script)
        return Attacker(rate=module.BATCH / module.RECORDS, noise=module.NOISE * module.CLIP)
    # What the attacker counts on where the mistake is that there is less noise.
    less = {"forgotten_noise": 0.02, "noise_of_the_mean": NOISE * CLIP / BATCH}
    return Attacker(noise=less.get(script, NOISE * CLIP))


def claim_of(script: str, bug: bool) -> dosimeter.Run:
    if script == "hf_trainer":
        claim: dosimeter.Run = importlib.import_module(script).CLAIM
        return claim
    if script == "resumed" and bug:
        counted: dosimeter.Run = importlib.import_module(script).COUNTED
        return counted
    return CLAIM


def train(member: bool, seed: int, script: str = "", bug: bool = True) -> float:
    """One training of a script, with or without the target."""
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patient: Any = importlib.import_module(script).train(
            bug=bug, seed=seed, member=member, every=NEVER, attacker=attacker_of(script)
        )
    return float(patient.score)


def audited(script: str, bug: bool, trials: int, folder: Path, workers: int = 1) -> dict[str, Any]:
    """One row of the table."""
    claim = claim_of(script, bug)
    game = dosimeter.experiment(
        train, run=claim, settings={"script": script, "bug": bug}, chunk=5, version="2"
    )
    name = f"{script}-{'bug' if bug else 'healthy'}.csv"
    game.run(trials=trials, out=folder / name, workers=workers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = game.audit(delta=DELTA)
    assert answer.verdict is not None
    claimed = dosimeter.account(claim, delta=DELTA, lens="composition").select(quantity="epsilon")[0]
    return {
        "script": script,
        "mistake": "yes" if bug else "no",
        "trainings": 2 * trials,
        "delta": DELTA,
        # Upper ends are rounded up, lower ends down.
        "epsilon_claimed": f"{math.ceil(1e4 * claimed.upper) / 1e4:.4f}",
        "epsilon_lower": f"{math.floor(1e4 * answer.primary.epsilon_lower) / 1e4:.4f}",
        "verdict": answer.verdict.status,
        "auroc": f"{answer.auroc.value:.4f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", default=SCRIPTS, metavar="SCRIPT")
    parser.add_argument("--trials", type=int, default=75)
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--mistake", choices=("both", "yes", "no"), default="both")
    parser.add_argument("--table", type=Path)
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for script in chosen.scripts:
        for bug in {"both": (True, False), "yes": (True,), "no": (False,)}[chosen.mistake]:
            row = audited(script, bug, chosen.trials, chosen.folder, chosen.workers)
            print(*row.values(), flush=True)
            rows.append(row)
    if chosen.table is not None:
        with chosen.table.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)


if __name__ == "__main__":
    main()
