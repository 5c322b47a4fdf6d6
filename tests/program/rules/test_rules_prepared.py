"""Runs in which one process or thread takes apart what it reads before others compute, or puts together what
it writes when they have ended: little of that time lies inside calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from metadata_log import FIRST, Trace, diagnosed, of_rule
from processor_times import THREAD, with_processor_times

PIECE = 65536
WORKERS = range(FIRST + 1, FIRST + 4)


def taken_apart(log: Trace, work_us: int, pid: int = FIRST, call_us: int = 20, verb: str = "read") -> None:
    """Four files of 640 KiB, each piece worked on after it is read, or before it is written."""
    for number in range(4):
        log.open(f"/data/stations-{number}.csv", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(10):
            if verb == "write":
                log.pause(work_us, pid)
            (log.write if verb == "write" else log.read)(PIECE, call_us, 3, pid)
            if verb == "read":
                log.pause(work_us, pid)
        log.close(pid=pid)


def computed(log: Trace, us: int = 300_000, at_once: bool = True) -> None:
    """Three forked workers."""
    for pid in WORKERS:
        log.start(pid)
        log.clocks[pid] += us
        log.end(pid)
        if not at_once:
            log.pause(us)
    if at_once:
        log.pause(us)


def found_in(log: Trace, folder: Path, cpu_ms: list[int]) -> list[float | None]:
    store = log.imported(folder, wall_us=1)
    with_processor_times(store, [ms * 1_000_000 for ms in cpu_ms])
    return [one.cost_seconds for one in of_rule(diagnosed(store), "serial-phases")]


@pytest.mark.parametrize(
    ("work_us", "at_once", "cpu_ms", "found"),
    [
        (10_000, True, 400, True),
        (60_000, True, 2400, False),
        (100, True, 4, False),
        (10_000, False, 400, False),
        (10_000, True, 10, False),
    ],
    ids=["taken apart", "another work", "only read", "one worker after the other", "it sleeps"],
)
def test_a_process_takes_apart_what_it_reads_before_its_workers_start(
    tmp_path: Path, work_us: int, at_once: bool, cpu_ms: int, found: bool
) -> None:
    log = Trace()
    taken_apart(log, work_us)
    computed(log, at_once=at_once)
    costs = found_in(log, tmp_path, [cpu_ms, 300, 300, 300])
    assert costs == ([pytest.approx(0.4 * 2 / 3, rel=0.03)] if found else [])


def test_what_workers_read_too_is_shared_out(tmp_path: Path) -> None:
    log = Trace()
    taken_apart(log, 10_000)
    for pid in WORKERS:
        log.start(pid)
        taken_apart(log, 7_000, pid)
        log.end(pid)
    assert found_in(log, tmp_path, [400, 300, 300, 300]) == []


def test_what_one_process_puts_together_when_its_workers_have_ended(tmp_path: Path) -> None:
    log = Trace()
    computed(log)
    taken_apart(log, 10_000, verb="write")
    assert found_in(log, tmp_path, [400, 300, 300, 300]) == [pytest.approx(0.4 * 2 / 3, rel=0.03)]


@pytest.mark.parametrize("handed_first", [False, True], ids=["handed later", "handed before"])
def test_a_pool_waits_until_it_is_handed_work(tmp_path: Path, handed_first: bool) -> None:
    log = Trace()
    for number in range(3):
        log.call(f"pipe2([{10 + 2 * number}, {11 + 2 * number}], 0)")
    for pid in WORKERS:
        log.start(pid)
    if not handed_first:
        taken_apart(log, 10_000)
    for number, pid in enumerate(WORKERS):
        log.write(100, 10, 11 + 2 * number)
        log.read(100, max(10, log.clocks[FIRST] - log.clocks[pid]), 10 + 2 * number, pid)
        log.clocks[pid] += 300_000
        log.end(pid)
    if handed_first:
        taken_apart(log, 7_000)
    log.pause(300_000)
    assert bool(found_in(log, tmp_path, [400, 300, 300, 300])) != handed_first


@pytest.mark.parametrize("meanwhile_ms", [20, 1200], ids=["the runtime's own", "it may compute meanwhile"])
def test_a_thread_takes_apart_what_it_reads_before_others_start(tmp_path: Path, meanwhile_ms: int) -> None:
    log = Trace()
    log.call(THREAD, "200")
    log.clocks[200] = log.clocks[FIRST]
    taken_apart(log, 10_000)
    for pid in WORKERS:
        log.call(THREAD, str(pid))
        log.clocks[pid] = log.clocks[FIRST] + 300_000
        log.call("exit(0)", "?", 0, pid)
    log.pause(300_000)
    log.clocks[200] = log.clocks[FIRST]
    log.call("exit(0)", "?", 0, 200)
    costs = found_in(log, tmp_path, [400, meanwhile_ms, 300, 300, 300])
    assert costs == ([pytest.approx(0.4 * 2 / 3, rel=0.03)] if meanwhile_ms == 20 else [])


def test_a_list_of_what_to_do_is_no_work_of_the_workers(tmp_path: Path) -> None:
    log = Trace()
    taken_apart(log, 10_000)
    for pid in WORKERS:
        log.start(pid)
        log.open(f"/data/slices/{pid}.bin", pid=pid)
        for _ in range(30):
            log.read(4 * PIECE, 20, pid=pid)
            log.pause(10_000, pid)
        log.end(pid)
    log.pause(300_000)
    assert found_in(log, tmp_path, [400, 300, 300, 300]) == []


@pytest.mark.parametrize("is_shared", [False, True], ids=["other files", "what was made for it"])
def test_commands_of_another_program_are_workers_where_they_share_files(
    tmp_path: Path, is_shared: bool
) -> None:
    log = Trace()
    taken_apart(log, 10_000)
    for pid in WORKERS:
        if is_shared:
            log.open(f"/data/job{pid}.in", flags="O_WRONLY|O_CREAT")
            log.write(500, 10)
            log.close()
        log.start(pid, "/opt/solver")
        log.open(f"/data/job{pid}.in", pid=pid)
        log.read(500, 10, pid=pid)
        log.close(pid=pid)
        log.clocks[pid] += 300_000
        log.end(pid)
    log.pause(300_000)
    assert bool(found_in(log, tmp_path, [400, 300, 300, 300])) == is_shared


@pytest.mark.parametrize(("name", "found"), [("stars.bin", False), ("stars.csv", True)])
def test_only_text_is_taken_apart_behind_the_last_call(tmp_path: Path, name: str, found: bool) -> None:
    log = Trace()
    log.open(f"/data/{name}")
    for _ in range(100):
        log.read(PIECE, 20)
    log.pause(600_000)
    computed(log)
    assert found_in(log, tmp_path, [600, 300, 300, 300]) == ([pytest.approx(0.4, rel=0.03)] if found else [])


@pytest.mark.parametrize(("ends", "found"), [("stdout", False), ("answer", True)])
def test_workers_end_with_their_answer_not_with_what_they_print(
    tmp_path: Path, ends: str, found: bool
) -> None:
    log = Trace()
    for number in range(3):
        log.call(f"pipe2([{10 + 2 * number}, {11 + 2 * number}], 0)")
    log.call("pipe2([4, 5], 0)")
    log.write(10, 10, 5)
    for number, pid in enumerate(WORKERS):
        log.start(pid)
        log.clocks[pid] += 200_000
        log.write(100, 10, 5 if ends == "stdout" else 11 + 2 * number, pid)
    log.pause(210_000)
    if ends == "answer":
        for number in range(3):
            log.read(100, 10, 10 + 2 * number)
    taken_apart(log, 7_000, verb="write")
    for pid in WORKERS:
        log.clocks[pid] = log.clocks[FIRST]
        log.end(pid)
    assert bool(found_in(log, tmp_path, [300, 400, 400, 400])) == found


def test_the_first_thread_may_compute_meanwhile(tmp_path: Path) -> None:
    log = Trace()
    log.call(THREAD, "200")
    log.clocks[200] = log.clocks[FIRST]
    taken_apart(log, 10_000, pid=200)
    log.clocks[FIRST] = log.clocks[200]
    for pid in WORKERS:
        log.call(THREAD, str(pid))
        log.clocks[pid] = log.clocks[FIRST] + 300_000
        log.call("exit(0)", "?", 0, pid)
    log.call("exit(0)", "?", 0, 200)
    log.pause(300_000)
    assert found_in(log, tmp_path, [400, 400, 300, 300, 300]) == []


def test_workers_that_are_fed_as_it_comes_wait_only_for_the_end(tmp_path: Path) -> None:
    log = Trace()
    for number in range(3):
        log.call(f"pipe2([{10 + 2 * number}, {11 + 2 * number}], 0)")
    for pid in WORKERS:
        log.start(pid)
    log.open("/data/events.csv", fd=4)
    for _ in range(40):
        log.read(PIECE, 20, 4)
        log.pause(10_000)
        for number, pid in enumerate(WORKERS):
            log.write(100, 10, 11 + 2 * number)
            log.read(100, max(10, log.clocks[FIRST] - log.clocks[pid]), 10 + 2 * number, pid)
    log.pause(600_000)
    for number, pid in enumerate(WORKERS):
        log.close(fd=11 + 2 * number)
        log.read(0, log.clocks[FIRST] - log.clocks[pid], 10 + 2 * number, pid)
        log.end(pid)
    assert found_in(log, tmp_path, [1000, 300, 300, 300]) == []
