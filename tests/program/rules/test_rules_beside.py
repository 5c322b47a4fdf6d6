"""What goes on beside a program's own calls: another thread computes, another process holds a lock."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iodock.program.store import Store
from made_store import without_checksums
from metadata_log import FIRST, Trace, diagnosed, of_rule

MIB = 1 << 20
HELPER = FIRST + 1
THREAD = "clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD)"


def with_cpu(path: Path, computed_ms: dict[int, int]) -> Path:
    """The store, in which each task has computed so long."""
    table = path / "processes.parquet"
    rows = pq.read_table(table)
    times = [computed_ms.get(tid, 0) * 1_000_000 for tid in rows.column("tid").to_pylist()]
    column = rows.column_names.index("cpu_user_ns")
    pq.write_table(rows.set_column(column, "cpu_user_ns", pa.array(times, pa.int64())), table)
    without_checksums(table.parent)
    return path


def turns(log: Trace, task: int) -> None:
    """20 times 8 ms of I/O by one of two tasks, and 12 ms between them in which it calls nothing."""
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
        pytest.param(HELPER, {FIRST: 220, HELPER: 5}, True, id="a helper reads, and is waited for"),
        pytest.param(HELPER, {FIRST: 380, HELPER: 5}, False, id="a helper reads meanwhile"),
    ],
)
def test_computing_that_goes_on_during_the_io_overlaps_it(
    tmp_path: Path, task: int, computed_ms: dict[int, int], found: bool
) -> None:
    log = Trace()
    turns(log, task)
    store = with_cpu(log.imported(tmp_path, wall_us=1), computed_ms)
    assert bool(of_rule(diagnosed(store), "io-not-overlapped")) == found


@pytest.mark.parametrize(
    ("computed_ms", "meet", "found"),
    [
        pytest.param({FIRST: 120, HELPER: 110}, False, True, id="in turn"),
        pytest.param({FIRST: 190, HELPER: 180}, False, False, id="computing goes on meanwhile"),
        pytest.param({FIRST: 50, HELPER: 40}, False, False, id="on a busy machine nobody knows"),
        pytest.param({FIRST: 5, HELPER: 5, HELPER + 1: 220}, False, False, id="they compute nothing"),
        pytest.param({FIRST: 120, HELPER: 110}, True, False, id="two that read at the same time"),
    ],
)
def test_a_task_that_wanders_between_threads_takes_turns_as_any_other(
    tmp_path: Path, computed_ms: dict[int, int], meet: bool, found: bool
) -> None:
    log = Trace()
    for helper in (HELPER, HELPER + 1):
        log.call(THREAD, str(helper))
    log.open("/data/shots", flags="O_RDONLY")
    for number in range(20):
        log.clocks[HELPER] = log.clocks[HELPER + 1] = log.clocks[FIRST]
        for task in (FIRST, HELPER) if meet else (FIRST + number % 2,):
            log.read(8 * MIB, 8000, pid=task)
        log.clocks[FIRST] = max(log.clocks.values())
        log.pause(12_000)
    log.call("fstat(3, {st_mode=S_IFREG|0644, st_size=9, ...})", pid=HELPER + 1)
    store = with_cpu(log.imported(tmp_path, wall_us=1), computed_ms)
    assert bool(of_rule(diagnosed(store), "io-not-overlapped")) == found


@pytest.mark.parametrize("wanders", [False, True], ids=["a helper reads", "a task that wanders"])
def test_what_was_computed_before_the_io_did_not_overlap_it(tmp_path: Path, wanders: bool) -> None:
    log = Trace()
    log.call('stat("/data", {st_mode=S_IFDIR|0755, st_size=60, ...})')
    log.pause(300_000)
    if wanders:
        by_turns(log, [HELPER if number % 2 else FIRST for number in range(20)])
        computed_ms = {FIRST: 420, HELPER: 110}
    else:
        turns(log, HELPER)
        computed_ms = {FIRST: 520, HELPER: 5}
    store = with_cpu(log.imported(tmp_path, wall_us=1), computed_ms)
    assert of_rule(diagnosed(store), "io-not-overlapped")


def test_who_read_once_and_computes_does_not_wander(tmp_path: Path) -> None:
    log = Trace()
    by_turns(log, [FIRST, *[HELPER + number % 2 for number in range(19)]])
    store = with_cpu(log.imported(tmp_path, wall_us=1), {FIRST: 230})
    assert not of_rule(diagnosed(store), "io-not-overlapped")


def by_turns(log: Trace, tasks: list[int]) -> None:
    """8 ms of I/O by each of TASKS, of three, and 12 ms in which none of them calls anything."""
    for helper in (HELPER, HELPER + 1):
        log.call(THREAD, str(helper))
    log.open("/data/shots", flags="O_RDONLY")
    for task in tasks:
        log.clocks[FIRST] = log.clocks[HELPER] = log.clocks[HELPER + 1] = max(log.clocks.values())
        log.read(8 * MIB, 8000, pid=task)
        log.pause(12_000, task)


@pytest.mark.parametrize(
    ("waits_us", "pause_us", "found"),
    [
        pytest.param(200, 5, True, id="some locks are waited for"),
        pytest.param(200, 300, False, id="seldom, for what is computed between them"),
        pytest.param(2, 0, False, id="all are free"),
    ],
)
def test_locks_of_which_most_are_free_contend_where_the_others_are_waited_for(
    tmp_path: Path, waits_us: int, pause_us: int, found: bool
) -> None:
    log = Trace()
    workers = (201, 202, 203)
    for pid in workers:
        log.start(pid)
    for pid in workers:
        log.open("/data/index", flags="O_RDWR|O_CREAT", pid=pid)
        for number in range(1000):
            log.call("flock(3, LOCK_EX)", took_us=waits_us if number % 10 == 5 else 2, pid=pid)
            log.write(48, 3, pid=pid)
            log.call("flock(3, LOCK_UN)", took_us=1, pid=pid)
            log.pause(pause_us, pid)
        log.end(pid)
    of_locks = of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "shared-file-contention")
    assert bool(of_locks) == found
    if found:
        assert of_locks[0].evidence["count"] == 6000 and of_locks[0].files == ("/data/index",)


@pytest.mark.parametrize("ask_us", [0, 1])
def test_quick_locks_are_not_waited_for(tmp_path: Path, ask_us: int) -> None:
    """Beside locks of other places, or of the same while nobody else runs, the flags are asked."""
    log = Trace()
    for pid in (201, 202, 203):
        log.start(pid)
    for pid in (201, 202, 203):
        log.open("/data/index", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(1000):
            log.call("fcntl(3, F_GETFL)", "0x8002", ask_us, pid)
            for kind in ("F_WRLCK", "F_UNLCK"):
                lock = f"{{l_type={kind}, l_whence=SEEK_SET, l_start={pid * 100}, l_len=1}}"
                log.call(f"fcntl(3, F_SETLK, {lock})", "0", 9 * ask_us, pid)
            log.write(48, 2, pid=pid)
        log.end(pid)
    assert not of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "shared-file-contention")


def test_the_query_of_attributes_that_are_not_there_runs(tmp_path: Path) -> None:
    log = Trace()
    for number in range(1500):
        call = f'lgetxattr("/data/x{number}", "user.sum", 0x7f, 255)'
        log.call(call, "-1 ENODATA (No data available)", 200)
    path = log.imported(tmp_path)
    (found,) = of_rule(diagnosed(path), "failed-xattr")
    with Store.open(path) as opened:
        (row,) = opened.engine.user_query(found.query).to_pylist()
    assert (row["call"], row["errno"], row["count"]) == ("lgetxattr", "ENODATA", 1500)
