"""Tests the rule `random-access`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from log_shapes import any_order, at, columns, pwrite, spread
from metadata_log import Trace, of_log
from timed_strace import StraceLog


@pytest.mark.parametrize("size", [4096, 700])
def test_random_records_stay_random_with_a_header(tmp_path: Path, size: int) -> None:
    def write(log: Trace) -> None:
        log.open("/data/slots.bin", flags="O_RDWR")
        for number in range(4000):
            pwrite(log, size, 4096 + number * 2741 % 4000 * 4096, 200)
            if number % 3 == 2:
                pwrite(log, 16, 0, 20)

    (found,) = of_rule(of_log(tmp_path, write), "random-access")
    assert found.cost_seconds is not None and found.cost_seconds > 0.5


@pytest.mark.parametrize(
    "name", ["/data/run.db", "/data/index.sqlite", "/home/me/code/.git/objects/pack/p.pack"]
)
def test_databases_may_access_at_random_and_read_again(name: str, tmp_path: Path) -> None:
    log = StraceLog()
    log.open(name)
    place = 1
    for _ in range(3000):
        place = place * 16807 % 2147483647
        log.pread(4096, place % 200 * 4096, 100)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


@pytest.mark.parametrize("verb", ["pread64", "pwrite64"])
def test_reading_columns_of_a_row_major_matrix_is_random_access(tmp_path: Path, verb: str) -> None:
    diagnosis = columns(tmp_path, verb=verb)
    (found,) = of_rule(diagnosis, "random-access")
    assert (found.evidence["count"], found.evidence["jumps"]) == (1200, 1199)
    assert found.cost_seconds == pytest.approx(0.36, rel=0.01)
    assert not of_rule(diagnosis, "small-requests")


@pytest.mark.parametrize(
    "given",
    [
        {"passes": 1},
        {"passes": 8, "stride": 40_000},
        {"size": 65536, "stride": 131072, "step": 0},
    ],
    ids=["one pass", "few passes", "large pieces"],
)
def test_passes_over_cached_pages_are_not_random_access(tmp_path: Path, given: dict[str, int]) -> None:
    assert not of_rule(columns(tmp_path, **given), "random-access")


def test_reading_the_footers_of_many_files_is_not_random_access(tmp_path: Path) -> None:
    log = Trace()
    for number in range(600):
        log.open(f"/data/part-{number:04}.parquet")
        for place in (901_120, *(98_304 * piece + 8192 * (piece * piece % 7) for piece in range(9))):
            log.call(f'pread64(3, ""..., 8192, {place})', "8192", 300)
        log.close()
    assert not of_rule(diagnosed(log.imported(tmp_path)), "random-access")


def buffered_backward(log: Trace) -> None:
    """Adds reads of a whole buffer for each record, going backward, as perl and C++ streams do."""
    for place in reversed(range(1000)):
        at(log, "pread64", 8192, place * 200, 50)


def buffered_lookups(log: Trace) -> None:
    """Adds reads of page-aligned buffers, as C's stdio does. Each page is read again for many of its
    records."""
    for page in any_order(4000, 1000):
        at(log, "pread64", 4096, page * 4096, 50)


@pytest.mark.parametrize(
    ("rule", "each"), [("backward-access", buffered_backward), ("random-access", buffered_lookups)]
)
def test_repeated_reads_into_buffers_are_attributed_to_the_access_order(
    tmp_path: Path, rule: str, each: Callable[[Trace], None]
) -> None:
    diagnosis = diagnosed(spread(tmp_path, each, files=1))
    assert blamed(diagnosis)[:1] == [rule]
    assert not of_rule(diagnosis, "redundant-reads")


def test_records_that_are_changed_in_place_are_accessed_at_random(tmp_path: Path) -> None:
    def each(log: Trace) -> None:
        for place in any_order(2000, 65536):
            at(log, "pread64", 8, place * 8, 50)
            at(log, "pwrite64", 8, place * 8, 5)

    assert "random-access" in blamed(diagnosed(spread(tmp_path, each, "O_RDWR", files=1)))


def test_a_buffer_refill_per_record_is_random_access(tmp_path: Path) -> None:
    """The program reads 128 KiB for each record of 16 KiB, as Fortran's direct access does."""
    log = Trace()
    log.open("/data/library.bin", flags="O_RDONLY")
    for number in range(2000):
        log.call(f'pread64(3, ""..., 131072, {16384 * (number * 617 % 2000)})', "131072", 200)
    diagnosis = diagnosed(log.imported(tmp_path))
    assert [one.rule for one in diagnosis.worth_changing] == ["random-access"]
