"""Faults as other programs have them: files without a name, whole files that nobody looks at, locks that are
asked for again and again, connections to databases, buffers that overlap; and neighbours without fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodock.program.findings import Severity
from metadata_log import FIRST, Trace, diagnosed, of_rule

MIB = 1 << 20


def scratch(folder: Path, flags: str, name: str, unlinks_first: bool) -> Path:
    log = Trace()
    log.open(name, flags=flags)
    if unlinks_first:
        log.call('unlink("/data/x1")', took_us=10)
    for _ in range(100):
        log.write(65536, 1000)
    log.close()
    return log.imported(folder)


@pytest.mark.parametrize(
    ("flags", "name", "unlinks_first"),
    [("O_RDWR|O_CREAT|O_EXCL", "/data/x1", True), ("O_RDWR|O_EXCL|O_TMPFILE", "/data", False)],
    ids=["mkstemp", "tmpfile"],
)
def test_output_into_a_file_without_a_name_is_unused(
    tmp_path: Path, flags: str, name: str, unlinks_first: bool
) -> None:
    (found,) = of_rule(diagnosed(scratch(tmp_path, flags, name, unlinks_first)), "unused-output")
    assert found.evidence["written_bytes"] == 100 * 65536
    assert found.cost_seconds == pytest.approx(0.1, rel=0.01)


def test_output_that_replaces_a_deleted_file_stays(tmp_path: Path) -> None:
    log = Trace()
    log.call('unlink("/data/x1")', took_us=10)
    log.open("/data/x1", flags="O_RDWR|O_CREAT")
    for _ in range(100):
        log.write(65536, 1000)
    assert not of_rule(diagnosed(log.imported(tmp_path)), "unused-output")


def whole_files(folder: Path, looks_us: int, size: int = 2 * MIB, pieces: int = 1) -> Path:
    log = Trace()
    for number in range(40):
        log.open(f"/data/run-{number}.bin", flags="O_RDONLY")
        log.call(f"fstat(3, {{st_mode=S_IFREG|0644, st_size={size}, ...}})")
        for _ in range(pieces):
            log.read(size // pieces, 2000 // pieces)
            log.pause(looks_us // pieces)
        log.close()
    log.open("/data/times.txt", fd=4, flags="O_WRONLY|O_CREAT")
    log.write(400, 10, fd=4)
    return log.imported(folder)


@pytest.mark.parametrize(
    ("looks_us", "pieces"),
    [(20, 1), (150, 1), (0, 16)],
    ids=["at once", "after something else", "in pieces of 128 KiB"],
)
def test_whole_files_without_the_time_to_look_at_them(tmp_path: Path, looks_us: int, pieces: int) -> None:
    path = whole_files(tmp_path, looks_us=looks_us, pieces=pieces)
    (found,) = of_rule(diagnosed(path), "whole-file-for-a-few-bytes")
    assert found.severity is Severity.MEDIUM
    assert found.evidence["files"] == 40 and found.evidence["written_bytes"] == 400
    assert found.cost_seconds == pytest.approx(0.08, rel=0.01)


@pytest.mark.parametrize(
    ("looks_us", "size", "pieces"),
    [(400, 2 * MIB, 1), (50, 500_000, 1), (0, 32768, 1), (0, 2 * MIB, 64), (64, 2 * MIB, 16)],
    ids=["looked at", "looked at in the cache", "small files", "in pieces", "pieces looked at in the cache"],
)
def test_whole_files_that_may_be_needed(tmp_path: Path, looks_us: int, size: int, pieces: int) -> None:
    path = whole_files(tmp_path, looks_us, size, pieces)
    assert not of_rule(diagnosed(path), "whole-file-for-a-few-bytes")


def lock_askers(folder: Path, sleep_us: int, ends: str) -> Path:
    """Two processes that take turns with a lock: each is refused once, sleeps, and has it then."""
    log = Trace()
    for pid in (FIRST + 1, FIRST + 2):
        log.start(pid)
        log.open("/data/table.db", pid=pid)
    for _ in range(40):
        for pid in (FIRST + 1, FIRST + 2):
            lock = "fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=1})"
            log.call(lock, ends, 5, pid)
            log.pause(sleep_us, pid)
            log.call(lock, "0", 5, pid)
            log.pause(2000, pid)
    for pid in (FIRST + 1, FIRST + 2):
        log.end(pid)
    return log.imported(folder)


def test_sleeping_until_a_lock_is_free_is_charged(tmp_path: Path) -> None:
    path = lock_askers(tmp_path, 10_000, "-1 EAGAIN (Resource temporarily unavailable)")
    (found,) = of_rule(diagnosed(path), "shared-file-contention")
    assert (found.evidence["count"], found.evidence["writers"]) == (80, 2)
    assert found.evidence["waited_ns"] == 80 * 10_000_000
    assert found.cost_seconds == pytest.approx(0.4)


def test_locks_that_are_had_at_once_are_left_alone(tmp_path: Path) -> None:
    assert not of_rule(diagnosed(lock_askers(tmp_path, 10_000, "0")), "shared-file-contention")


def test_a_connection_for_each_question_is_an_open_close_loop(tmp_path: Path) -> None:
    log = Trace()
    for _ in range(300):
        for name in ("/data/birds.db", "/data/birds.db-journal"):
            log.open(name, took_us=300)
            log.read(4096, 10)
            log.close(100)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "open-close-loop")
    assert found.files == ("/data/birds.db",)


def pages_of(folder: Path, places: list[int]) -> Path:
    log = Trace()
    log.open("/data/diary.db", flags="O_RDONLY")
    for place in places:
        log.call(f'pread64(3, ""..., 4096, {4096 * place})', "4096", 20)
    return log.imported(folder)


def test_all_of_a_database_for_each_question(tmp_path: Path) -> None:
    path = pages_of(tmp_path, [place for _ in range(10) for place in range(1000)])
    (found,) = of_rule(diagnosed(path), "redundant-reads")
    assert found.evidence["factor"] == 10


def test_pages_of_a_database_looked_up_again(tmp_path: Path) -> None:
    path = pages_of(tmp_path, [number * 617 % 1000 for number in range(10_000)])
    assert not of_rule(diagnosed(path), "redundant-reads")


def test_a_buffer_for_each_record_is_random_access(tmp_path: Path) -> None:
    """128 KiB are read for each record of 16 KiB, as Fortran's direct access does it."""
    log = Trace()
    log.open("/data/library.bin", flags="O_RDONLY")
    for number in range(2000):
        log.call(f'pread64(3, ""..., 131072, {16384 * (number * 617 % 2000)})', "131072", 200)
    diagnosis = diagnosed(log.imported(tmp_path))
    assert [one.rule for one in diagnosis.worth_changing] == ["random-access"]


def copies(folder: Path, count: int, *options: str) -> Path:
    log = Trace()
    for number in range(count):
        pid = FIRST + 1 + number
        log.start(pid)
        argv = ", ".join(f'"{one}"' for one in ("dd", f"if=in-{number}", *options))
        log.call(f'execve("/usr/bin/dd", [{argv}], 0x7f /* 9 vars */)', pid=pid)
        log.open(f"/data/in-{number}", 0, flags="O_RDONLY", pid=pid)
        log.open(f"/data/out-{number}", 1, flags="O_WRONLY|O_CREAT", pid=pid)
        for _ in range(100):
            log.read(131072, 100, 0, pid)
            log.write(131072, 100, 1, pid)
        log.end(pid)
        log.clocks[FIRST] = log.clocks[pid]
    return log.imported(folder)


@pytest.mark.parametrize(("count", "options", "found"), [(8, (), 1), (1, (), 0), (8, ("conv=swab",), 0)])
def test_a_script_that_copies_with_dd(
    tmp_path: Path, count: int, options: tuple[str, ...], found: int
) -> None:
    path = copies(tmp_path, count, *options)
    assert len(of_rule(diagnosed(path), "copy-through-user-space")) == found


def test_debug_output_in_one_step_of_several(tmp_path: Path) -> None:
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


def piped(folder: Path, written: int, asked: int) -> Path:
    """A pipe between two processes; the reader finds half of a write each time."""
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
def test_short_reads_of_a_pipe_are_the_writers_pieces(
    tmp_path: Path, written: int, asked: int, found: int
) -> None:
    assert len(of_rule(diagnosed(piped(tmp_path, written, asked)), "pipe-bound")) == found


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
