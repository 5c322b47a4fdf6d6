"""Tests the rule `unaligned-requests`: when it gives a finding, its count and cost, and when it gives
none."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_faults import Build, made, written_anew
from diagnosing import diagnosed, of_rule
from log_shapes import spread
from metadata_log import Trace
from timed_strace import StraceLog, mounted


def test_writes_to_rewritten_files_wait_for_no_page(tmp_path: Path) -> None:
    assert not diagnosed(made(written_anew, tmp_path)).worth_changing


def test_sequential_writes_of_few_pages_may_be_unaligned(tmp_path: Path) -> None:
    def build(size: int) -> Build:
        def writes(log: StraceLog) -> None:
            log.open("/data/out", "O_WRONLY|O_CREAT")
            for _ in range(1000):
                log.write(size, 100)

        return writes

    found = {
        size: len(of_rule(diagnosed(made(build(size), tmp_path)), "unaligned-requests"))
        for size in (4096, 5000, 8191, 10240, 65000)
    }
    assert found == {4096: 0, 5000: 0, 8191: 0, 10240: 0, 65000: 0}


def test_small_files_written_sequentially_may_be_unaligned(tmp_path: Path) -> None:
    """The writes are those of tar."""

    def each(log: Trace) -> None:
        log.write(9728, 50)
        for _ in range(12):
            log.write(10240, 50)

    assert not of_rule(diagnosed(spread(tmp_path, each, "O_WRONLY|O_CREAT")), "unaligned-requests")


@pytest.mark.parametrize(("program", "found"), [("/usr/bin/tar", 0), ("/opt/solver", 1)])
def test_unaligned_requests_of_standard_tools_are_not_reported(
    tmp_path: Path, program: str, found: int
) -> None:
    """A program writes a file on a network file system sequentially, in steps of 10 KiB."""
    log = Trace()
    log.start(101, program)
    log.open("/data/large", pid=101, flags="O_WRONLY|O_CREAT|O_TRUNC")
    for number in range(1000):
        log.write(9728 if number == 0 else 10240, 50, pid=101)
    store = mounted(log.imported(tmp_path, 1), "/data", "nfs4")
    assert len(of_rule(diagnosed(store), "unaligned-requests")) == found
