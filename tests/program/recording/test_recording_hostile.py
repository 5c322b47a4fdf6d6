"""Tests that programs that are difficult to record end in the same way under every back end as without a
recorder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from places import ROOT

IODOCK = [sys.executable, "-m", "iodock"]
SOURCE = ROOT / "fixtures" / "programs" / "hostile.c"
# Program -> a call, and how often the program makes it at least.
PROGRAMS = {
    "exec-in-thread": ("execve", 1),
    "vfork": ("execve", 50),
    "faults": ("pread64", 100),
    "close-all": ("pread64", 20),
    "threads": ("pread64", 1000),
    "fork-bomb": ("write", 5000),
    "libraries": ("pread64", 200),
    "own-text": ("pread64", 1),
    "killed": ("pread64", 1),
}
NOBODY = 65534

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        sys.platform != "linux" or os.uname().machine != "x86_64" or not shutil.which("cc"),
        reason="for x86-64 Linux with a C compiler",
    ),
]


@cache
def missing(backend: str) -> str | None:
    """Returns why this machine lacks this back end, or None if it has it."""
    if backend != "bpf":
        return None
    done = subprocess.run(
        [*IODOCK, "doctor", "--format", "json"], capture_output=True, check=True, timeout=120
    )
    (found,) = (row for row in json.loads(done.stdout) if row["topic"] == "BPF")
    return None if found["state"] == "good" else f"no BPF here: {found['found']}"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("hostile") / "hostile"
    subprocess.run(["cc", "-O2", "-w", "-pthread", "-o", program, SOURCE, "-ldl"], check=True, timeout=120)
    return program


@pytest.fixture(params=["ptrace", "rewrite", "bpf"])
def backend(request: pytest.FixtureRequest) -> str:
    reason = missing(request.param)
    if reason:
        pytest.skip(reason)
    return str(request.param)


def ended(command: list[object]) -> tuple[int, bytes, bytes]:
    # A shell turns the end by a signal into an exit status, as the recorder does.
    alone = ["sh", "-c", '"$@"; exit $?', "sh", *map(str, command)]
    done = subprocess.run(alone, capture_output=True, timeout=280, check=False)
    return done.returncode, done.stdout, done.stderr.replace(b"Killed\n", b"")


def calls(store: Path, name: str) -> int:
    command = [*IODOCK, "show", "summary", str(store), "--call", name, "--kind", "all", "--format", "json"]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    return sum(row["count"] for row in json.loads(done.stdout)["rows"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_hostile_program_ends_as_without_recording(
    hostile: Path, backend: str, name: str, tmp_path: Path
) -> None:
    program: list[object] = [hostile, name, tmp_path]
    store = tmp_path / "run.iodock"
    alone = ended(program)
    assert alone[1]
    recorder = [*IODOCK, "record", "--backend", backend, "--quiet", "-o", store, "--"]
    assert ended([*recorder, *program]) == alone
    call, least = PROGRAMS[name]
    assert calls(store, call) >= least


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a program to another user")
def test_a_setuid_program_keeps_its_rights(hostile: Path, backend: str, tmp_path: Path) -> None:
    other = tmp_path / "other-user"
    shutil.copy(hostile, other)
    os.chown(other, NOBODY, NOBODY)
    other.chmod(0o4755)
    program: list[object] = [hostile, "set-user-id", tmp_path]
    alone = ended(program)
    assert alone[:2] == (3, f"user {NOBODY}\n".encode())
    recorder = [*IODOCK, "record", "--backend", backend, "--quiet", "-o", tmp_path / "run.iodock", "--"]
    assert ended([*recorder, *program]) == alone
