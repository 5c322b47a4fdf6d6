"""Tests the rule `pipe-bound`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Severity
from log_shapes import stages
from made_store import without_checksums
from metadata_log import FIRST, Trace, of_log
from processor_times import with_processor_times

MIB = 1 << 20


@pytest.mark.parametrize(("inside", "found"), [(True, 1), (False, 0)], ids=["of the run", "to others"])
def test_sockets_between_processes_count_as_pipes(tmp_path: Path, inside: bool, found: int) -> None:
    def write(log: Trace) -> None:
        log.call("socketpair(AF_UNIX, SOCK_STREAM, 0, [3, 4])")
        log.start(FIRST + 1)
        for _ in range(2000):
            log.call('sendto(3, ""..., 20, 0, NULL, 0)', "20", 20)
            log.call('recvfrom(4, ""..., 65536, 0, NULL, NULL)', "20" if inside else "200", 100, FIRST + 1)
        log.end(FIRST + 1)

    assert len(of_rule(of_log(tmp_path, write), "pipe-bound")) == found


@pytest.mark.parametrize("channel", ["pipe", "socket"])
@pytest.mark.parametrize(
    ("ranks", "found"),
    [([None, None], 1), ([0, 1], 1), ([None, 0], 0)],
    ids=["no ranks", "two ranks", "launcher and rank"],
)
def test_messages_between_a_launcher_and_a_rank_do_not_count(
    tmp_path: Path, ranks: list[int | None], found: int, channel: str
) -> None:
    log = Trace()
    log.call("pipe2([3, 4], 0)" if channel == "pipe" else "socketpair(AF_UNIX, SOCK_STREAM, 0, [3, 4])")
    log.start(FIRST + 1)
    for _ in range(2000):
        log.call('write(4, ""..., 20)', "20", 20)
        log.call('read(3, ""..., 65536)', "20", 100, FIRST + 1)
    log.end(FIRST + 1)
    store = log.imported(tmp_path)
    path = store / "processes.parquet"
    table = pq.read_table(path)
    column = table.schema.get_field_index("rank")
    table = table.set_column(column, table.schema.field("rank"), pa.array(ranks, table.schema.types[column]))
    pq.write_table(table, path)
    without_checksums(store)
    assert len(of_rule(diagnosed(store), "pipe-bound")) == found


def pieces_without_waiting(log: Trace, write_us: int) -> None:
    """Adds a second of computing, then 1,000 pieces that are read as soon as they are written."""
    log.call("pipe2([3, 4], 0)")
    log.start(300)
    log.clocks[300] = log.clocks[FIRST]
    for _ in range(1000):
        log.write(100, write_us, fd=4)
        log.clocks[300] = max(log.clocks[300], log.clocks[FIRST])
        log.read(100, 10, fd=3, pid=300)
    log.end(300)


@pytest.mark.parametrize(("write_us", "seconds", "is_note"), [(20, 0.02, False), (2, 0.002, True)])
def test_small_pipe_writes_cost_even_without_long_waits(
    write_us: int, seconds: float, is_note: bool, tmp_path: Path
) -> None:
    log = Trace()
    pieces_without_waiting(log, write_us)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "pipe-bound")
    assert found.cost_seconds == pytest.approx(seconds, rel=0.01)
    assert (found.severity is Severity.NOTE) == is_note


def conversation(log: Trace, size: int) -> None:
    log.call("pipe2([3, 4], 0)")
    log.call("pipe2([5, 6], 0)")
    log.start(300)
    log.clocks[300] = log.clocks[FIRST]
    for _ in range(1000):
        log.write(size, 10, fd=4)
        log.read(size, 390, fd=5)
        log.read(size, 300, fd=3, pid=300)
        log.write(size, 100, fd=6, pid=300)
    log.end(300)


def test_small_pipe_writes_cost_the_waiting_time(tmp_path: Path) -> None:
    log = Trace()
    conversation(log, 50)
    diagnosis = diagnosed(log.imported(tmp_path))
    (found,) = of_rule(diagnosis, "pipe-bound")
    assert found.evidence["count"] == 4000
    assert found.cost_seconds == pytest.approx(0.4, rel=0.01)
    assert diagnosis.worth_changing[0].rule == "pipe-bound"


def test_large_pipe_writes_give_no_finding(tmp_path: Path) -> None:
    log = Trace()
    conversation(log, 65536)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def cpu_of_all(path: Path, nanoseconds: int) -> Path:
    table = path / "processes.parquet"
    rows = pq.read_table(table)
    times = pa.array([nanoseconds] * rows.num_rows, pa.int64())
    pq.write_table(rows.set_column(rows.column_names.index("cpu_user_ns"), "cpu_user_ns", times), table)
    without_checksums(table.parent)
    return path


@pytest.mark.parametrize(("cpu_ns", "found"), [(1_000_000, True), (300_000_000, False)])
def test_large_pipe_writes_without_computation_are_reported(cpu_ns: int, found: bool, tmp_path: Path) -> None:
    log = Trace()
    conversation(log, 65536)
    diagnosis = diagnosed(cpu_of_all(log.imported(tmp_path), cpu_ns))
    assert [one.rule for one in diagnosis.worth_changing] == (["pipe-bound"] if found else [])


def test_a_pipe_to_a_process_outside_the_run_is_not_judged(tmp_path: Path) -> None:
    log = Trace()
    for _ in range(2000):
        log.call('write(1<pipe:[77]>, ""..., 50)', "50", 100)
    assert not of_rule(diagnosed(log.imported(tmp_path)), "pipe-bound")


@pytest.mark.parametrize(("write_us", "found"), [(2000, True), (500, False)])
def test_pass_through_programs_are_reported_with_a_slow_file(
    tmp_path: Path, write_us: int, found: bool
) -> None:
    log = Trace()
    stages(log, MIB, write_us)
    store = with_processor_times(log.imported(tmp_path, wall_us=1), [1_000_000] * 4)
    findings = of_rule(diagnosed(store), "pipe-bound")
    assert bool(findings) == found
    for one in findings:
        assert one.message.values["waiting_share"] < 0.3
        assert one.cost_seconds == pytest.approx(0.2, rel=0.05)


def piped(folder: Path, written: int, asked: int) -> Path:
    """Imports a run with a pipe between two processes. Each read returns half of a write."""
    log = Trace()
    log.call("pipe2([3, 4], 0)", took_us=1)
    log.start(FIRST + 1)
    for _ in range(1000):
        log.write(written, 300, fd=4)
        for _ in range(2):
            log.call(f'read(3, ""..., {asked})', str(written // 2), 200, FIRST + 1)
    log.end(FIRST + 1)
    return log.imported(folder)


@pytest.mark.parametrize(("written", "asked", "found"), [(4096, 4096, 0), (40, 4096, 1)])
def test_short_reads_of_a_pipe_are_reported_only_if_its_writer_wrote_little(
    tmp_path: Path, written: int, asked: int, found: int
) -> None:
    assert len(of_rule(diagnosed(piped(tmp_path, written, asked)), "pipe-bound")) == found
