"""``python -m dosimeter`` and the command ``dosimeter``."""

from __future__ import annotations

import signal
import sys

from . import _core


def main() -> int:
    """Runs the command line on this process's arguments and streams; the exit code."""
    # The core handles Ctrl-C itself; Python's handler would wait for it to come back.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["dosimeter", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
