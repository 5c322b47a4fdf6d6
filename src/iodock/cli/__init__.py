"""The command line: one file per verb, listed in `registry`. Only here is argv read, something printed, exited."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of the `iodock` command: runs a verb and exits with its status."""
    from iodock.cli.run import run

    status = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Who read our output has gone; the interpreter must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
