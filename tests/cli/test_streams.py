"""Tests standard streams that are closed, full or broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("ends", "status"),
    [("-o out.txt >&- 2>&- <&-", 0), ("2>&-", 0), (">&-", 1), (">&- 2>&-", 1), (">/dev/full", 1)],
)
def test_commands_work_with_closed_standard_streams(
    mixed_path: Path, tmp_path: Path, ends: str, status: int
) -> None:
    command = f"{sys.executable} -m iodock diagnose {mixed_path} {ends}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, timeout=60, check=False, capture_output=True)
    assert done.returncode == status
    # Lost output is an error, which iodock reports if stderr works.
    assert (b"error: " in done.stderr) == (status == 1 and "2>&-" not in ends)


@pytest.mark.parametrize("verb", ["record -o run.iodock", "volume"])
@pytest.mark.parametrize("end", ["2>&-", "2>/dev/full", "2</dev/null", "2> >(exec true)"])
def test_an_unwritable_stderr_does_not_change_the_exit_status(tmp_path: Path, verb: str, end: str) -> None:
    command = f"{sys.executable} -m iodock {verb} -- sh -c 'sleep 0.2; exit 3' {end}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, timeout=60, check=False, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"", b"")
