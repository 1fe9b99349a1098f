"""The package as such: import, version, command, examples, names of the interface."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import json
import subprocess
import sys
import typing

import pytest

import dosimeter
from conftest import REPOSITORY, Program
from dosimeter import _types as types

#: Modules of packages that may not be installed.
BRIDGES = {
    name: name
    for name in ("opacus", "dp_accounting", "jax", "jax_privacy", "ray", "mlflow", "torch",
                 "transformers")
} | {"trainer": "accelerate", "_torch_gradients": "torch", "_torch_records": "torch",
     "_torch_recorder": "torch"}


def modules() -> list[str]:
    names = [info.name for info in pkgutil.iter_modules(dosimeter.__path__)]
    return [name for name in names if name not in {"_core", "__main__"}]


@pytest.mark.filterwarnings("ignore::dosimeter.DosimeterWarning")
@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings(name: str) -> None:
    if name in BRIDGES:
        pytest.importorskip(BRIDGES[name])
    module = importlib.import_module(f"dosimeter.{name}")
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_the_example_of_the_package() -> None:
    result = doctest.testmod(dosimeter)
    assert result.attempted >= 3 and result.failed == 0


def test_the_example_of_the_front_page() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    blocks = text.split("```python\n")[1:]
    assert blocks
    for block in blocks:
        exec(block.split("```")[0], {})


def test_names_with_a_closed_set_are_those_of_the_core(program: Program) -> None:
    schema = json.loads(program("schema", "dosimeter.account/1").stdout)
    words = {
        "LensName": types.Lens,
        "Sampling": types.Sampling,
        "Adjacency": types.Adjacency,
        "Release": types.Release,
        "Secret": types.Secret,
        "Direction": types.Direction,
        "Quantity": types.Quantity,
        "Standing": types.Standing,
        "Side": types.Side,
    }
    for name, ours in words.items():
        found = schema["$defs"][name]
        # Words with a description of their own stand alone.
        theirs = [
            word
            for part in found.get("oneOf", [found])
            for word in part.get("enum", [part.get("const")])
        ]
        assert sorted(typing.get_args(ours)) == sorted(theirs), name


def test_import_is_light() -> None:
    script = (
        "import sys, time; start = time.process_time(); import dosimeter; "
        "took = time.process_time() - start; "
        # CPU seconds: the machine may be busy.
        "heavy = {'numpy', 'pandas', 'pyarrow', 'torch', 'ray', 'jax'} & set(sys.modules); "
        "print(took, sorted(heavy))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    took, heavy = min(done.stdout.split(" ", 1) for done in runs)
    assert heavy.strip() == "[]"
    assert float(took) < 0.2


def test_names_of_the_interface() -> None:
    for name in (
        "Run", "Claim", "account", "calibrate", "tradeoff", "profile", "compare", "audit",
        "plan", "attack", "train", "memorize", "tune", "report", "figure", "DosimeterError", "InvalidInput", "Unsupported",
        "NotCertified", "Incomplete",
    ):
        assert name in dosimeter.__all__ and getattr(dosimeter, name).__doc__
    for name in dosimeter.__all__:
        assert hasattr(dosimeter, name)


def test_the_command_is_the_command_line(program: Program) -> None:
    ours = [sys.executable, "-m", "dosimeter"]
    for arguments, code in (
        (["--version"], 0),
        (["account", "--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "10"], 0),
        (["account", "--noise-multiplier", "-1", "--sample-rate", "0.01", "--steps", "10"], 2),
        (["account", "--noise-multiplier", "1e-3", "--sample-rate", "0.1", "--steps", "1"], 5),
        (["nonsense"], 2),
    ):
        mine = subprocess.run([*ours, *arguments], capture_output=True, text=True)
        theirs = program(*arguments, code=code)
        assert (mine.returncode, mine.stdout, mine.stderr) == (code, theirs.stdout, theirs.stderr)
    assert dosimeter.__version__ in program("--version").stdout
