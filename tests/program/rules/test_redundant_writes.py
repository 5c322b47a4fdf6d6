"""Tests the rule `redundant-writes`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from log_shapes import pwrite
from metadata_log import FIRST, Trace, of_log

RECORD = 700
MIB = 1 << 20


def with_header(update: Callable[[int], int | None], header: int = 16) -> Callable[[Trace], None]:
    """Returns a program that writes consecutive records and after each, HEADER bytes at the offset UPDATE
    returns, if any."""

    def write(log: Trace) -> None:
        log.open("/data/events.rec", flags="O_RDWR|O_CREAT|O_TRUNC")
        pwrite(log, 4096, 0)
        for number in range(1000):
            pwrite(log, RECORD, 65536 + number * RECORD)
            at = update(number)
            if at is not None:
                pwrite(log, header, at)

    return write


@pytest.mark.parametrize(
    ("update", "found"),
    [
        (lambda number: 0, 1),
        (lambda number: 0 if number % 2 else None, 1),
        (lambda number: 0 if number % 100 == 99 else None, 0),
        (lambda number: number * 4, 0),
        (lambda number: None, 0),
    ],
    ids=["after each", "after two", "after a hundred", "an index of all records", "none"],
)
def test_repeated_writes_of_a_small_header_are_found(
    tmp_path: Path, update: Callable[[int], int | None], found: int
) -> None:
    diagnosis = of_log(tmp_path, with_header(update))
    assert ("redundant-writes" in blamed(diagnosis)) == found
    if found:
        assert not of_rule(diagnosis, "random-access")
        (one,) = of_rule(diagnosis, "redundant-writes")
        assert one.evidence["written_bytes"] - one.evidence["again_bytes"] == 16


def test_headers_in_replaced_state_files_are_counted_once(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        for number in range(60):
            log.open(f"/data/tmp{number * 7919:06x}", flags="O_RDWR|O_CREAT|O_EXCL", took_us=30)
            for record in range(60):
                pwrite(log, 4096, 65536 + record * 4096)
                pwrite(log, 64, 0)
            log.close()
            log.call(f'rename("/data/tmp{number * 7919:06x}", "/data/state.bin")', "0", 40)

    (found,) = of_rule(of_log(tmp_path, write), "redundant-writes")
    assert found.evidence["time_ns"] == pytest.approx(59 * (120 * 20 + 70) * 1000, rel=0.01)


def test_a_file_renamed_each_time_has_no_rewritten_header(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        for number in range(15):
            log.open("/data/out.tmp", flags="O_RDWR|O_CREAT|O_TRUNC", took_us=30)
            for piece in range(60 if number else 1500):
                pwrite(log, 4096, piece * 4096, 200)
            log.close()
            log.call(f'rename("/data/out.tmp", "/data/out-{number}")', "0", 40)

    assert not of_rule(of_log(tmp_path, write), "redundant-writes")


def replaced(kept: str, reads: int) -> Callable[[Trace], None]:
    """Returns a program that writes its state under a new name each time. KEPT: "state" renames the file to
    one fixed name; "each" renames it to a different name each time; "backup" first renames the previous file
    to a backup; "link" first links it to a name that stays."""

    def write(log: Trace) -> None:
        for number in range(100):
            log.open(f"/data/tmp{number * 7919:06x}", flags="O_RDWR|O_CREAT|O_EXCL", took_us=30)
            log.write(65536, 30)
            log.close()
            if kept == "backup" and number:
                log.call('rename("/data/state.bin", "/data/state.old")', "0", 40)
            name = f"state-{number}.bin" if kept == "each" else "state.bin"
            log.call(f'rename("/data/tmp{number * 7919:06x}", "/data/{name}")', "0", 400)
            if kept == "link":
                log.call(f'link("/data/state.bin", "/data/step-{number}.bin")', "0", 10)
            for _ in range(reads):
                log.open(f"/data/{name}", flags="O_RDONLY")
                log.call("mmap(NULL, 65536, PROT_READ, MAP_SHARED, 3, 0)", "0x7f0000000000", 5)
                log.close()

    return write


@pytest.mark.parametrize(
    ("kept", "reads", "found"),
    [("state", 0, 1), ("each", 0, 0), ("backup", 0, 0), ("link", 0, 0), ("state", 1, 0)],
    ids=["one state", "all are kept", "the last one is kept", "all are linked", "mapped each time"],
)
def test_a_state_file_that_replaces_the_last_one_is_found(
    tmp_path: Path, kept: str, reads: int, found: int
) -> None:
    diagnosis = of_log(tmp_path, replaced(kept, reads), 100_000)
    rewritten = of_rule(diagnosis, "redundant-writes")
    assert len(rewritten) == found
    for one in rewritten:
        assert one.files == ("/data/state.bin",)
        assert one.evidence["written_bytes"] - one.evidence["again_bytes"] == 65536
        assert one.cost_seconds == pytest.approx(0.046 * 99 / 100, rel=0.02)


def states(name: str, keeps: bool, reads: bool = False) -> Callable[[Trace], None]:
    """Returns a program that writes its state for each step, under a temporary name until the file is
    complete."""

    def write(log: Trace) -> None:
        for number in range(40):
            log.open("/data/new.tmp", flags="O_WRONLY|O_CREAT|O_TRUNC")
            log.write(MIB, 500)
            log.close()
            log.call(f'rename("/data/new.tmp", "/data/{name.format(number)}")', "0", 5)
        if reads:
            log.open(f"/data/{name.format(7)}", flags="O_RDONLY")
            log.read(MIB, 100)
            log.close()
        for number in range(0 if keeps else 40):
            log.call(f'unlink("/data/{name.format(number)}")', "0", 5)

    return write


@pytest.mark.parametrize(
    ("write", "rules"),
    [
        (states("state-{}", keeps=True), []),
        (states("state", keeps=True), ["redundant-writes"]),
        (states("state-{}", keeps=False), ["unused-output"]),
        (states("state-{}", keeps=False, reads=True), []),
    ],
    ids=["kept", "replaced", "deleted", "read"],
)
def test_a_renamed_file_is_the_same_file(
    tmp_path: Path, write: Callable[[Trace], None], rules: list[str]
) -> None:
    found = blamed(of_log(tmp_path, write))
    assert [one for one in found if one in ("redundant-writes", "unused-output")] == rules


def written_whole(folder: Path, times: int, hung_us: int = 0) -> Path:
    log = Trace()
    for number in range(times):
        log.open(
            "/data/state.bin",
            took_us=hung_us if number == 3 and hung_us else 2000,
            flags="O_WRONLY|O_CREAT|O_TRUNC",
        )
        log.write(3000, 10)
        log.close(1000)
    return log.imported(folder)


def test_reopening_for_writing_is_part_of_the_cost(tmp_path: Path) -> None:
    diagnosis = diagnosed(written_whole(tmp_path, 100))
    assert blamed(diagnosis)[:1] == ["redundant-writes"]
    (found,) = of_rule(diagnosis, "redundant-writes")
    assert found.evidence["opens"] == 100
    assert found.cost_seconds == pytest.approx(99 * (0.002 + 0.001 + 0.00001), rel=0.01)


def test_a_hanging_open_is_not_part_of_the_cost(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(written_whole(tmp_path, 30, hung_us=900_000)), "redundant-writes")
    assert found.cost_seconds == pytest.approx(29 * 0.00301, rel=0.01)


def test_writes_that_another_program_reads_are_not_redundant(tmp_path: Path) -> None:
    """A compiler writes the file, and the assembler reads it."""
    log = Trace()
    for number in range(60):
        pid = FIRST + 1 + number
        log.open("/tmp/ccAb12.s", took_us=2000, flags="O_WRONLY|O_CREAT|O_TRUNC")
        log.write(3000, 200)
        log.close()
        log.start(pid, "/usr/bin/as")
        log.open("/tmp/ccAb12.s", flags="O_RDONLY", pid=pid)
        log.read(3000, 10, pid=pid)
        log.end(pid)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "redundant-writes")
    assert found.cost_seconds == pytest.approx(59 * 0.0002, rel=0.05)


@pytest.mark.parametrize(
    ("flags", "rule"),
    [("O_WRONLY|O_CREAT|O_TRUNC", "redundant-writes"), ("O_WRONLY|O_APPEND", "open-close-loop")],
    ids=["anew", "more"],
)
def test_truncating_opens_are_part_of_the_rewriting(tmp_path: Path, flags: str, rule: str) -> None:
    def write(log: Trace) -> None:
        for _ in range(300):
            log.open("/data/boards.json", flags=flags, took_us=200)
            log.write(9000, 60)
            log.close(10)
            log.pause(200)

    assert blamed(of_log(tmp_path, write)) == [rule]
