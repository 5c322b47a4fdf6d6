"""`iodock record --backend rewrite` through the command line, beside what ptrace records of the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

IODOCK = [sys.executable, "-m", "iodock"]
PROGRAM = "f=$1; printf 'one\\ntwo\\n' > $f; cat $f $f missing; (cd /; cat $f); exit 3"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="rewriting calls is for x86-64 Linux"
)


def recorded(folder: Path, backend: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    store = folder / f"{backend}.iodock"
    command = [*IODOCK, "record", "--backend", backend, "--quiet", "-o", str(store), "--"]
    command += ["sh", "-c", PROGRAM, "sh", str(folder / "data")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return done, store


def accesses(store: Path) -> list[dict[str, object]]:
    command = [*IODOCK, "show", "accesses", str(store), "--file", "**/data", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    kept = ("call", "offset", "size", "result")
    return [{key: row.get(key) for key in kept} for row in json.loads(done.stdout)["rows"]]


def test_the_same_output_status_and_accesses_as_by_ptrace(tmp_path: Path) -> None:
    by_ptrace, traced = recorded(tmp_path, "ptrace")
    by_rewrite, rewritten = recorded(tmp_path, "rewrite")
    assert (by_rewrite.returncode, by_rewrite.stdout) == (3, by_ptrace.stdout)
    assert by_rewrite.stdout == "one\ntwo\n" * 3
    assert accesses(rewritten) == accesses(traced) != []


def test_what_is_not_seen_is_counted(tmp_path: Path) -> None:
    _, store = recorded(tmp_path, "rewrite")
    manifest = json.loads((store / "manifest.json").read_text())
    assert manifest["captured"]["how"] == "rewrite"
    losses = {loss["name"]: loss["count"] for loss in manifest["losses"]}
    # The shell and two cats.
    assert losses["before-load"] == 3


def test_a_running_process_is_refused_with_what_to_do(tmp_path: Path) -> None:
    command = [*IODOCK, "record", "--backend", "rewrite", "-o", str(tmp_path / "s"), "-p", str(os.getpid())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "--backend ptrace" in done.stderr
    assert not (tmp_path / "s").exists()
