"""Finds cases with a known truth, and lists the differences between a store and its truth."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from case_truth import Comparison
from in_process import iodock, shown
from places import FIXTURES

CASES = FIXTURES / "cases"


FOLDERS = [CASES, *map(Path, filter(None, os.environ.get("IODOCK_CASES", "").split(":")))]


def import_case(store: Path, log: list[Path], truth: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    where = ["--cwd", truth["initial_cwd"]] if truth.get("initial_cwd") else []
    return iodock("import", *map(str, log), "-o", str(store), *where, "--quiet")


def differences(store: Path, truth: dict[str, Any], tool: str) -> list[str]:
    return list(Comparison(partial(shown, store), truth, tool).differences())
