"""Tests the rule `whole-file-for-a-few-bytes`: when it gives a finding, its count and cost, and when it
gives none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from iodock.program.findings import Severity
from metadata_log import FIRST, Trace, of_log

MIB = 1 << 20


@pytest.mark.parametrize(("sniffs", "asks", "found"), [(True, False, 1), (False, True, 0)])
def test_whole_reads_are_distinguished_from_reads_of_the_beginning(
    tmp_path: Path, sniffs: bool, asks: bool, found: int
) -> None:
    """With SNIFFS, the program first opens each file for its magic number. With ASKS, it reads each file in
    part and then queries its position."""

    def write(log: Trace) -> None:
        for number in range(40):
            name = f"/data/run-{number}.nc"
            if sniffs:
                log.open(name, flags="O_RDONLY", took_us=3)
                log.read(4096, 5)
                log.close()
            log.open(name, flags="O_RDONLY", took_us=3)
            if not asks:
                log.call(f"fstat(3, {{st_mode=S_IFREG|0644, st_size={2 * MIB}, ...}})")
            log.read(MIB if asks else 2 * MIB, 1000)
            if asks:
                log.call("lseek(3, 0, SEEK_CUR)", str(MIB), 1)
            log.close()

    assert len(of_rule(of_log(tmp_path, write), "whole-file-for-a-few-bytes")) == found


def gone_through(rounds: int, pause_us: int, seek_to: int = 0) -> Callable[[Trace], None]:
    """Returns a program that reads twenty files completely in each of ROUNDS, with PAUSE_US after each
    file."""

    def write(log: Trace) -> None:
        for _ in range(rounds):
            for number in range(20):
                log.open(f"/data/day-{number}.nc", flags="O_RDONLY", took_us=3)
                if seek_to:
                    log.call("lseek(3, 0, SEEK_END)", str(seek_to), 1)
                    log.call("lseek(3, 0, SEEK_SET)", "0", 1)
                    log.call(f'read(3, ""..., {MIB})', str(MIB), 300)
                else:
                    log.call(f'read(3, ""..., {MIB + 1})', str(MIB), 300)
                log.close(took_us=2)
                log.pause(pause_us)

    return write


@pytest.mark.parametrize(
    ("rounds", "pause_us", "seek_to", "found"),
    [(1, 10, 0, 1), (4, 10, 0, 1), (4, 2000, 0, 0), (1, 10, 64 * MIB, 0)],
    ids=["once", "four times", "looked at each time", "the first part of each"],
)
def test_files_read_completely_for_their_first_bytes_are_found(
    tmp_path: Path, rounds: int, pause_us: int, seek_to: int, found: int
) -> None:
    diagnosis = of_log(tmp_path, gone_through(rounds, pause_us, seek_to))
    assert len(of_rule(diagnosis, "whole-file-for-a-few-bytes")) == found
    assert bool(of_rule(diagnosis, "redundant-reads")) == (rounds > 1 and not found)


@pytest.mark.parametrize(("between_us", "rest_us", "found"), [(0, 50, 1), (8, 16, 0), (0, 900, 0)])
def test_computation_between_or_after_reads_counts_as_use(
    tmp_path: Path, between_us: int, rest_us: int, found: int
) -> None:
    def write(log: Trace) -> None:
        for number in range(20):
            log.open(f"/data/run-{number}", flags="O_RDONLY")
            log.call("fstat(3, {st_mode=S_IFREG|0644, st_size=6029312, ...})", "0", 1)
            for _ in range(46):
                log.read(131072, 20)
                log.pause(between_us)
            log.close(1)
            log.pause(rest_us)

    assert len(of_rule(of_log(tmp_path, write), "whole-file-for-a-few-bytes")) == found


def table_asked(folder: Path, into: str, looks_us: int) -> Path:
    """Imports a run of a shell that starts `cat table

    INTO` thirty times."""
    log = Trace()
    log.call('execve("/usr/bin/bash", ["bash"], 0x7f /* 9 vars */)')
    for number in range(30):
        cat, asks = FIRST + 1 + 2 * number, FIRST + 2 + 2 * number
        log.call("pipe2([8, 9], 0)")
        log.start(cat, "/usr/bin/cat")
        log.start(asks, into)
        log.call('openat(AT_FDCWD, "/data/table.txt", O_RDONLY)', "3", 1, cat)
        log.call("dup2(9, 1)", "1", 0, cat)
        log.call("dup2(8, 0)", "0", 0, asks)
        for _ in range(8):
            log.read(131072, 20, pid=cat)
            log.write(131072, 20, fd=1, pid=cat)
            log.pause(looks_us // 8, cat)
            log.read(131072, 40, fd=0, pid=asks)
        log.end(cat)
        log.open("/data/answers", fd=5, flags="O_WRONLY|O_APPEND", pid=asks)
        log.write(20, 5, fd=5, pid=asks)
        log.end(asks)
        log.clocks[FIRST] = max(log.clocks.values())
    return log.imported(folder)


def test_pipe_data_kept_by_a_shell_counts_as_used(tmp_path: Path) -> None:
    found = diagnosed(table_asked(tmp_path, "/usr/bin/dash", 8000))
    assert not of_rule(found, "whole-file-for-a-few-bytes")


def lookups(log: Trace, start_us: int, look_us: int) -> None:
    """Adds a loop that starts a command for each key. The command reads a table of 1 MiB."""
    for number in range(60):
        pid = 200 + number
        log.start(pid, "/usr/bin/look")
        log.pause(start_us, pid)
        log.open("/data/table", pid=pid, flags="O_RDONLY")
        for _ in range(16):
            log.read(65536, 10, pid=pid)
            log.pause(look_us, pid)
        log.end(pid)
        log.clocks[FIRST] = log.clocks[pid]


@pytest.mark.parametrize(
    ("start_us", "look_us", "first"),
    [(1000, 600, "whole-file-for-a-few-bytes"), (20000, 20, "process-storm")],
    ids=["goes through", "starts"],
)
def test_a_command_that_scans_a_table_is_found_besides_its_start(
    tmp_path: Path, start_us: int, look_us: int, first: str
) -> None:
    diagnosis = of_log(tmp_path, lambda log: lookups(log, start_us, look_us))
    assert blamed(diagnosis)[0] == first


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
    [(20, 1), (90, 1), (0, 16)],
    ids=["at once", "after something else", "in pieces of 128 KiB"],
)
def test_whole_files_read_too_quickly_to_be_used_are_found(
    tmp_path: Path, looks_us: int, pieces: int
) -> None:
    path = whole_files(tmp_path, looks_us=looks_us, pieces=pieces)
    (found,) = of_rule(diagnosed(path), "whole-file-for-a-few-bytes")
    assert found.severity is Severity.MEDIUM
    assert found.evidence["files"] == 40 and found.evidence["written_bytes"] == 400
    assert found.cost_seconds == pytest.approx(0.08 * (1 - 1 / 16), rel=0.01), (
        "128 KiB of 2 MiB are read ahead"
    )


@pytest.mark.parametrize(
    ("looks_us", "size", "pieces"),
    [(400, 2 * MIB, 1), (50, 500_000, 1), (0, 32768, 1), (600, 2 * MIB, 16)],
    ids=["looked at", "looked at in the cache", "small files", "pieces looked at"],
)
def test_whole_files_that_may_be_needed_give_no_finding(
    tmp_path: Path, looks_us: int, size: int, pieces: int
) -> None:
    path = whole_files(tmp_path, looks_us, size, pieces)
    assert not of_rule(diagnosed(path), "whole-file-for-a-few-bytes")


def test_writing_a_tenth_of_the_input_counts_as_use(tmp_path: Path) -> None:
    """The program reads 20 files of 4 MiB completely, then writes a table of 8 MiB from all of them."""

    def write(log: Trace) -> None:
        for number in range(20):
            log.open(f"/data/run-{number}.bin", flags="O_RDONLY")
            log.call(f"fstat(3, {{st_mode=S_IFREG|0644, st_size={4 * MIB}, ...}})")
            log.read(4 * MIB, 4000)
            log.close()
        log.open("/data/table", flags="O_WRONLY|O_CREAT")
        log.write(8 * MIB, 100)
        log.close()

    assert not of_rule(of_log(tmp_path, write), "whole-file-for-a-few-bytes")
