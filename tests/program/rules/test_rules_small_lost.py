"""Small files written in vain, uneven shares of text, and turns on a machine that others use, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodock.program.findings import Severity
from metadata_log import FIRST, Trace, diagnosed, of_rule
from processor_times import with_processor_times

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "took_us", "found"),
    [(3000, 300, True), (3000, 3, False), (12, 300, False)],
    ids=["costly", "cheap", "marks of a few bytes"],
)
def test_small_files_that_nobody_reads(tmp_path: Path, size: int, took_us: int, found: bool) -> None:
    log = Trace()
    for number in range(200):
        log.open(f"/data/tmp/iteration{number}.txt", flags="O_WRONLY|O_CREAT", took_us=took_us)
        log.write(size, took_us)
        log.close()
        log.call(f'unlink("/data/tmp/iteration{number}.txt")', "0", took_us)
    findings = of_rule(diagnosed(log.imported(tmp_path)), "unused-output")
    assert [one.severity for one in findings] == ([Severity.LOW] if found else [])


@pytest.mark.parametrize(
    ("most", "work_us", "found"),
    [(30, 10_000, True), (12, 10_000, False), (30, 100_000, False)],
    ids=["three times as much", "hardly more", "another work"],
)
def test_one_of_a_pool_takes_apart_far_more(tmp_path: Path, most: int, work_us: int, found: bool) -> None:
    log = Trace()
    for number in range(4):
        pid = FIRST + 1 + number
        log.start(pid)
        for piece in range(most if number == 0 else 10):
            log.open(f"/data/log-{number}-{piece}.txt", pid=pid)
            log.read(131072, 20, pid=pid)
            log.pause(work_us, pid)
            log.close(pid=pid)
        log.end(pid)
    findings = of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "rank-imbalance")
    assert bool(findings) == found
    for one in findings:
        assert one.cost_seconds == pytest.approx(0.2, rel=0.05)
        assert one.message.values["excess_s"] == one.cost_seconds
        assert "after all others" in one.message.text


def test_one_of_a_pool_that_reads_more_and_writes_a_summary_late(tmp_path: Path) -> None:
    log = Trace()
    for number in range(4):
        pid = FIRST + 1 + number
        log.start(pid)
        log.open(f"/data/part-{number}.bin", pid=pid)
        for _ in range(180 if number == 0 else 60):
            log.read(131072, 20, pid=pid)
        log.close(pid=pid)
        log.pause(3_000_000, pid)
        if number == 0:
            log.open("/data/summary.txt", flags="O_WRONLY|O_CREAT", pid=pid)
            log.write(800, 20, pid=pid)
        log.end(pid)
    assert not of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "rank-imbalance")


@pytest.mark.parametrize(("user_ms", "found"), [(300, True), (100, False)], ids=["half", "hardly"])
def test_turns_of_one_thread_that_got_half_of_a_processor(tmp_path: Path, user_ms: int, found: bool) -> None:
    log = Trace()
    log.open("/data/frames.bin", flags="O_WRONLY|O_CREAT")
    for _ in range(24):
        log.pause(30_000)
        log.write(5 * MIB, 15_000)
    store = with_processor_times(log.imported(tmp_path, wall_us=1), [user_ms * 1_000_000])
    assert bool(of_rule(diagnosed(store), "io-not-overlapped")) == found
