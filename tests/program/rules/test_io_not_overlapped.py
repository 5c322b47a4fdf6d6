"""`io-not-overlapped`: when it speaks, what it counts and charges, what it leaves alone."""

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


def by_turns(log: Trace, tasks: list[int]) -> None:
    """8 ms of I/O by each of TASKS, of three, and 12 ms in which none of them calls anything."""
    for helper in (HELPER, HELPER + 1):
        log.call(THREAD, str(helper))
    log.open("/data/shots", flags="O_RDONLY")
    for task in tasks:
        log.clocks[FIRST] = log.clocks[HELPER] = log.clocks[HELPER + 1] = max(log.clocks.values())
        log.read(8 * MIB, 8000, pid=task)
        log.pause(12_000, task)


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


@pytest.mark.parametrize(("step", "found"), [(2, 1), (1, 0)], ids=["every second", "all"])
def test_short_turns_wait_for_the_device_where_nobody_reads_ahead(
    tmp_path: Path, step: int, found: int
) -> None:
    def write(log: Trace) -> None:
        log.open("/data/sweeps", flags="O_RDONLY")
        for number in range(100):
            log.call(f'pread64(3, ""..., 262144, {step * number * 262144})', "262144", 200)
            log.pause(250)

    assert len(of_rule(of_log(tmp_path, write), "io-not-overlapped")) == found


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
        (device_turns(2 * MIB, 4000, 0, 16_000), False),
    ],
    ids=["slow device", "synced", "hidden by the cache", "seldom"],
)
def test_turns_that_wait_for_a_device_could_overlap(
    tmp_path: Path, write: Callable[[Trace], None], found: bool
) -> None:
    assert bool(of_rule(of_log(tmp_path, write), "io-not-overlapped")) == found


def loop(waits: bool) -> Callable[[Trace], None]:
    """An event loop has its two helpers read pictures in turn, and computes after each or meanwhile."""

    def write(log: Trace) -> None:
        log.call("epoll_create1(EPOLL_CLOEXEC)", "9")
        for helper in (FIRST + 1, FIRST + 2):
            log.call(THREAD, str(helper))
        log.open("/data/radar", flags="O_RDONLY")
        for number in range(20):
            helper = FIRST + 1 + number % 2
            log.clocks[helper] = log.clocks[FIRST]
            log.call(f'pread64(3, ""..., {6 * MIB}, {number * 6 * MIB})', str(6 * MIB), 6000, helper)
            if waits:
                log.call("epoll_wait(9, [], 16, -1)", "0", 6000)
            log.pause(12000)

    return write


@pytest.mark.parametrize(("waits", "found"), [(True, 1), (False, 0)], ids=["in turn", "meanwhile"])
def test_an_event_loop_that_waits_for_its_helpers_takes_turns_with_them(
    tmp_path: Path, waits: bool, found: int
) -> None:
    assert len(of_rule(of_log(tmp_path, loop(waits)), "io-not-overlapped")) == found


@pytest.mark.parametrize(
    ("sync_us", "found"), [(1000, 1), (200_000, 0)], ids=["turns", "one sync at the end"]
)
def test_one_long_call_makes_no_turns(tmp_path: Path, sync_us: int, found: int) -> None:
    def write(log: Trace) -> None:
        log.open("/data/restart", flags="O_WRONLY|O_CREAT")
        for _ in range(20):
            log.write(6 * MIB, 6000)
            log.pause(9000)
        log.call("fdatasync(3)", "0", sync_us)

    assert len(of_rule(of_log(tmp_path, write), "io-not-overlapped")) == found


@pytest.mark.parametrize(("usual_us", "found"), [(600, True), (300, False)], ids=["turns", "a busy machine"])
def test_turns_are_told_from_a_processor_that_others_had(tmp_path: Path, usual_us: int, found: bool) -> None:
    log = Trace()
    log.open("/data/series.bin", flags="O_WRONLY|O_CREAT")
    for number in range(200):
        log.write(MIB, 600)
        log.pause(20_000 if usual_us == 300 and number % 8 == 0 else usual_us)
    assert bool(of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "io-not-overlapped")) == found


@pytest.mark.parametrize(("user_ms", "found"), [(300, True), (100, False)], ids=["half", "hardly"])
def test_turns_of_one_thread_that_got_half_of_a_processor(tmp_path: Path, user_ms: int, found: bool) -> None:
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


def test_many_short_turns_could_overlap(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(turns_of(tmp_path, 200, MIB, 500, 800)), "io-not-overlapped")
    assert found.cost_seconds == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize(
    ("turns", "size", "io_us", "compute_us"),
    [(17, MIB, 500, 800), (200, MIB // 4, 500, 800), (200, MIB, 500, 100), (200, MIB, 50, 800)],
    ids=["few", "small", "no computing", "no waiting"],
)
def test_other_short_turns_are_left_alone(
    tmp_path: Path, turns: int, size: int, io_us: int, compute_us: int
) -> None:
    assert not of_rule(diagnosed(turns_of(tmp_path, turns, size, io_us, compute_us)), "io-not-overlapped")


def test_what_could_overlap_comes_after_all_others(tmp_path: Path) -> None:
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
