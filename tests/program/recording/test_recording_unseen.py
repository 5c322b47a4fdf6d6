"""Tests the loss `unseen-calls`: the kernel's counts show calls that programs make without libc."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from places import ROOT

IODOCK = [sys.executable, "-m", "iodock"]
SOURCE = ROOT / "crates" / "iodock-preload" / "tests" / "programs" / "unseen.c"
COUNT = 3001
FAILED = 100
"""Failing calls of the program, which the kernel does not count: this number is missing."""
SLACK = 16
"""A machine may have other doubtful calls, but none has been seen."""

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        sys.platform != "linux" or os.uname().machine != "x86_64",
        reason="rewriting calls is for x86-64 Linux",
    ),
    pytest.mark.skipif(not shutil.which("cc"), reason="needs a compiler"),
    pytest.mark.skipif(not Path("/proc/thread-self/io").exists(), reason="this kernel counts no calls"),
]


def losses(folder: Path, *command: str | Path, ranks: str | None = None) -> dict[str, int]:
    store = folder / "run.iodock"
    chosen = ["--ranks", ranks] if ranks else []
    record = [*IODOCK, "record", "--backend", "rewrite", "-q", "-o", str(store), *chosen, "--"]
    done = subprocess.run([*record, *command], cwd=folder, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((store / "manifest.json").read_text())
    return {loss["name"]: loss["count"] for loss in manifest["losses"]}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("unseen") / "unseen"
    subprocess.run(["cc", "-O1", "-w", "-pthread", "-o", built, SOURCE, "-ldl"], check=True, timeout=120)
    return built


@pytest.mark.parametrize("how", ["calls", "thread", "threads", "libc", "code", "children"])
def test_calls_that_bypass_libc_are_counted(tmp_path: Path, program: Path, how: str) -> None:
    found = losses(tmp_path, program, how, str(COUNT)).get("unseen-calls", 0)
    assert COUNT - FAILED - SLACK <= found <= COUNT


def test_calls_of_ranks_that_are_recorded_whole_are_counted(tmp_path: Path, program: Path) -> None:
    launcher = 'for rank in 0 1 2; do OMPI_COMM_WORLD_RANK=$rank "$@" || exit 1; done'
    found = losses(tmp_path, "sh", "-c", launcher, "sh", program, "calls", str(COUNT), ranks="1")
    assert COUNT - FAILED - SLACK <= found["unseen-calls"] <= COUNT


def test_unseen_calls_before_an_exec_are_counted(tmp_path: Path, program: Path) -> None:
    found = losses(tmp_path, program, "exec", str(COUNT)).get("unseen-calls", 0)
    assert 2 * (COUNT - FAILED - SLACK) <= found <= 2 * COUNT


def test_recorded_calls_do_not_count_as_unseen(tmp_path: Path, program: Path) -> None:
    assert "unseen-calls" not in losses(tmp_path, program, "nothing", "0")
    script = "for i in 1 2 3 4 5; do echo $(cat /proc/version | head -c 10 | wc -c); done; ls / | sort | tail"
    (tmp_path / "script").mkdir()
    assert "unseen-calls" not in losses(tmp_path / "script", "bash", "-c", script)
