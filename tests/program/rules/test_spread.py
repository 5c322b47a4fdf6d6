"""Tests one fault distributed over many files: every rule sees the sum, and ignores a few files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from log_shapes import FILES, any_order, at, spread
from metadata_log import Trace


def jumping(log: Trace) -> None:
    for place in any_order(40, 4000):
        at(log, "pread64", 64, place * 4096, 50)


def from_the_end(log: Trace) -> None:
    for place in reversed(range(40)):
        at(log, "pread64", 512, place * 512, 50)


def asking_where(log: Trace) -> None:
    for number in range(40):
        log.call("lseek(3, 0, SEEK_CUR)", str(number * 65536), 50)
        log.read(65536, 10)


def off_the_page(log: Trace) -> None:
    for place in range(40):
        at(log, "pwrite64", 4096, place * 8192 + 512, 50)


def header_first(log: Trace) -> None:
    for number in range(1, 41):
        at(log, "pread64", 4096, 0, 50)
        at(log, "pread64", 512, number * 65536, 10)


def read_back(log: Trace) -> None:
    log.write(262144, 200)
    at(log, "pread64", 262144, 0, 200)


def in_three_writes(log: Trace) -> None:
    for _ in range(3):
        log.write(200, 500)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("rule", "each", "flags", "count"),
    [
        ("random-access", jumping, "O_RDONLY", 40 * FILES),
        ("backward-access", from_the_end, "O_RDONLY", 40 * FILES),
        ("seek-storm", asking_where, "O_RDONLY", 37 * FILES),
        ("unaligned-requests", off_the_page, "O_RDWR", 39 * FILES),
        ("read-after-write", read_back, "O_RDWR|O_CREAT", FILES),
        ("synchronous-flags", in_three_writes, "O_WRONLY|O_CREAT|O_SYNC", 3 * FILES),
        ("redundant-reads", header_first, "O_RDONLY", 39 * FILES),
    ],
)
def test_a_problem_spread_over_many_files_is_found(
    tmp_path: Path, rule: str, each: Callable[[Trace], None], flags: str, count: int
) -> None:
    diagnosis = diagnosed(spread(tmp_path, each, flags))
    assert rule in blamed(diagnosis)
    (found,) = of_rule(diagnosis, rule)
    assert found.file_count == FILES
    assert found.evidence["count"] == pytest.approx(count, rel=0.05)


@pytest.mark.whole
@pytest.mark.parametrize("each", [jumping, from_the_end, asking_where, off_the_page])
def test_a_problem_in_few_of_many_files_is_not_reported(
    tmp_path: Path, each: Callable[[Trace], None]
) -> None:
    found = blamed(diagnosed(spread(tmp_path, each, "O_RDWR", files=4)))
    assert not {"random-access", "backward-access", "seek-storm", "unaligned-requests"} & set(found)
