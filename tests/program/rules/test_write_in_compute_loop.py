"""Tests the rule `write-in-compute-loop`: when it gives a finding, its count and cost, and when it gives
none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from metadata_log import Trace, of_log


@pytest.mark.parametrize(
    ("name", "rule"), [("fit.trace", "write-in-compute-loop"), ("fit.dat", "small-requests")]
)
def test_log_lines_between_short_computations_are_found(tmp_path: Path, name: str, rule: str) -> None:
    def write(log: Trace) -> None:
        log.open(f"/data/{name}", flags="O_WRONLY|O_CREAT")
        for _ in range(5000):
            log.write(30, 1)
            log.pause(1)

    assert blamed(of_log(tmp_path, write)) == [rule]


def test_one_slow_line_does_not_raise_the_cost_of_all_lines(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/debug.txt", flags="O_WRONLY|O_CREAT")
    for number in range(900):
        log.pause(1000)
        log.write(50, 100_000 if number == 500 else 100)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "write-in-compute-loop")
    assert found.cost_seconds == pytest.approx(0.09, rel=0.02)


def lines_into(folder: Path, name: str, compute_us: int) -> Path:
    log = Trace()
    log.open(name, flags="O_WRONLY|O_CREAT")
    for _ in range(2000):
        log.pause(compute_us)
        log.write(66, 4)
    return log.imported(folder, 1)


@pytest.mark.parametrize(
    ("name", "compute_us", "rule"),
    [
        ("/data/debug.out", 12, "write-in-compute-loop"),
        ("/data/solver.dbg", 12, "write-in-compute-loop"),
        ("/data/debug/table.dat", 2, "small-requests"),
        ("/data/table.dat", 2, "small-requests"),
        ("/data/debug.out", 1, "write-in-compute-loop"),  # The name marks it as debug output.
        # The name marks it as a log, so no time between writes is too short.
        ("/data/solver.log", 1, "write-in-compute-loop"),
        ("/data/solver.log", 4, "write-in-compute-loop"),
        ("/data/solver.log", 2, "write-in-compute-loop"),  # A third of the run is computing.
        ("/data/log/table.dat", 2, "small-requests"),
        ("/data/catalog.dat", 2, "small-requests"),
        # The program reads nothing, so it must compute what it writes.
        ("/data/table.dat", 12, "write-in-compute-loop"),
    ],
)
def test_file_names_distinguish_debug_output_from_small_writes(
    tmp_path: Path, name: str, compute_us: int, rule: str
) -> None:
    found = diagnosed(lines_into(tmp_path, name, compute_us)).worth_changing
    assert [one.rule for one in found] == [rule]


def test_debug_output_in_one_of_several_phases_is_found(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/in.dat", flags="O_RDONLY")
    for _ in range(300):
        log.read(65536, 1000)
    log.open("/data/model.log", fd=4, flags="O_WRONLY|O_CREAT")
    for _ in range(4000):
        log.pause(40)
        log.write(80, 10, fd=4)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "write-in-compute-loop")
    assert found.evidence["count"] == 4000
