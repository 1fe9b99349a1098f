"""Training with a ledger, memorisation of language models, and tables of hyper-parameters."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from . import _asking, _core, _tables
from ._toml import write_toml
from ._types import Document, Numbers, Progress
from .claims import Account, account
from .errors import InvalidInput
from .runs import Run


@dataclass(frozen=True, kw_only=True)
class Training:
    """A training that was done: its folder and its ledger.

    The ledger says what was really sampled, clipped and added; what it computed from records
    stands under ``not_private``.
    """

    out: Path
    ledger: Document

    def __hash__(self) -> int:
        return hash(self.out)

    @property
    def run(self) -> Run:
        """The run of the ledger."""
        return Run.from_json(self.ledger)

    @property
    def model(self) -> Path:
        """The weights, in the safetensors format."""
        return self.out / "model.safetensors"

    def account(self, *, delta: Numbers | None = None, **questions: Any) -> Account:
        """What the training leaks; the keywords of :func:`dosimeter.account`."""
        return account(self.run, delta=delta, **questions)

    def to_json(self) -> str:
        return json.dumps({"out": os.fspath(self.out), "ledger": self.ledger})

    @classmethod
    def from_json(cls, text: str) -> Training:
        found = json.loads(text)
        return cls(out=Path(found["out"]), ledger=found["ledger"])

    def __repr__(self) -> str:
        return f"<Training in {os.fspath(self.out)!r}: {self.run!r}>"

    def _repr_html_(self) -> str:
        from ._html import definition

        measured = self.ledger.get("not_private", {})
        rows = [("run", repr(self.run)), ("folder", os.fspath(self.out))]
        rows += [
            (f"{key} (not private)", str(value))
            for key, value in measured.items()
            if isinstance(value, (int, float, str))
        ]
        return definition("Training", rows)


def train(
    config: str | os.PathLike[str] | Mapping[str, Mapping[str, Any]],
    *,
    out: str | os.PathLike[str],
    device: str = "auto",
    precision: Literal["f32", "tf32"] | None = None,
    noise: Literal["fast", "secure"] = "fast",
    threads: int | None = None,
    force: bool = False,
    progress: Progress = None,
    **overrides: Any,
) -> Training:
    """One DP-SGD or DP-Adam training, with its ledger; the same call again resumes.

    ``config`` is the path of a RUN.toml, or its tables as mappings: ``run``, ``data``, ``model``,
    ``optimizer``. ``overrides`` replace keys of ``run``; ``target_epsilon`` and ``delta`` ask for the
    noise that meets them. ``noise="secure"`` is for a model that
    will be released. ``progress`` is called with (steps done, steps in all).

    >>> import dosimeter, tempfile, os
    >>> config = {
    ...     "run": {"noise_multiplier": 1.0, "batch_size": 64, "steps": 3, "seed": 1},
    ...     "data": {"name": "adult"},
    ...     "model": {"kind": "softmax"},
    ...     "optimizer": {"kind": "sgd", "learning_rate": 0.1},
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = dosimeter.train(config, out=os.path.join(folder, "model"), device="cpu")
    ...     done.model.exists(), done.run.steps
    (True, 3)
    """
    own = {key: overrides.pop(key, None) for key in ("target_epsilon", "delta", "checkpoint_every")}
    question = own | {
        "run": overrides,
        "out": out,
        "device": device,
        "precision": precision,
        "noise": noise,
        "threads": threads,
        "force": force,
    }
    with _asking.scratch() as folder:
        if isinstance(config, Mapping):
            path = write_toml(config, folder / "run.toml")
        else:
            path = Path(config)
        asked = _asking.question_text(question | {"file": path})
        with _asking.listening(progress) as listener:
            text, warnings, _ = _core.train(asked, listener)
    _asking.warn(warnings)
    return Training(out=Path(out), ledger=json.loads(text))


def tune(
    question: str, table: str | os.PathLike[str] | Any, **options: Any
) -> Document:
    """Asks a table of trainings: ``regress``, ``rank``, ``select``, ``profiles``, ``search``.

    ``table`` is a file (CSV, JSONL, Parquet), a pandas frame or an Arrow table; the keywords are
    the flags of ``dosimeter tune``. The epsilon of the chosen run is not the epsilon of the search.

    >>> import dosimeter, pathlib, tempfile
    >>> header = "batch_size,steps,learning_rate,clip_norm,epsilon,delta,seed,score_vmr,utility"
    >>> rows = [f"{b},{t},0.1,1,8,1e-5,{s},{b * t / 9e4 + s / 50},0.9"
    ...         for b in (32, 64) for t in (100, 400) for s in (0, 1)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "results.csv")
    ...     _ = path.write_text(chr(10).join([header, *rows]))
    ...     ranked = dosimeter.tune("rank", path)
    >>> ranked["schema"]
    'dosimeter.tune-rank/1'
    """
    with _asking.scratch() as folder:
        if isinstance(table, (str, os.PathLike)):
            path = Path(table)
        elif _tables.is_table(table):
            path = _tables.write_csv(_tables.columns(table), folder / "table.csv")
        else:
            raise InvalidInput("the table must be a file, a pandas frame or an Arrow table")
        asked = _asking.question_text({"question": question, **options})
        text, warnings, _ = _core.tune(asked, path)
    _asking.warn(warnings)
    found: Document = json.loads(text)
    return found


def memorize(
    metric: str, completions: str | os.PathLike[str] | None = None, **options: Any
) -> Document:
    """Memorisation of secrets by a language model: ``acr``, ``vmr`` or ``air``.

    ``completions`` is a JSONL file, and the keywords are the flags of ``dosimeter memorize``, as
    ``model`` and ``secrets`` in place of completions; completions of any model are written by :func:`dosimeter.transformers.complete`.

    >>> import dosimeter, pathlib, tempfile
    >>> row = '{"prompt": "The code is", "target": " 4417", "completion": " 4417."}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "completions.jsonl")
    ...     _ = path.write_text(row)
    ...     dosimeter.memorize("vmr", path)["score"]["value"]
    1.0
    """
    question = {"metric": metric, "completions": completions, **options}
    text, warnings, _ = _core.memorize(_asking.question_text(question))
    _asking.warn(warnings)
    found: Document = json.loads(text)
    return found
