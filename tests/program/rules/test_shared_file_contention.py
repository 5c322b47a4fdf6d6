"""Tests the rule `shared-file-contention`: when it gives a finding, its count and cost, and when it gives
none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from iodock.program.capture import import_logs
from metadata_log import FIRST, Trace, of_log
from rank_log import ranks


@pytest.mark.parametrize(
    ("waits_us", "pause_us", "found"),
    [
        pytest.param(200, 5, True, id="some locks are waited for"),
        pytest.param(2, 0, False, id="all are free"),
    ],
)
def test_contention_is_found_if_only_some_locks_wait(
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
def test_fast_locks_give_no_finding(tmp_path: Path, ask_us: int) -> None:
    """If locks cover different byte ranges, or no other process runs while a lock is held, only the flags of
    open show shared writing."""
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


def locks_in_turn(log: Trace, took_us: int) -> None:
    for pid in (201, 202, 203):
        log.start(pid, "/opt/bin/collect")
    for pid in (201, 202, 203):
        log.open("/data/all.lock", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(300):
            log.call("flock(3, LOCK_EX)", took_us=took_us, pid=pid)
            log.call("flock(3, LOCK_UN)", took_us=2, pid=pid)
            log.pause(10, pid)
        log.end(pid)


def test_processes_that_wait_for_locks_of_each_other_are_found(tmp_path: Path) -> None:
    log = Trace()
    locks_in_turn(log, 1000)
    diagnosis = diagnosed(log.imported(tmp_path))
    (found,) = of_rule(diagnosis, "shared-file-contention")
    assert found.evidence["count"] == 1800 and found.evidence["writers"] == 3
    assert found.files == ("/data/all.lock",)
    assert diagnosis.worth_changing[0].rule == "shared-file-contention"


def test_free_locks_give_no_finding(tmp_path: Path) -> None:
    log = Trace()
    locks_in_turn(log, 5)
    assert not of_rule(diagnosed(log.imported(tmp_path)), "shared-file-contention")


def interleaved(log: Trace, number: int, pid: int) -> None:
    log.open("/data/shared", flags="O_WRONLY|O_CREAT", pid=pid)
    for step in range(500):
        log.call(f'pwrite64(3, ""..., 512, {(step * 4 + number) * 512})', "512", 1000, pid)


def test_a_shared_file_written_in_small_requests_is_named(tmp_path: Path) -> None:
    diagnosis = diagnosed(ranks(interleaved, tmp_path))
    (found,) = of_rule(diagnosis, "shared-file-contention")
    assert (found.evidence["count"], found.evidence["writers"]) == (2000, 4)
    # All four processes are inside a write at the same time, for half a second of the run.
    assert found.cost_seconds == pytest.approx(0.5, rel=0.01)
    assert diagnosis.worth_changing[0].rule == "shared-file-contention"


def test_successive_writers_do_not_overlap(tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.pause(200_000 * number, pid)
        log.open("/data/shared", flags="O_WRONLY|O_CREAT", pid=pid)
        for step in range(100):
            log.call(f'pwrite64(3, ""..., 512, {(step * 4 + number) * 512})', "512", 1000, pid)

    assert not of_rule(diagnosed(ranks(work, tmp_path)), "shared-file-contention")


def appenders(folder: Path, starts_us: tuple[int, ...]) -> Path:
    """Imports processes that each write 100 lines to the same file within 10 ms, beginning at STARTS_US."""
    log = Trace()
    for number, start in enumerate(starts_us):
        pid = FIRST + 1 + number
        log.start(pid)
        log.pause(start, pid)
        log.open("/data/log", flags="O_WRONLY|O_APPEND", pid=pid)
        for _ in range(100):
            log.write(4096, 100, pid=pid)
        log.close(pid=pid)
    return log.imported(folder, 20_000)


@pytest.mark.parametrize(
    ("starts_us", "meet"),
    [
        ((0, 0, 0), True),
        ((0, 5_000, 10_500), True),  # The first writer has ended when the last one starts.
        ((0, 10_500, 21_000), False),
        ((0, 9_900, 19_800), False),
        ((0, 30_000, 32_000, 70_000), True),  # They compute first, and take turns on few processors.
        ((0, 30_000, 39_900, 70_000), False),
    ],
)
def test_not_all_writers_must_overlap_at_the_same_time(
    tmp_path: Path, starts_us: tuple[int, ...], meet: bool
) -> None:
    found = of_rule(diagnosed(appenders(tmp_path, starts_us)), "shared-file-contention")
    assert bool(found) == meet


def test_writers_with_equal_time_stamps_need_not_overlap(tmp_path: Path) -> None:
    """`strace -f -t` without -T prints times in whole seconds and no durations."""
    lines = [
        line
        for pid in (7, 8, 9)
        for line in (
            f'{pid} 10:00:0{pid} openat(AT_FDCWD, "/data/log", O_WRONLY|O_APPEND) = 3',
            *[f'{pid} 10:00:0{pid} write(3, ""..., 4096) = 4096'] * 300,
        )
    ]
    log = tmp_path / "log"
    log.write_text("\n".join(lines) + "\n")
    import_logs([str(log)], tmp_path / "run.iodock")
    assert not of_rule(diagnosed(tmp_path / "run.iodock"), "shared-file-contention")


def test_waiting_for_a_shared_file_is_not_a_straggler(tmp_path: Path) -> None:
    log = Trace()
    for number, took_us in enumerate((1500, 1500, 1500, 4000)):
        pid = FIRST + 1 + number
        log.start(pid)
        log.open("/data/log", flags="O_WRONLY|O_APPEND", pid=pid)
        for _ in range(100):
            log.write(4096, took_us, pid=pid)
    rules = [one.rule for one in diagnosed(log.imported(tmp_path, 1)).worth_changing]
    assert rules[0] == "shared-file-contention" and "straggler" not in rules


def test_files_without_a_name_are_distinguished(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        for pid in (FIRST + 1, FIRST + 2, FIRST + 3):
            log.start(pid)
            log.call('chdir("/data/run")', pid=pid)
            log.open(".", flags="O_RDWR|O_TMPFILE", pid=pid)
            for at in range(300):
                offset = at * 37 % 300 * 4096
                log.call(f'pwrite64(3, ""..., 512, {offset})', "512", 100, pid)

    assert "shared-file-contention" not in blamed(of_log(tmp_path, write))
