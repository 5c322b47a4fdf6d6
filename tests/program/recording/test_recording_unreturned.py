"""Tests calls that never return, because their thread is killed, is cancelled, or leaves the call by longjmp
from a signal handler."""

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
SOURCE = ROOT / "fixtures" / "programs" / "unreturned.c"
READS = """SELECT count(*) FILTER (result IS NULL AND errno IS NULL) AS without_result,
count(*) FILTER (result IS NOT NULL) AS done, count(DISTINCT tid) AS threads
FROM calls_seen WHERE call = 'read' AND file LIKE 'pipe%'"""

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="for x86-64 Linux"),
    pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed"),
]


@pytest.fixture(scope="module")
def unreturned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("unreturned") / "unreturned"
    subprocess.run(["gcc", "-O1", "-w", "-pthread", "-o", program, SOURCE], check=True)
    return program


def lines(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == "", done.stderr
    return done.stdout


@pytest.mark.parametrize("more", [[], ["--complete"]], ids=["rewrite", "complete"])
@pytest.mark.parametrize(
    ("way", "status", "reads"),
    [
        ("killed", -9, (1, 0, 1)),
        ("threads", 0, (20, 0, 20)),
        ("jumped", 0, (50, 1, 1)),
        ("cancelled", 0, (20, 0, 20)),
        ("handler", -9, (1, 0, 1)),
        ("handler-returns", 0, (0, 1, 1)),
    ],
)
def test_a_read_that_never_returns_has_no_result(
    unreturned: Path, tmp_path: Path, more: list[str], way: str, status: int, reads: tuple[int, int, int]
) -> None:
    store = str(tmp_path / "run.iodock")
    command = [*IODOCK, "record", "--quiet", "--backend", "rewrite", *more, "-o", store, "--"]
    done = subprocess.run([*command, unreturned, way], capture_output=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    (row,) = json.loads(lines([*IODOCK, "query", store, READS, "--format", "json"]))["rows"]
    assert (row["without_result"], row["done"], row["threads"]) == reads


@pytest.mark.parametrize("backend", ["rewrite", "ptrace"])
def test_an_open_that_never_returns_does_not_affect_later_calls(
    unreturned: Path, tmp_path: Path, backend: str
) -> None:
    store = str(tmp_path / "run.iodock")
    command = [*IODOCK, "record", "--quiet", "--backend", backend, "-o", store, "--", unreturned, "opened"]
    assert subprocess.run(command, timeout=120, check=False).returncode == 0
    told = lines([*IODOCK, "show", "accesses", store, "--file", "**/unreturned", "--format", "json"])
    blocks = [
        (row["offset_bytes"], row["bytes"]) for row in json.loads(told)["rows"] if row["call"] == "pread64"
    ]
    assert blocks == [(100 * block, 10) for block in range(10)]
