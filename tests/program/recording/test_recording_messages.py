"""Tests calls with several messages, memory in pipes, and descriptors passed to other processes: all back
ends and a log of strace agree, and what cannot be known is unknown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from recorded import IODOCK, bpf_unavailable, compiled, live, losses, needs_gcc, record, rows, run

pytestmark = [live, needs_gcc]

MOVED = ("sendmmsg", "recvmmsg", "vmsplice", "sendmsg", "recvmsg")
QUESTION = f"""
    SELECT call, direction, bytes, offset_bytes AS place, file LIKE '%/data' AS data FROM call_ends
    WHERE call IN {MOVED} OR (call LIKE '%read%' AND (file LIKE '%/data' OR file LIKE 'fd:%'))
    ORDER BY data, call, direction, bytes"""
# The expected values are from the program's own output and the manual pages. A position that other processes
# also move is unknown.
TRUTH = [
    ("read", "read", 100, None, False),
    ("recvmmsg", "read", 262, None, False),
    ("recvmsg", "read", 1, None, False),
    ("sendmmsg", "write", 312, None, False),
    ("sendmsg", "write", 1, None, False),
    ("vmsplice", "read", 700, None, False),
    ("vmsplice", "write", 1500, None, False),
    ("pread64", "read", 30, 5, True),
    ("read", "read", 7, 0, True),
    ("read", "read", 10, 0, True),
    ("read", "read", 20, None, True),
    ("read", "read", 40, 0, True),
    ("read", "read", 50, 7, True),
    ("read", "read", 60, 57, True),
]


def program(folder: Path) -> list[str]:
    (folder / "data").write_bytes(bytes(1000))
    return [str(compiled(folder, "messages")), "data"]


def agrees(store: Path) -> None:
    assert [tuple(row.values()) for row in rows(store, QUESTION)] == TRUTH
    assert losses(store)["passed-descriptors"] == 1


@pytest.mark.parametrize("backend", ["ptrace", "rewrite", "bpf"])
def test_messages_over_sockets_are_recorded_exactly(backend: str, tmp_path: Path) -> None:
    if backend == "bpf" and (reason := bpf_unavailable()):
        pytest.skip(reason)
    done = record(tmp_path, "--backend", backend, "--", *program(tmp_path))
    assert (done.returncode, done.stdout.split()) == (0, ["312", "262", "1500", "700"]), done.stderr
    agrees(tmp_path / "run.iodock")


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("option", ["-T", "-y"])
def test_messages_over_sockets_are_read_from_a_log(option: str, tmp_path: Path) -> None:
    run(["strace", "-f", option, "-o", "log", *program(tmp_path)], tmp_path)
    done = run([*IODOCK, "import", "--quiet", "log", "-o", "run.iodock", "--cwd", tmp_path], tmp_path)
    assert done.returncode == 0, done.stderr
    if option == "-y":
        # With -y, strace prints the name of the file behind the received descriptor.
        where = "call = 'read' AND bytes = 100"
        found = rows(tmp_path / "run.iodock", f"SELECT file, offset_bytes FROM call_ends WHERE {where}")
        assert found == [{"file": str(tmp_path / "data"), "offset_bytes": None}]
    else:
        agrees(tmp_path / "run.iodock")
