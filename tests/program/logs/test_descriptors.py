"""Tests logs in which descriptors and offsets are passed in unusual ways."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iodock.program.capture import import_logs
from iodock.program.run import Run
from iodock.program.store import Store


@pytest.fixture
def run_of(tmp_path: Path) -> Any:
    def imported(*lines: str) -> Run:
        stamped = (f"7 {second}.000000 {line} <0.000010>" for second, line in enumerate(lines, 1))
        (tmp_path / "log").write_text("\n".join(stamped) + "\n")
        command = [sys.executable, "-m", "iodock", "import", "log", "-o", "run.iodock", "--quiet", "--force"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return Run(Store.open(tmp_path / "run.iodock"))

    return imported


def files(run: Run, call: str) -> list[str | None]:
    """Returns the file of each of these calls."""
    return run.show("accesses", kind="all", call=call).to_arrow()["file"].to_pylist()


@pytest.mark.parametrize(
    "clone",
    [
        "clone3({flags=CLONE_PIDFD, pidfd=0x7ffd84526928, exit_signal=SIGCHLD} => {pidfd=[5]}, 88) = 8",
        "clone(child_stack=NULL, flags=CLONE_PIDFD|SIGCHLD, parent_tid=[5]) = 8",
    ],
)
def test_clone_may_return_a_descriptor_of_the_child(run_of: Any, clone: str) -> None:
    run = run_of(
        clone, "fcntl(5, F_GETFD) = 0x1 (flags FD_CLOEXEC)", "close(5) = 0", "read(5, 0x7f, 1) = -1 EBADF (x)"
    )
    assert files(run, "fcntl") == files(run, "close") == ["pidfd"]
    assert files(run, "read") == ["fd:5"]
    assert run.query("SELECT kind FROM files WHERE name = 'pidfd'").to_pylist() == [{"kind": "pidfd"}]


def test_signalfd_on_a_descriptor_is_a_call_on_its_file(run_of: Any) -> None:
    run = run_of(
        "signalfd4(-1, [USR1], 8, SFD_CLOEXEC) = 3",
        "signalfd4(3, [USR1 USR2], 8, 0) = 3",
        "dup(3) = 4",
        'read(4, "x", 128) = 128',
    )
    assert files(run, "signalfd4") == [None, "signalfd"]
    assert files(run, "read") == ["signalfd"]
    (handles,) = run.query(
        "SELECT count(DISTINCT handle_id) AS n FROM events WHERE handle_id IS NOT NULL"
    ).to_pylist()
    assert handles["n"] == 1


def test_a_hidden_offset_is_not_taken_for_the_file_position(run_of: Any) -> None:
    run = run_of(
        'openat(AT_FDCWD, "/in", O_RDONLY) = 3',
        'openat(AT_FDCWD, "/out", O_WRONLY) = 4',
        "sendfile(4, 3, 0x7fffaba772a8, 100) = 100",
        "copy_file_range(3, 0x7fffaba772a8, 4, 0x7fffaba772a0, 10, 0) = 10",
        "sendfile(4, 3, NULL, 50) = 50",
    )
    ends = run.query(
        "SELECT f.name, e.offset_bytes AS at, e.bytes FROM events e JOIN files f USING (file_id) "
        "WHERE bytes > 0 ORDER BY e.ts, e.side"
    ).to_pylist()
    assert [(end["name"], end["at"], end["bytes"]) for end in ends] == [
        ("/in", None, 100),
        ("/out", 0, 100),
        ("/in", None, 10),
        ("/out", None, 10),
        ("/in", 0, 50),
        ("/out", 100, 50),
    ]


def test_a_file_opened_without_a_name_gets_it_from_later_calls(run_of: Any) -> None:
    run = run_of(
        "openat(AT_FDCWD, 0x7ffd, O_RDONLY) = 3",
        'read(3</data/x>, "", 4096) = 4096',
        'read(3, "", 4096) = 4096',
        "close(3</data/y>) = 0",
        'openat(AT_FDCWD, "/data/z", O_RDONLY) = 3',
        # If the log contains the open call of a file, iodock does not use the name that a tracer looked up
        # later.
        'read(3</data/x>, "", 4096) = 4096',
    )
    assert files(run, "read") == ["/data/x", "/data/x", "/data/z"]


def test_perf_trace_without_bpf_gets_names_from_later_calls(tmp_path: Path) -> None:
    text = (
        "     0.100 ( 0.012 ms): openat(dfd: CWD, filename: 0x7ffd, flags: RDONLY|CLOEXEC) = 3\n"
        "     0.300 ( 0.006 ms): read(fd: 3</data/x>, buf: 0x7f12, count: 131072)          = 131072\n"
        "     0.400 ( 0.006 ms): read(fd: 3</data/x>, buf: 0x7f12, count: 131072)          = 131072\n"
        "     0.500 ( 0.006 ms): close(fd: 3</data/x>)                      = 0\n"
    )
    (tmp_path / "log").write_text(text)
    import_logs([str(tmp_path / "log")], tmp_path / "run.iodock")
    run = Run(Store.open(tmp_path / "run.iodock"))
    assert files(run, "read") == ["/data/x", "/data/x"]
    (row,) = [row for row in run.show("files").to_arrow().to_pylist() if row["file"] == "/data/x"]
    assert row["read_bytes"] == 2 * 131072
