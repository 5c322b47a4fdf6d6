"""Tests how much of a program's work around its I/O a finding promises to save."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Finding, Severity
from metadata_log import Trace

MIB = 1 << 20


def saved(log: Trace, folder: Path, rule: str) -> tuple[float, float]:
    """Returns the seconds that the only finding of RULE saves: lower and upper bound."""
    (found,) = of_rule(diagnosed(log.imported(folder, 1)), rule)
    assert found.gain is not None
    return found.gain.low_seconds, found.gain.high_seconds


def read_again(name: str, piece: int, pause_us: int, took_us: int = 2, write_share: float = 0.0) -> Trace:
    """Returns a log that reads a file of 2 MiB 40 times, with a pause after each piece."""
    log = Trace()
    log.open(name)
    for _ in range(40):
        log.call("lseek(3, 0, SEEK_SET)")
        for _ in range(2 * MIB // piece):
            log.read(piece, took_us)
            log.pause(pause_us)
        if write_share:
            log.call("lseek(3, 0, SEEK_SET)")
            for _ in range(round(write_share * 2 * MIB / piece)):
                log.write(piece, 2)
    log.close()
    return log


@pytest.mark.parametrize(("name", "piece"), [("/data/table.bin", 8192), ("/data/words.txt", 65536)])
def test_gain_of_repeated_reads_excludes_the_computation_between_them(
    name: str, piece: int, tmp_path: Path
) -> None:
    log = read_again(name, piece, 2000, 100)
    _, most = saved(log, tmp_path, "redundant-reads")
    text = 39 * 2 * MIB * 5e-9 if name.endswith(".txt") else 0.0
    assert most <= 40 * 2 * MIB // piece * 101.5e-6 + text


def test_preparing_rewritten_data_is_part_of_the_cost(tmp_path: Path) -> None:
    log = read_again("/data/modes.h5", 65536, 500, write_share=1.0)
    for one in diagnosed(log.imported(tmp_path, 1)).findings:
        assert one.gain is None or one.gain.high_seconds < 0.05, one.rule


def test_sorting_names_of_each_listing_is_part_of_the_cost(tmp_path: Path) -> None:
    log = Trace()
    for _ in range(500):
        log.open("/data/frames", flags="O_RDONLY|O_DIRECTORY")
        log.call("getdents64(3, 0x55 /* 1000 entries */, 65536)", "40000", 20)
        log.call("getdents64(3, 0x55 /* 0 entries */, 65536)", "0", 1)
        log.close()
        log.pause(300)
    low, high = saved(log, tmp_path, "directory-scan-storm")
    assert low >= 0.07 and 0.14 <= high <= 0.17


def test_formatting_log_lines_in_a_computation_is_part_of_the_cost(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/evolution.log", flags="O_WRONLY|O_CREAT")
    for _ in range(20_000):
        log.write(30, 1)
        log.pause(60)
    low, high = saved(log, tmp_path, "write-in-compute-loop")
    assert low >= 0.012 and 0.021 < high <= 20_000 * 1e-6 * (1 + 0.75) + 1e-9


def reopened(log: Trace, count: int) -> None:
    """Adds a library that opens a file for each step, reads its index and writes it back."""
    for _ in range(count):
        log.open("/data/modes.h5", took_us=7)
        log.pause(100)
        for _ in range(4):
            log.read(8192, 2)
            log.pause(100)
        log.call("lseek(3, 0, SEEK_SET)")
        for _ in range(3):
            log.write(8192, 4)
            log.pause(100)
        log.close(4)


def test_a_cause_that_saves_less_hides_no_finding(tmp_path: Path) -> None:
    log = Trace()
    reopened(log, 500)
    found = diagnosed(log.imported(tmp_path, 1)).findings
    first: Finding = found[0]
    assert (first.rule, first.severity) == ("open-close-loop", Severity.HIGH)
