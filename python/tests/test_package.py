"""The package as such: import, version, command, examples, names of the interface."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import typing
from pathlib import Path

import pytest

import dosimeter
from conftest import REPOSITORY, Program
from dosimeter import _types as types
from dosimeter import pre_commit

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


@pytest.mark.parametrize("page", ["README.md", "python/README.md"])
def test_the_example_of_the_front_page(page: str) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
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


def test_the_page_of_the_package_holds_where_it_is_shown() -> None:
    """PyPI shows it alone: no link into the repository, and a command that installs from there."""
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    named = re.search(r'^readme = "(.*)"$', project, re.MULTILINE)
    assert named is not None
    page = (REPOSITORY / named[1]).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert links and all(link.startswith("https://") for link in links), links
    assert "pip install dosimeter" in page and "pip install ." not in page
    for system in ("Linux", "MacOS", "Microsoft :: Windows"):
        assert f":: {system}" in project


def test_the_source_distribution_holds_what_is_compiled_in() -> None:
    """maturin takes the files of the crates; what lies outside of them has to be named."""
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    named = re.findall(r'path = "([^"]*)", format = "sdist"', project)
    crates, outside = (REPOSITORY / "crates").resolve(), set()
    for source in crates.glob("*/src/**/*.rs"):
        text = source.read_text(encoding="utf-8")
        for path in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]*)"', text):
            file = (source.parent / path).resolve()
            if crates not in file.parents:
                outside.add(file.relative_to(REPOSITORY.resolve()))
    assert Path("web/dist/app.js") in outside
    missing = [path for path in sorted(outside) if not any(path.match(glob) for glob in named)]
    assert not missing, missing


#: A run of epsilon about 1.3 at delta 1e-5.
RUN = """[run]
noise_multiplier = 1.0
sample_rate = 0.01
steps = 1000
[policy]
max_epsilon = {limit}
delta = 1e-5
"""


def acted(folder: Path, **inputs: str) -> tuple[int, str, str]:
    """What the GitHub Action's last script does: exit code, log and `$GITHUB_OUTPUT`."""
    action = (REPOSITORY / "action.yml").read_text(encoding="utf-8")
    script = textwrap.dedent(action.rpartition("      run: |\n")[2])
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    command = programs / "dosimeter"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dosimeter "$@"\n')
    command.chmod(0o755)
    output = folder / "output"
    output.write_text("before=1\n")
    names = {"RUN": "", "MAX_EPSILON": "", "DELTA": "", "LENS": "", **inputs}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        # As GitHub runs `shell: bash`.
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        env={**os.environ, **names, "PATH": path, "GITHUB_OUTPUT": str(output)},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr, output.read_text()


@pytest.mark.skipif(os.name == "nt" or not shutil.which("bash"), reason="a script for bash")
def test_the_action_writes_its_answer_before_it_fails(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(RUN.format(limit=8))
    for limit, code, verdict in (("", 0, "pass"), ("0.5", 3, "FAIL")):
        delta = "1e-5" if limit else ""
        ended, log, output = acted(tmp_path, RUN="run.toml", MAX_EPSILON=limit, DELTA=delta)
        assert ended == code and verdict in log, log
        before, _, rest = output.partition("answer<<END_OF_ANSWER\n")
        answer, _, after = rest.partition("\nEND_OF_ANSWER\n")
        assert (before, after) == ("before=1\n", "")
        document = json.loads(answer)
        assert document["schema"] == "dosimeter.check/1"
        assert document["passed"] is (code == 0), document
    ended, log, output = acted(tmp_path, RUN="none.toml")
    assert ended == 2 and "none.toml" in log
    assert output.endswith("answer<<END_OF_ANSWER\n\nEND_OF_ANSWER\n")


def test_the_hook_checks_every_file_by_itself(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.dosimeter.toml", tmp_path / "bad.dosimeter.toml"
    good.write_text(RUN.format(limit=8))
    bad.write_text(RUN.format(limit=0.5))
    assert pre_commit.main([str(good), str(good)]) == 0
    assert capfd.readouterr().out.count("pass  epsilon") == 2
    # Composed into one run they would have one verdict.
    assert pre_commit.main([str(good), str(bad)]) == 3
    told = capfd.readouterr().out
    assert told.count("pass  epsilon") == 1 and told.count("FAIL  epsilon") == 1, told
    assert pre_commit.main([str(good), "--max-epsilon", "0.5", "--delta", "1e-5"]) == 3
    assert pre_commit.main([]) == 0
