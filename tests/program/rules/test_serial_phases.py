"""Tests the rule `serial-phases`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Severity
from log_shapes import NAMED, pieces, stages
from metadata_log import FIRST, Trace
from rank_log import ranks, writes

MIB = 1 << 20


def test_io_of_one_rank_while_others_wait_is_found(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 0 if n else 40, 10_000), tmp_path)
    diagnosis = diagnosed(path)
    (found,) = of_rule(diagnosis, "serial-phases")
    assert found.title.text == "One rank does all the I/O"
    assert found.cost_seconds == pytest.approx(0.4 * 3 / 4)
    assert [one.rule for one in diagnosis.worth_changing] == ["serial-phases"]


def test_a_rank_that_writes_a_file_all_have_open_gives_only_a_note(tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.open("/data/shared.out", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(0 if number else 40):
            log.write(MIB, 10_000, pid=pid)
        log.close(pid=pid)

    (found,) = of_rule(diagnosed(ranks(work, tmp_path)), "serial-phases")
    assert found.severity is Severity.NOTE


@pytest.mark.parametrize("asked, severity", [("/data", Severity.NOTE), ("/dev/shm", Severity.MEDIUM)])
def test_file_system_queries_of_mpi_io_reduce_the_finding_to_a_note(
    tmp_path: Path, asked: str, severity: Severity
) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.call(f'statfs("{asked}", {{f_type=EXT2_SUPER_MAGIC, ...}})', pid=pid)
        log.open("/data/shared.out", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(0 if number else 40):
            log.write(MIB, 10_000, pid=pid)
        log.close(pid=pid)

    (found,) = of_rule(diagnosed(ranks(work, tmp_path)), "serial-phases")
    assert found.severity is severity


@pytest.mark.parametrize(
    ("own", "others_wait", "begin_us"),
    [(10, True, 0), (50, False, 0), (10, True, 5_000_000)],
    ids=["the others wait", "they write meanwhile", "after computing"],
)
def test_a_rank_that_reads_for_all_is_found_only_if_the_others_wait(
    tmp_path: Path, own: int, others_wait: bool, begin_us: int
) -> None:
    log = Trace(clocks={FIRST + number: 0 for number in range(4)})
    for number in range(4):
        pid = FIRST + number
        log.open("/data/settings.nml", 3, pid=pid)
        log.close(pid=pid)
        log.pause(begin_us, pid)
        pieces(log, f"/data/field.{number}", own if number else 10, pid)
        if number == 0:
            pieces(log, "/data/restart.bin", 40, pid, "read")
        else:
            log.clocks[pid] = begin_us + 1_000_000
            log.end(pid)
    found = of_rule(diagnosed(log.imported(tmp_path, ranks=4)), "serial-phases")
    assert bool(found) == others_wait
    for one in found:
        assert one.title.text == "One rank does some of the I/O alone"
        assert one.cost_seconds == pytest.approx(0.4 * 3 / 4, rel=0.05)


def pool(log: Trace, computes_us: int) -> None:
    """Adds a process that reads a file of a megabyte for each task and passes it to one of three workers."""
    for number in range(3):
        fd = 10 + 2 * number
        log.call(f"pipe2([{fd}, {fd + 1}], 0)")
    for number in range(3):
        log.start(FIRST + 1 + number)
    for task in range(30):
        number = task % 3
        worker, fd = FIRST + 1 + number, 10 + 2 * number
        log.open(f"/data/image-{task:02}.raw", 3, flags="O_RDONLY")
        log.read(MIB, 10_000)
        log.close()
        log.write(60_000, 10, fd + 1)
        waited = max(0, log.clocks[FIRST] - log.clocks[worker])
        log.read(60_000, waited, fd, worker)
        log.pause(computes_us, worker)
    for number in range(3):
        log.end(FIRST + 1 + number)


@pytest.mark.parametrize(
    ("computes_us", "waits"), [(2_000, True), (29_000, False)], ids=["workers wait", "workers compute"]
)
def test_a_process_that_reads_for_its_workers_is_found(tmp_path: Path, computes_us: int, waits: bool) -> None:
    log = Trace()
    pool(log, computes_us)
    found = of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "serial-phases")
    assert bool(found) == waits
    for one in found:
        assert one.title.text == "One process does the I/O of its workers"
        assert one.message.values["workers"] == 4
        assert one.cost_seconds == pytest.approx(0.3 * 3 / 4, rel=0.05)


def test_a_process_that_writes_between_its_workers_phases_is_found(tmp_path: Path) -> None:
    log = Trace()
    for step in range(4):
        began, pids = log.clocks[FIRST], [200 + 10 * step + number for number in range(3)]
        for pid in pids:
            log.start(pid)
            log.clocks[pid] = began + 50_000
            log.end(pid)
        log.pause(50_000)
        pieces(log, f"/data/step.{step}", 10, FIRST)
    (found,) = of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "serial-phases")
    assert found.cost_seconds == pytest.approx(0.4 * 3 / 4, rel=0.05)


@pytest.mark.parametrize(
    ("piece", "pipes", "found"),
    [(MIB, NAMED, False), (1, NAMED, True), (MIB, ("", ""), True)],
    ids=["what was read", "a token of who may go on", "one name for all pipes"],
)
def test_stages_of_a_pipeline_do_not_count_as_workers(
    tmp_path: Path, piece: int, pipes: tuple[str, str], found: bool
) -> None:
    log = Trace()
    stages(log, piece, 100, pipes)
    assert bool(of_rule(diagnosed(log.imported(tmp_path)), "serial-phases")) == found
