"""Tests the rule `io-not-overlapped`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from diagnosing import diagnosed, of_rule
from made_store import without_checksums
from metadata_log import FIRST, Trace, of_log
from processor_times import with_processor_times

MIB = 1 << 20
HELPER = FIRST + 1
THREAD = "clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD)"


def with_cpu(path: Path, computed_ms: dict[int, int]) -> Path:
    """Sets the computing time of each task in the store."""
    table = path / "processes.parquet"
    rows = pq.read_table(table)
    times = [computed_ms.get(tid, 0) * 1_000_000 for tid in rows.column("tid").to_pylist()]
    column = rows.column_names.index("cpu_user_ns")
    pq.write_table(rows.set_column(column, "cpu_user_ns", pa.array(times, pa.int64())), table)
    without_checksums(table.parent)
    return path


def turns(log: Trace, task: int) -> None:
    """Adds 20 reads of 8 ms by one of two tasks, with 12 ms without calls between them."""
    log.call(THREAD, str(HELPER))
    log.clocks[HELPER] = log.clocks[FIRST]
    log.open("/data/shots", flags="O_RDONLY")
    for _ in range(20):
        log.read(8 * MIB, 8000, pid=task)
        log.pause(12_000, task)


@pytest.mark.parametrize(
    ("task", "computed_ms", "found"),
    [
        pytest.param(FIRST, {FIRST: 220, HELPER: 5}, True, id="one thread does both"),
        pytest.param(FIRST, {FIRST: 220, HELPER: 390}, True, id="it waits while another has its own work"),
        pytest.param(HELPER, {FIRST: 380, HELPER: 5}, False, id="a helper reads meanwhile"),
    ],
)
def test_computation_during_io_counts_as_overlap(
    tmp_path: Path, task: int, computed_ms: dict[int, int], found: bool
) -> None:
    log = Trace()
    turns(log, task)
    store = with_cpu(log.imported(tmp_path, wall_us=1), computed_ms)
    assert bool(of_rule(diagnosed(store), "io-not-overlapped")) == found


def device_turns(size: int, io_us: int, sync_us: int, compute_us: int) -> Callable[[Trace], None]:
    def write(log: Trace) -> None:
        log.open("/data/frames", flags="O_WRONLY|O_CREAT")
        for _ in range(25):
            log.pause(compute_us)
            log.write(size, io_us)
            if sync_us:
                log.call("fsync(3)", "0", sync_us)

    return write


@pytest.mark.parametrize(
    ("write", "found"),
    [
        (device_turns(2 * MIB, 4000, 0, 4000), True),
        (device_turns(8 * MIB, 1000, 9000, 9000), True),
        (device_turns(2 * MIB, 800, 0, 4000), False),
        (device_turns(2 * MIB, 4000, 0, 26_000), False),
    ],
    ids=["slow device", "synced", "hidden by the cache", "seldom"],
)
def test_alternating_phases_that_wait_for_a_device_could_overlap(
    tmp_path: Path, write: Callable[[Trace], None], found: bool
) -> None:
    assert bool(of_rule(of_log(tmp_path, write), "io-not-overlapped")) == found


@pytest.mark.parametrize("sync_us", [1000, 200_000], ids=["turns", "one sync at the end"])
def test_one_long_call_gives_only_a_small_cost(tmp_path: Path, sync_us: int) -> None:
    def write(log: Trace) -> None:
        log.open("/data/restart", flags="O_WRONLY|O_CREAT")
        for _ in range(20):
            log.write(6 * MIB, 6000)
            log.pause(9000)
        log.call("fdatasync(3)", "0", sync_us)

    (found,) = of_rule(of_log(tmp_path, write), "io-not-overlapped")
    assert found.cost_seconds == pytest.approx(0.13, rel=0.2)


@pytest.mark.parametrize(("user_ms", "found"), [(300, True), (100, False)], ids=["half", "hardly"])
def test_phases_of_a_thread_with_half_a_processor_are_judged(
    tmp_path: Path, user_ms: int, found: bool
) -> None:
    log = Trace()
    log.open("/data/frames.bin", flags="O_WRONLY|O_CREAT")
    for _ in range(24):
        log.pause(30_000)
        log.write(5 * MIB, 15_000)
    store = with_processor_times(log.imported(tmp_path, wall_us=1), [user_ms * 1_000_000])
    assert bool(of_rule(diagnosed(store), "io-not-overlapped")) == found


def turns_of(folder: Path, turns: int, size: int, io_us: int, compute_us: int) -> Path:
    log = Trace()
    log.open("/data/frames", flags="O_RDONLY|O_DIRECT")
    for _ in range(turns):
        log.read(size, io_us)
        log.pause(compute_us)
    return log.imported(folder, 1)


def test_many_short_phases_could_overlap(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(turns_of(tmp_path, 200, MIB, 500, 800)), "io-not-overlapped")
    assert found.cost_seconds == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize(
    ("turns", "size", "io_us", "compute_us"),
    [
        (9, MIB, 500, 800),
        (200, MIB // 8, 500, 800),
        (200, MIB, 500, 50),
        (200, MIB, 50, 800),
        (200, MIB, 200, 300),
    ],
    ids=["few", "small", "no computing", "no waiting", "from memory"],
)
def test_other_alternating_phases_give_no_finding(
    tmp_path: Path, turns: int, size: int, io_us: int, compute_us: int
) -> None:
    assert not of_rule(diagnosed(turns_of(tmp_path, turns, size, io_us, compute_us)), "io-not-overlapped")


def test_the_overlap_finding_is_listed_last(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/frames", flags="O_RDONLY|O_DIRECT")
    for _ in range(40):
        log.read(8 * MIB, 10_000)
        log.pause(10_000)
        log.open_missing("/data/ready", 100)
        for number in range(40):
            log.open_missing(f"/data/path/{number}", 50)
    rules = [one.rule for one in diagnosed(log.imported(tmp_path)).worth_changing]
    assert rules == ["failed-open-storm", "io-not-overlapped"]


@pytest.mark.parametrize(("computed_ms", "found"), [({FIRST: 5, HELPER: 5}, 0), (None, 0), ({FIRST: 250}, 1)])
def test_waiting_threads_are_distinguished_from_computing_ones(
    tmp_path: Path, computed_ms: dict[int, int] | None, found: int
) -> None:
    """One of two threads reads and makes no calls between its reads. Its computing time may be unknown."""
    log = Trace()
    turns(log, FIRST)
    store = log.imported(tmp_path, wall_us=1)
    if computed_ms:
        store = with_cpu(store, computed_ms)
    assert len(of_rule(diagnosed(store), "io-not-overlapped")) == found
