"""Flags that are set otherwise than at open, copies in other shapes than one file into one, what ends empty,
what goes with other calls, what short processes do besides starting; and neighbours without fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iodock.program.findings import Diagnosis
from metadata_log import FIRST, Trace, diagnosed, of_rule

MIB = 1 << 20


def of_log(folder: Path, write: Callable[[Trace], None], wall_us: int = 1) -> Diagnosis:
    log = Trace()
    write(log)
    return diagnosed(log.imported(folder, wall_us))


def blamed(diagnosis: Diagnosis) -> list[str]:
    return [one.rule for one in diagnosis.worth_changing]


def opened_again(log: Trace) -> None:
    log.open("/proc/self/fd/3", flags="O_WRONLY|O_DSYNC", fd=4)
    for _ in range(200):
        log.write(512, 2000, fd=4)


def flagged(flags: str, count: int = 200) -> Callable[[Trace], None]:
    def write(log: Trace) -> None:
        for number in range(count):
            text = f'pwritev2(3, [{{iov_base=""..., iov_len=512}}], 1, {number * 512}, {flags})'
            log.call(text, "512", 2000)

    return write


def made_in(folder: str) -> Callable[[Trace], None]:
    """A file without a name, in the folder that the program stands in."""

    def write(log: Trace) -> None:
        log.call(f'chdir("{folder}")')
        log.open(".", flags="O_RDWR|O_TMPFILE|O_DSYNC", fd=4)
        for _ in range(200):
            log.write(512, 2000, fd=4)

    return write


@pytest.mark.parametrize(
    ("then", "found"),
    [
        (opened_again, 1),
        (flagged("RWF_DSYNC"), 1),
        (flagged("RWF_SYNC"), 1),
        (flagged("RWF_HIPRI"), 0),
        (made_in("/data/run"), 1),
    ],
    ids=["/proc/self/fd", "RWF_DSYNC", "RWF_SYNC", "neither", "O_TMPFILE"],
)
def test_writes_wait_however_the_flag_came(tmp_path: Path, then: Callable[[Trace], None], found: int) -> None:
    def write(log: Trace) -> None:
        log.open("/data/journal", flags="O_WRONLY|O_CREAT")
        then(log)

    assert len(of_rule(of_log(tmp_path, write), "synchronous-flags")) == found


def test_only_the_flagged_writes_are_charged(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        log.open("/data/journal", flags="O_WRONLY|O_CREAT")
        flagged("RWF_DSYNC", 50)(log)
        flagged("0", 150)(log)

    (finding,) = of_rule(of_log(tmp_path, write), "synchronous-flags")
    assert finding.evidence["count"] == 50


@pytest.mark.parametrize(
    ("flags", "size", "off_after", "before", "found"),
    [
        ("O_WRONLY|O_DIRECT", 1536, None, 0, 1),
        ("O_WRONLY|O_DIRECT", 8192, None, 0, 0),
        ("O_WRONLY|O_APPEND", 1536, None, 0, 0),
        ("O_WRONLY|O_DIRECT", 1536, 0, 0, 0),
        ("O_WRONLY|O_DIRECT", 8192, None, 200, 0),
    ],
    ids=["odd", "fits", "another flag", "switched off", "odd before"],
)
def test_direct_io_is_switched_on_and_off(
    tmp_path: Path, flags: str, size: int, off_after: int | None, before: int, found: int
) -> None:
    def write(log: Trace) -> None:
        log.open("/data/field", flags="O_WRONLY|O_CREAT", took_us=1)
        for _ in range(before):
            log.write(1536, 500)
        log.call(f"fcntl(3, F_SETFL, {flags})", "0", 1)
        for number in range(200):
            if number == off_after:
                log.call("fcntl(3, F_SETFL, O_WRONLY)", "0", 1)
            log.write(size, 500)

    assert len(of_rule(of_log(tmp_path, write), "direct-io-unaligned")) == found


def piece_by_piece(log: Trace, sources: int, targets: int, pause_us: int, source_bytes: int = MIB) -> None:
    """SOURCES files are read in pieces of 64 KiB, each of which is written into one of TARGETS at once."""
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
    [(8, 1, 1, 1), (1, 8, 1, 1), (32, 32, 1, 1), (8, 1, 100, 0), (1, 8, 100, 0)],
    ids=["merged", "divided", "many small", "merged and changed", "divided and changed"],
)
def test_copies_of_other_shapes(
    tmp_path: Path, sources: int, targets: int, pause_us: int, found: int
) -> None:
    def write(log: Trace) -> None:
        log.start(101, "/usr/bin/join-parts")
        size = 262144 if sources == 32 else 8 * MIB // sources
        piece_by_piece(log, sources, targets, pause_us, size)

    assert len(of_rule(of_log(tmp_path, write), "copy-through-user-space")) == found


@pytest.mark.parametrize("whole_parts", [True, False])
def test_what_takes_from_its_sources_by_turns_sorts(tmp_path: Path, whole_parts: bool) -> None:
    def write(log: Trace) -> None:
        log.open("/data/north", fd=3, flags="O_RDONLY")
        log.open("/data/south", fd=5, flags="O_RDONLY")
        log.open("/data/all", fd=4, flags="O_WRONLY|O_CREAT|O_TRUNC")
        for number in range(64):
            north = number < 32 if whole_parts else number % 2 == 0
            log.read(65536, 40, fd=3 if north else 5)
            log.write(65536, 40, fd=4)

    assert bool(of_rule(of_log(tmp_path, write), "copy-through-user-space")) == whole_parts


@pytest.mark.parametrize("ahead", [1, 2])
def test_between_small_buffers_of_a_library_bytes_may_change(tmp_path: Path, ahead: int) -> None:
    def write(log: Trace) -> None:
        log.open("/data/big-endian", fd=3, flags="O_RDONLY")
        log.open("/data/little-endian", fd=4, flags="O_WRONLY|O_CREAT|O_TRUNC")
        for _ in range(600 // ahead):
            for _ in range(ahead):
                log.read(4096, 4, fd=3)
            for _ in range(ahead):
                log.write(4096, 4, fd=4)

    assert bool(of_rule(of_log(tmp_path, write), "copy-through-user-space")) == (ahead == 1)


def test_files_without_a_name_are_not_one_file(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        for pid in (FIRST + 1, FIRST + 2, FIRST + 3):
            log.start(pid)
            log.call('chdir("/data/run")', pid=pid)
            log.open(".", flags="O_RDWR|O_TMPFILE", pid=pid)
            for at in range(300):
                offset = at * 37 % 300 * 4096
                log.call(f'pwrite64(3, ""..., 512, {offset})', "512", 100, pid)

    assert "shared-file-contention" not in blamed(of_log(tmp_path, write))


@pytest.mark.parametrize(("ahead", "found"), [(1, 1), (32, 0)], ids=["at once", "all before"])
def test_what_is_read_before_all_is_written_was_wanted_as_a_whole(
    tmp_path: Path, ahead: int, found: int
) -> None:
    def write(log: Trace) -> None:
        log.open("/data/keys", fd=3, flags="O_RDONLY")
        log.open("/data/sorted", fd=4, flags="O_WRONLY|O_CREAT|O_TRUNC")
        for _ in range(32 // ahead):
            for _ in range(ahead):
                log.read(65536, 40, fd=3)
            for _ in range(ahead * 16):
                log.write(4096, 4, fd=4)

    assert len(of_rule(of_log(tmp_path, write), "copy-through-user-space")) == found


@pytest.mark.parametrize(
    ("emptied", "again", "found"),
    [(True, False, 1), (False, False, 0), (True, True, 0)],
    ids=["emptied", "kept", "written again"],
)
def test_what_is_emptied_was_written_in_vain(tmp_path: Path, emptied: bool, again: bool, found: int) -> None:
    def write(log: Trace) -> None:
        log.open("/data/restart", flags="O_WRONLY|O_CREAT|O_TRUNC")
        for _ in range(64):
            log.write(65536, 200)
        if emptied:
            log.call("ftruncate(3, 0)", "0", 10)
            log.call("lseek(3, 0, SEEK_SET)", "0", 1)
        if again:
            log.write(65536, 200)

    assert len(of_rule(of_log(tmp_path, write), "unused-output")) == found


def lookups(log: Trace, start_us: int, look_us: int) -> None:
    """A loop that starts a command for each key, which goes through a table of 1 MiB."""
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
def test_a_command_that_goes_through_a_table_does_more_than_start(
    tmp_path: Path, start_us: int, look_us: int, first: str
) -> None:
    diagnosis = of_log(tmp_path, lambda log: lookups(log, start_us, look_us))
    assert blamed(diagnosis)[0] == first


@pytest.mark.parametrize(("is_at_end", "first"), [(True, "polling-at-end"), (False, "seek-storm")])
def test_seeks_that_come_with_reads_at_the_end_go_with_them(
    tmp_path: Path, is_at_end: bool, first: str
) -> None:
    def write(log: Trace) -> None:
        log.open("/data/signals", flags="O_RDONLY")
        for _ in range(3000):
            log.call("lseek(3, 0, SEEK_CUR)", "0", 20)
            log.read(0 if is_at_end else 8, 10)

    assert blamed(of_log(tmp_path, write, 300_000))[0] == first


@pytest.mark.parametrize(
    ("flags", "rule"),
    [("O_WRONLY|O_CREAT|O_TRUNC", "redundant-writes"), ("O_WRONLY|O_APPEND", "open-close-loop")],
    ids=["anew", "more"],
)
def test_opens_that_empty_a_file_go_with_its_rewriting(tmp_path: Path, flags: str, rule: str) -> None:
    def write(log: Trace) -> None:
        for _ in range(300):
            log.open("/data/boards.json", flags=flags, took_us=200)
            log.write(9000, 60)
            log.close(10)
            log.pause(200)

    assert blamed(of_log(tmp_path, write)) == [rule]


@pytest.mark.parametrize(("tool", "found"), [("/usr/bin/tar", 0), ("/opt/solver", 1)])
def test_blocks_of_tools_are_theirs(tmp_path: Path, tool: str, found: int) -> None:
    def write(log: Trace) -> None:
        log.start(101, tool)
        log.open("/data/large", pid=101, flags="O_WRONLY|O_CREAT|O_TRUNC")
        for number in range(1000):
            log.write(9728 if number == 0 else 10240, 50, pid=101)

    assert len(of_rule(of_log(tmp_path, write), "unaligned-requests")) == found
