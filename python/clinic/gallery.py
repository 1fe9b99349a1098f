"""Writes the gallery: ``python gallery.py SCORES DOCS``. ``SCORES`` is the folder of ``audits.py``.
For each script: what its recorder says after one training, and the report of its audit."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

from audits import DELTA, claim_of

import dosimeter

SEED = 0
#: Script, whether with its mistake, and how to read what is shown.
PATIENTS = (
    ("clipped_batch", False, "A healthy training. Nothing is accused, and the run that happened is the "
     "claimed one. The audit shows less than the claim allows, as it must."),
    ("forgotten_noise", True, "The measured noise is far below the claimed one. There is no run with an "
     "epsilon to state."),
    ("clipped_batch", True, "The noise is right; what was summed is not the sum of clipped gradients. "
     "The audit's loud record shows how much more than its share it had."),
    ("shuffled_loader", True, "Every record comes once per epoch. The run that happened is another "
     "one, and no amplification by sampling may be counted for it."),
    ("resumed_noise", True, "Each step by itself is healthy. The noise of the second session is that of "
     "the first."),
    ("learned_normaliser", True, "The recorder sees nothing: the mistake comes before the first step. "
     "An audit whose score looks at everything that is published finds it."),
)


def treated(script: str, bug: bool) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(script).train(bug=bug, seed=SEED).recorder


def epsilon(side: Any) -> str:
    if side.get("epsilon") is None:
        return f"none ({side['reason']})"
    return str(side["shown"])


def entry(script: str, bug: bool, words: str, report: str | None) -> str:
    recorder = treated(script, bug)
    told = recorder.compare(delta=DELTA)
    lines = [
        f"## `{script}`{', with its mistake' if bug else ', healthy'}",
        "",
        words,
        "",
        "```text",
        repr(recorder),
        "```",
        "",
        f"Epsilon at delta 1e-5: claimed {epsilon(told['claimed'])}; of the run that happened "
        f"{epsilon(told['happened'])}.",
    ]
    if report is not None:
        lines += ["", f"[The report of its audit]({report})"]
    return "\n".join(lines) + "\n"


def main() -> None:
    scores, docs = Path(sys.argv[1]), Path(sys.argv[2])
    reports = docs / "results" / "clinic"
    reports.mkdir(parents=True, exist_ok=True)
    parts = [
        "# Gallery of reports\n\nScripts of [the clinic](clinic.md): what the recorder says after one "
        "training, and the report of an audit by many trainings. Written by "
        "`python python/clinic/gallery.py SCORES docs`, where SCORES is the folder that\n"
        "`python python/clinic/audits.py --folder SCORES` fills. [How to read a "
        "verdict](own-training.md#reading-the-verdict).\n"
    ]
    for script, bug, words in PATIENTS:
        name = f"{script}-{'bug' if bug else 'healthy'}"
        file = scores / f"{name}.csv"
        link = None
        if file.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                dosimeter.report(
                    claim_of(script, bug), scores=file, delta=DELTA,
                    title=f"The clinic: {script}, {'with its mistake' if bug else 'healthy'}",
                    out=reports / f"{name}.md",
                )
            link = f"results/clinic/{name}.md"
        parts.append(entry(script, bug, words, link))
    (docs / "gallery.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
