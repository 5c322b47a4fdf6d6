"""What is charged: estimates of rules where the cost is not simply the time inside the calls at fault."""

from __future__ import annotations

from pathlib import Path

import pytest

import metadata_log
from data_faults import MIB, made
from iodock.program.findings import Severity
from metadata_log import FIRST, Trace
from timed_strace import StraceLog, diagnosed, of_rule


def test_small_requests_cost_their_calls_however_fast_memory_is(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.open("/data/history")
        for number in range(20_000, 0, -1):
            log.pread(16384, number * 16384, 1)

    (found,) = of_rule(diagnosed(made(build, tmp_path)), "backward-access")
    # 16 GB/s; 0.1 us of each call are the call, and 313 large ones would remain.
    assert found.cost_seconds == pytest.approx(20_000 * 0.1e-6 - 313e-6, rel=0.01)
    assert found.severity is Severity.NOTE


def test_seeks_that_lead_back_go_with_backward_access(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.open("/data/history")
        for number in range(500, 0, -1):
            log.seek(number * 4096, 20)
            log.read(4096, 200)

    (found,) = of_rule(diagnosed(made(build, tmp_path)), "backward-access")
    assert found.cost_seconds == pytest.approx(0.1 - 0.0004 - 0.00041 + 0.01, rel=0.005)


def handed_over(log: StraceLog, readings: int) -> None:
    """A state that is written 30 times, and read back after the first so many."""
    log.open("/data/state", "O_RDWR|O_CREAT")
    for number in range(30):
        log.pwrite(MIB, 0, 5000)
        if number < readings:
            log.pread(MIB, 0, 1000)


def test_what_is_rewritten_for_each_reading_would_not_be_in_memory(tmp_path: Path) -> None:
    diagnosis = diagnosed(made(lambda log: handed_over(log, 30), tmp_path))
    (found,) = diagnosis.worth_changing
    assert (found.rule, found.evidence["rewrites"]) == ("read-after-write", 29)
    assert found.cost_seconds == pytest.approx(30 * 0.001 + 29 * 0.005, rel=0.01)


def test_a_state_that_is_read_back_once_is_written_too_often(tmp_path: Path) -> None:
    diagnosis = diagnosed(made(lambda log: handed_over(log, 1), tmp_path))
    assert diagnosis.worth_changing[0].rule == "redundant-writes"
    (found,) = of_rule(diagnosis, "read-after-write")
    assert found.cost_seconds == pytest.approx(0.001 + 0.005, rel=0.01)


def pieces_without_waiting(log: Trace, write_us: int) -> None:
    """A second of computing; then 1,000 pieces that are read as soon as they are written."""
    log.call("pipe2([3, 4], 0)")
    log.start(300)
    log.clocks[300] = log.clocks[FIRST]
    for _ in range(1000):
        log.write(100, write_us, fd=4)
        log.clocks[300] = max(log.clocks[300], log.clocks[FIRST])
        log.read(100, 10, fd=3, pid=300)
    log.end(300)


@pytest.mark.parametrize(("write_us", "seconds"), [(20, 0.02), (2, None)])
def test_writing_small_pieces_costs_also_where_nobody_waits_long(
    write_us: int, seconds: float | None, tmp_path: Path
) -> None:
    log = Trace()
    pieces_without_waiting(log, write_us)
    found = of_rule(metadata_log.diagnosed(log.imported(tmp_path)), "pipe-bound")
    assert [one.cost_seconds for one in found] == (
        [] if seconds is None else [pytest.approx(seconds, rel=0.01)]
    )


def test_one_line_that_waited_does_not_make_all_lines_dear(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/debug.txt", flags="O_WRONLY|O_CREAT")
    for number in range(900):
        log.pause(1000)
        log.write(50, 100_000 if number == 500 else 100)
    (found,) = of_rule(metadata_log.diagnosed(log.imported(tmp_path)), "write-in-compute-loop")
    assert found.cost_seconds == pytest.approx(0.09, rel=0.02)


def test_lines_of_a_program_that_computes_are_told_once(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/progress.txt", fd=5, flags="O_WRONLY|O_CREAT")
    log.call("dup2(5, 1)", "1")
    for _ in range(2000):
        log.pause(400)
        log.write(50, 50, fd=1)
    diagnosis = metadata_log.diagnosed(log.imported(tmp_path))
    assert [one.rule for one in diagnosis.worth_changing] == ["stdout-unbuffered"]
    assert of_rule(diagnosis, "write-in-compute-loop") == []


def test_copies_are_found_beside_many_larger_files_that_are_only_read(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        for number in range(450):
            log.open(f"/data/large{number}")
            log.read(4 << 20, 1)
            log.close()
        log.open("/data/slice")
        log.open("/data/copy", "O_WRONLY|O_CREAT", fd=4)
        for _ in range(200):
            log.read(8192, 100)
            log.write(8192, 100, fd=4)

    (found,) = of_rule(diagnosed(made(build, tmp_path)), "copy-through-user-space")
    assert found.files == ("/data/copy",)


def test_copies_are_found_beside_a_source_that_is_read_again(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        for number in range(3):
            log.open(f"/data/slice{number}")
            log.open(f"/data/copy{number}", "O_WRONLY|O_CREAT", fd=4)
            for _ in range(200):
                log.read(8192, 100)
                log.write(8192, 100, fd=4)
            log.close()
            log.close(fd=4)
        log.open("/data/slice0")
        for _ in range(200):
            log.read(8192, 100)

    (found,) = of_rule(diagnosed(made(build, tmp_path)), "copy-through-user-space")
    assert sorted(found.files) == ["/data/copy1", "/data/copy2"]
