"""Tests the rule `rank-imbalance`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Severity
from log_shapes import pieces, threads
from metadata_log import FIRST, Trace
from processor_times import with_processor_times
from rank_log import ranks, writes


def test_the_cost_of_a_rank_is_its_time_beyond_the_mean(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 50 if n == 3 else 10, 10_000), tmp_path)
    diagnosis = diagnosed(path)
    (found,) = of_rule(diagnosis, "rank-imbalance")
    assert found.message.values["worker"] == 3
    assert found.cost_seconds == pytest.approx(0.5 - 0.2)
    assert [one.rule for one in diagnosis.worth_changing] == ["rank-imbalance"]


@pytest.mark.parametrize(
    ("others", "rule"), [(20, "rank-imbalance"), (0, "serial-phases")], ids=["uneven parts", "only a header"]
)
def test_uneven_parts_of_a_shared_file_are_found(others: int, rule: str, tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.open("/data/shared.in", flags="O_RDONLY", pid=pid)
        log.call('pread64(3, ""..., 4096, 0)', "4096", 100, pid)
        for piece in range(940 if number == 2 else others):
            place = 4096 + (number * 1000 + piece) * 65536
            log.call(f'pread64(3, ""..., 65536, {place})', "65536", 500, pid)

    diagnosis = diagnosed(ranks(work, tmp_path))
    both = ("rank-imbalance", "serial-phases")
    assert [name for name in both if of_rule(diagnosis, name)] == [rule]


def test_equal_ranks_give_no_finding(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 20, 10_000 + 1000 * n), tmp_path)
    assert not diagnosed(path).worth_changing


def test_child_processes_count_for_their_worker(tmp_path: Path) -> None:
    log = Trace()
    for number in range(4):
        shell, tool = 200 + number, 300 + number
        log.start(shell)
        log.start(tool, "/usr/bin/tr", shell)
        pieces(log, f"/data/out.{number}", 50 if number == 3 else 10, tool)
        log.end(tool)
        log.clocks[shell] = 600_000
        log.end(shell)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "rank-imbalance")
    assert found.title.text == "Unequal I/O among the processes"
    assert found.message.values["workers"] == 4
    assert found.cost_seconds == pytest.approx(0.5 - 0.2)


@pytest.mark.parametrize(
    ("others_ms", "found"), [(100, True), (500, False)], ids=["others are done", "others compute"]
)
def test_a_thread_with_more_files_than_the_others_is_found(
    tmp_path: Path, others_ms: int, found: bool
) -> None:
    log = Trace()
    pids = threads(log, 4)
    for pid in pids:
        pieces(log, f"/data/part.{pid}", 50 if pid == pids[0] else 10, pid)
        log.clocks[pid] = 600_000
        log.call("exit(0)", "?", 0, pid)
    store = log.imported(tmp_path, wall_us=600_000)
    with_processor_times(store, [0, 10_000_000, *[others_ms * 1_000_000] * 3])
    diagnosis = diagnosed(store)
    assert bool(of_rule(diagnosis, "rank-imbalance")) == found
    for one in of_rule(diagnosis, "rank-imbalance"):
        assert one.title.text == "Unequal I/O among the threads"
        assert one.cost_seconds == pytest.approx(0.5 - 0.2)


def test_more_bytes_without_more_time_give_a_note(tmp_path: Path) -> None:
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
    (found,) = of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "rank-imbalance")
    assert found.severity is Severity.NOTE
