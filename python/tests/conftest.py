"""What the tests share: a run, and the command line as a program of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dosimeter

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def run() -> dosimeter.Run:
    return dosimeter.Run(noise_multiplier=1.0, sample_rate=0.01, steps=1000)


class Program:
    """The binary named by DOSIMETER_BINARY, else the command of this package."""

    def __init__(self) -> None:
        binary = os.environ.get("DOSIMETER_BINARY")
        self.start = [binary] if binary else [sys.executable, "-m", "dosimeter"]

    def __call__(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([*self.start, *arguments], capture_output=True, text=True)
        assert done.returncode == code, (arguments, done.returncode, done.stderr)
        return done

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--format", "json", code=code).stdout)


@pytest.fixture(scope="session")
def program() -> Program:
    return Program()
