"""A hook for pre-commit: every file that it gets is a run of its own, held to its policy.

``python -m dosimeter.pre_commit a.toml b.toml --max-epsilon 8 --delta 1e-5``; flags before or after
the files are those of ``dosimeter check``, which would compose several files into one run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Checks each file; the largest exit code."""
    files = [word for word in arguments if word.endswith((".toml", ".json"))]
    flags = [word for word in arguments if word not in files]
    codes = [
        subprocess.run([sys.executable, "-m", "dosimeter", "check", file, *flags], check=False).returncode
        for file in files
    ]
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
