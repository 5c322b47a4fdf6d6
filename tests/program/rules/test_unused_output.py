"""Tests the rule `unused-output`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Severity
from metadata_log import Trace, of_log


@pytest.mark.parametrize(
    ("size", "took_us", "found"),
    [(3000, 300, True), (3000, 3, False), (12, 300, False)],
    ids=["costly", "cheap", "marks of a few bytes"],
)
def test_small_files_that_are_never_read_are_found(
    tmp_path: Path, size: int, took_us: int, found: bool
) -> None:
    log = Trace()
    for number in range(200):
        log.open(f"/data/tmp/iteration{number}.txt", flags="O_WRONLY|O_CREAT", took_us=took_us)
        log.write(size, took_us)
        log.close()
        log.call(f'unlink("/data/tmp/iteration{number}.txt")', "0", took_us)
    findings = of_rule(diagnosed(log.imported(tmp_path)), "unused-output")
    assert [one.severity for one in findings] == ([Severity.LOW] if found else [])


@pytest.mark.parametrize(
    ("emptied", "again", "found"),
    [(True, False, 1), (False, False, 0), (True, True, 0)],
    ids=["emptied", "kept", "written again"],
)
def test_output_that_is_truncated_unread_is_unused(
    tmp_path: Path, emptied: bool, again: bool, found: int
) -> None:
    def write(log: Trace) -> None:
        log.open("/data/restart", flags="O_WRONLY|O_CREAT|O_TRUNC")
        for _ in range(64):
            log.write(65536, 200)
        if emptied:
            log.call("ftruncate(3, 0)", "0", 10)
            log.call("lseek(3, 0, SEEK_SET)", "0", 1)
        if again:
            log.write(65536, 200)

    assert len(of_rule(of_log(tmp_path, write), "unused-output")) == found


def scratch(folder: Path, flags: str, name: str, unlinks_first: bool) -> Path:
    log = Trace()
    log.open(name, flags=flags)
    if unlinks_first:
        log.call('unlink("/data/x1")', took_us=10)
    for _ in range(100):
        log.write(65536, 1000)
    log.close()
    return log.imported(folder)


@pytest.mark.parametrize(
    ("flags", "name", "unlinks_first"),
    [("O_RDWR|O_CREAT|O_EXCL", "/data/x1", True), ("O_RDWR|O_EXCL|O_TMPFILE", "/data", False)],
    ids=["mkstemp", "tmpfile"],
)
def test_output_into_a_file_without_a_name_is_unused(
    tmp_path: Path, flags: str, name: str, unlinks_first: bool
) -> None:
    (found,) = of_rule(diagnosed(scratch(tmp_path, flags, name, unlinks_first)), "unused-output")
    assert found.evidence["written_bytes"] == 100 * 65536
    assert found.cost_seconds == pytest.approx(0.1, rel=0.01)


def test_output_that_replaces_a_deleted_file_stays(tmp_path: Path) -> None:
    log = Trace()
    log.call('unlink("/data/x1")', took_us=10)
    log.open("/data/x1", flags="O_RDWR|O_CREAT")
    for _ in range(100):
        log.write(65536, 1000)
    assert not of_rule(diagnosed(log.imported(tmp_path)), "unused-output")
