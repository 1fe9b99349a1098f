"""Audits of the clinic's scripts by many trainings with and without one loud record:
``python audits.py SCRIPT [TRIALS] [FOLDER]``. The same line again resumes.

The column "audit" of docs/clinic.md comes from here.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from common import CLAIM

import dosimeter

NEVER = 10**9


def train(member: bool, seed: int, script: str = "", bug: bool = True) -> float:
    """One training of a script, with or without the target."""
    torch.set_num_threads(1)
    patient: Any = importlib.import_module(script).train(
        bug=bug, seed=seed, member=member, every=NEVER
    )
    return float(patient.score)


def main() -> None:
    script = sys.argv[1]
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    folder = Path(sys.argv[3] if len(sys.argv) > 3 else ".")
    for bug in (True, False):
        game = dosimeter.experiment(
            train, run=CLAIM, settings={"script": script, "bug": bug}, chunk=10
        )
        game.run(trials=trials, out=folder / f"{script}-{'bug' if bug else 'healthy'}.csv")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = game.audit(delta=1e-5)
        print(script, "with its mistake" if bug else "healthy", answer.primary, answer.verdict)


if __name__ == "__main__":
    main()
