"""Compares recorded io_uring requests, with every back end, with what the program requested and received."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from recorded import bpf_unavailable, compiled, live, losses, needs_gcc, record, rows

pytestmark = [pytest.mark.whole, live, needs_gcc]

REQUESTS = """
    SELECT call, parse_filename(file) AS file, count(*) AS n, sum(bytes)::BIGINT AS b,
           sum(requested_bytes) FILTER (WHERE call = 'io_uring_write')::BIGINT AS asked,
           min(offset_bytes) AS first, max(offset_bytes) AS last, any_value(errno) AS errno
    FROM call_ends
    WHERE call IN ('io_uring_read', 'io_uring_write', 'io_uring_fsync')
       OR call = 'read' AND file LIKE '%/data'
    GROUP BY ALL ORDER BY call, b, file"""
WRITTEN = sum(4096 + i for i in range(8)) * 3 + 21 + 21
# The expected values are from the program's own output.
TRUTH = [
    ("io_uring_fsync", "data", 1, None, None, None, None, None),
    ("io_uring_read", None, 1, 60, None, 0, 0, None),
    ("io_uring_read", "data", 2, 350, None, 5000, 20000, None),
    ("io_uring_read", "fd:999", 1, None, None, 0, 0, "EBADF"),
    ("io_uring_write", "late", 1, 333, 333, 0, 0, None),
    ("io_uring_write", "early", 1, 777, 777, 0, 0, None),
    ("io_uring_write", "data", 26, WRITTEN, WRITTEN, 0, 200021, None),
    ("read", "data", 1, 30, None, 20050, 20050, None),
]
LATE = {
    388: ("io_uring_write", "late", 2, 388, 388, 0, 0),
    421: ("io_uring_write", "late", 5, 421, 421, 0, 2),
}


@pytest.mark.parametrize("backend", ["rewrite", "bpf"])
def test_io_uring_requests_are_recorded_as_calls(backend: str, tmp_path: Path) -> None:
    if backend == "bpf" and (reason := bpf_unavailable()):
        pytest.skip(reason)
    done = record(tmp_path, "--backend", backend, "--", compiled(tmp_path, "ring"), ".")
    if done.returncode == 77:
        pytest.skip("there is no io_uring here")
    assert (done.returncode, done.stdout) == (0, f"{WRITTEN + 777 + 333 + 33 + 55} 440\n"), done.stderr
    store = tmp_path / "run.iodock"
    found = [tuple(row.values()) for row in rows(store, REQUESTS)]
    if backend == "bpf" and len(found) < 3:
        pytest.skip("this kernel shows no requests inside an io_uring")
    # No back end sees the content of one request, which moves nothing. The program also enters a ring through
    # a copy of its descriptor; only bpf, in the kernel, sees these three requests.
    late, unseen = (421, 1) if backend == "bpf" else (388, 4)
    truth = [row if row[1] != "late" else (*LATE[late], None) for row in TRUTH]
    assert found == truth
    assert losses(store)["io-uring-contents"] == unseen


def test_programs_that_use_liburing_are_recorded(tmp_path: Path) -> None:
    try:
        program = compiled(tmp_path, "liburing", "-Wl,--no-as-needed", "-luring")
    except subprocess.CalledProcessError:
        pytest.skip("there is no liburing here to compile with")
    done = record(tmp_path, "--backend", "rewrite", "--", program, tmp_path / "data")
    if done.returncode == 77:
        pytest.skip("there is no io_uring here")
    assert (done.returncode, done.stdout) == (0, "409600 409600\n"), done.stderr
    found = rows(
        tmp_path / "run.iodock",
        """SELECT call, count(*) AS n, sum(bytes)::BIGINT AS b, max(offset_bytes) AS last FROM call_ends
        WHERE call IN ('io_uring_read', 'io_uring_write') AND file LIKE '%/data' GROUP BY ALL ORDER BY ALL""",
    )
    assert [tuple(row.values()) for row in found] == [
        ("io_uring_read", 100, 409600, 99 * 4096),
        ("io_uring_write", 100, 409600, 99 * 4096),
    ]


def test_ptrace_reports_io_uring_requests_as_unseen(tmp_path: Path) -> None:
    done = record(tmp_path, "--backend", "ptrace", "--", compiled(tmp_path, "ring"), ".")
    if done.returncode == 77:
        pytest.skip("there is no io_uring here")
    assert losses(tmp_path / "run.iodock")["io-uring-contents"] == 1


def test_a_ring_created_unseen_is_counted(tmp_path: Path) -> None:
    program = compiled(tmp_path, "own_ring")
    done = record(tmp_path, "--backend", "rewrite", "--", program, program)
    if done.returncode == 77:
        pytest.skip("there is no io_uring here")
    assert (done.returncode, done.stdout) == (0, "1 4096\n"), done.stderr
    counted = losses(tmp_path / "run.iodock")
    assert (counted["io-uring-contents"], counted["own-system-calls"]) == (1, 1)
