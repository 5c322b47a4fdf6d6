"""Runs the command line on benchmark results, with the terminal width that tests expect."""

from __future__ import annotations

import subprocess
from pathlib import Path

import in_process


def iodock(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return in_process.iodock(*arguments, cwd=cwd, COLUMNS="120", LC_ALL="C.UTF-8")
