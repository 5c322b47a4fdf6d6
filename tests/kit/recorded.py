"""Records programs through the real command line and queries the recordings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from in_process import iodock, printed
from places import FIXTURES

PROGRAMS = FIXTURES / "programs"
IODOCK = [sys.executable, "-m", "iodock"]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "4"]

live = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="live recording is for x86-64 Linux"
)
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
needs_mpi = pytest.mark.skipif(
    not (shutil.which("mpirun") and shutil.which("mpicc")), reason="Open MPI is not installed"
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount and change users")


ASKING = ("query", "show", "explain", "diagnose", "report", "diff", "bundle", "import")
"""Commands that start no program. They give the same result in this process."""


def run(command: Sequence[object], cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    texts = [str(part) for part in command]
    if texts[:3] == IODOCK and texts[3] in ASKING and not options:
        return iodock(*texts[3:], cwd=cwd)
    return subprocess.run(texts, cwd=cwd, capture_output=True, text=True, timeout=120, check=False, **options)


def record(cwd: Path, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return run([*IODOCK, "record", "--quiet", "-o", "run.iodock", *arguments], cwd, **options)


@cache
def bpf_unavailable() -> str | None:
    """Returns why this machine cannot record with BPF, or None if it can."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "bpf is for x86-64 Linux"
    found = json.loads(printed("doctor", "--format", "json"))
    bpf = next(row for row in found if row["topic"] == "BPF")
    return None if bpf["state"] == "good" else f"no BPF here: {bpf['found']}"


def rows(store: Path, sql: str) -> list[dict[str, Any]]:
    done = run([*IODOCK, "query", store, sql, "--format", "json"], store.parent)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


def losses(store: Path) -> dict[str, int]:
    done = run([*IODOCK, "show", "summary", store, "--format", "json"], store.parent)
    assert done.returncode == 0, done.stderr
    return {loss["name"]: loss["count"] for loss in json.loads(done.stdout)["losses"]}


def loss_cures(store: Path) -> dict[str, str]:
    losses(store)
    manifest = json.loads((store / "manifest.json").read_text())
    return {loss["name"]: loss["cure"] for loss in manifest["losses"]}


def count(store: Path, condition: str) -> int:
    return int(rows(store, f"SELECT count(*) AS n FROM calls_seen WHERE {condition}")[0]["n"])


def compiled(folder: Path, name: str, *flags: str) -> Path:
    out = folder / name
    subprocess.run(["gcc", "-O1", "-pthread", *flags, "-o", out, PROGRAMS / f"{name}.c"], check=True)
    return out


def built(folder: Path, source: str, package: str, *options: object, compiler: str = "gcc") -> Path:
    """Compiles a program with the flags that pkg-config prints for PACKAGE. Skips the test if a tool or the
    package is missing."""
    for program in (compiler, "pkg-config"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    found = subprocess.run(["pkg-config", "--cflags", "--libs", package], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"pkg-config knows no {package}")
    program = folder / Path(source).stem
    command = [compiler, "-o", program, *options, PROGRAMS / source, *found.stdout.split()]
    subprocess.run(command, check=True)
    return program


def wait_until(true: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)
