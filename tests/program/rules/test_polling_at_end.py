"""Tests the rule `polling-at-end`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from data_faults import made
from diagnosing import blamed, diagnosed, of_rule
from metadata_log import Trace, of_log
from timed_strace import StraceLog


def test_each_open_may_read_the_end_of_file_twice(tmp_path: Path) -> None:
    def build(reads_of_nothing: int) -> Callable[[StraceLog], None]:
        def parts(log: StraceLog) -> None:
            for number in range(1500):
                log.open(f"/data/part{number}")
                log.read(4096, 10)
                for _ in range(reads_of_nothing):
                    log.read(0, 20, asked=4096)
                log.close()

        return parts

    for reads_of_nothing, count in ((2, None), (10, 1500 * 8)):
        (tmp_path / str(reads_of_nothing)).mkdir()
        found = of_rule(
            diagnosed(made(build(reads_of_nothing), tmp_path / str(reads_of_nothing))), "polling-at-end"
        )
        assert [one.evidence["count"] for one in found] == ([] if count is None else [count])


def test_reads_at_the_end_of_a_pipe_are_not_reported(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.call("pipe2([3, 4], 0) = 0", 1)
        for _ in range(3000):
            log.read(0, 50, asked=4096)

    assert of_rule(diagnosed(made(build, tmp_path)), "polling-at-end") == []


@pytest.mark.parametrize(("is_at_end", "first"), [(True, "polling-at-end"), (False, "seek-storm")])
def test_seeks_before_reads_at_the_end_are_part_of_the_finding(
    tmp_path: Path, is_at_end: bool, first: str
) -> None:
    def write(log: Trace) -> None:
        log.open("/data/signals", flags="O_RDONLY")
        for _ in range(3000):
            log.call("lseek(3, 0, SEEK_CUR)", "0", 20)
            log.read(0 if is_at_end else 8, 10)

    assert blamed(of_log(tmp_path, write, 300_000))[0] == first
