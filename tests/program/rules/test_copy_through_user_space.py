"""Tests the rule `copy-through-user-space`: when it gives a finding, its count and cost, and when it gives
none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from data_faults import made
from diagnosing import diagnosed, of_rule
from metadata_log import FIRST, Trace, of_log
from timed_strace import StraceLog

MIB = 1 << 20


def copied(listed: bool, open_us: int, pause_us: int) -> Callable[[Trace], None]:
    """Returns a program that reads each of ten files of one size, opens the target, and writes the data."""

    def write(log: Trace) -> None:
        names = [f"/data/part-{number}.bin" for number in range(10)]
        for name in names if listed else []:
            log.call(f'stat("{name}", {{st_mode=S_IFREG|0644, st_size={MIB}, ...}})', "0", 2)
        for name in names:
            log.open(name, flags="O_RDONLY", took_us=3)
            log.read(MIB, 400)
            log.close()
            log.pause(pause_us)
            log.open(f"{name}.bak", took_us=open_us, flags="O_WRONLY|O_CREAT|O_TRUNC")
            log.write(MIB, 200)
            log.close()

    return write


@pytest.mark.parametrize(
    ("listed", "open_us", "pause_us", "copies"),
    [(False, 5, 5, 10), (True, 5, 5, 10), (False, 900, 5, 10), (True, 900, 5, 10), (True, 5, 900, 0)],
    ids=["plain", "listed before", "slow to create", "both", "changed on the way"],
)
def test_copies_are_recognised_by_equal_bytes(
    tmp_path: Path, listed: bool, open_us: int, pause_us: int, copies: int
) -> None:
    found = of_rule(of_log(tmp_path, copied(listed, open_us, pause_us)), "copy-through-user-space")
    assert [one.evidence["copies"] for one in found] == [copies] * bool(copies)


def test_copies_are_found_among_larger_files_that_are_only_read(tmp_path: Path) -> None:
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


def test_copies_are_found_if_the_source_is_read_again_later(tmp_path: Path) -> None:
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


def piece_by_piece(log: Trace, sources: int, targets: int, pause_us: int, source_bytes: int = MIB) -> None:
    """Adds reads of SOURCES files in pieces of 64 KiB. Each piece is written into one of TARGETS at once."""
    piece, total = 65536, sources * source_bytes
    for at in range(0, total, piece):
        if at % source_bytes == 0:
            log.open(f"/data/in-{at // source_bytes}", fd=3, flags="O_RDONLY")
        if at % (total // targets) == 0:
            log.open(f"/data/out-{at * targets // total}", fd=4, flags="O_WRONLY|O_CREAT|O_TRUNC")
        log.read(piece, 40, fd=3)
        log.pause(pause_us)
        log.write(piece, 40, fd=4)
        log.pause(1)


@pytest.mark.parametrize(
    ("sources", "targets", "pause_us", "found"),
    [(32, 32, 1, 1), (32, 32, 100, 0)],
    ids=["many small", "changed"],
)
def test_copies_with_other_request_sizes_are_found(
    tmp_path: Path, sources: int, targets: int, pause_us: int, found: int
) -> None:
    def write(log: Trace) -> None:
        log.start(101, "/usr/bin/join-parts")
        size = 262144 if sources == 32 else 8 * MIB // sources
        piece_by_piece(log, sources, targets, pause_us, size)

    assert len(of_rule(of_log(tmp_path, write), "copy-through-user-space")) == found


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


@pytest.mark.parametrize(("count", "options", "found"), [(8, (), 1), (8, ("conv=swab",), 0)])
def test_a_script_that_copies_with_dd_is_found(
    tmp_path: Path, count: int, options: tuple[str, ...], found: int
) -> None:
    path = copies(tmp_path, count, *options)
    assert len(of_rule(diagnosed(path), "copy-through-user-space")) == found


@pytest.mark.parametrize(("ahead", "found"), [(1, 1), (32, 0)], ids=["at once", "all before"])
def test_reading_everything_before_writing_is_not_a_copy(tmp_path: Path, ahead: int, found: int) -> None:
    def write(log: Trace) -> None:
        log.open("/data/keys", fd=3, flags="O_RDONLY")
        log.open("/data/sorted", fd=4, flags="O_WRONLY|O_CREAT|O_TRUNC")
        for _ in range(32 // ahead):
            for _ in range(ahead):
                log.read(65536, 40, fd=3)
            for _ in range(ahead * 16):
                log.write(4096, 4, fd=4)

    assert len(of_rule(of_log(tmp_path, write), "copy-through-user-space")) == found


@pytest.mark.parametrize(("pause_us", "found"), [(10, 1), (300, 0)], ids=["copied", "changed"])
def test_waiting_for_slow_storage_does_not_count_as_changing_bytes(
    tmp_path: Path, pause_us: int, found: int
) -> None:
    """A piece takes 600 us to read and 600 us to write. Copying it four times in memory takes 92 us."""

    def write(log: Trace) -> None:
        log.open("/data/in", fd=3, flags="O_RDONLY")
        log.open("/data/out", fd=4, flags="O_WRONLY|O_CREAT|O_TRUNC")
        for _ in range(100):
            log.read(65536, 600, fd=3)
            log.pause(pause_us)
            log.write(65536, 600, fd=4)

    assert len(of_rule(of_log(tmp_path, write), "copy-through-user-space")) == found


@pytest.mark.parametrize(("tool", "found"), [("/usr/bin/sort", 0), ("/opt/site/bin/join-parts", 1)])
def test_tools_that_transform_data_are_not_copies(tmp_path: Path, tool: str, found: int) -> None:
    def write(log: Trace) -> None:
        log.start(101, tool)
        log.open("/data/in", fd=3, flags="O_RDONLY", pid=101)
        log.open("/data/out", fd=4, flags="O_WRONLY|O_CREAT|O_TRUNC", pid=101)
        for _ in range(100):
            log.read(65536, 40, fd=3, pid=101)
            log.write(65536, 40, fd=4, pid=101)

    assert len(of_rule(of_log(tmp_path, write), "copy-through-user-space")) == found
