"""Faults that are spread over many files, hidden behind a library's buffer, or cost more around the calls
than in them; and neighbours without fault."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from iodock.program.findings import Diagnosis, Severity
from iodock.program.rules import costs
from iodock.program.rules.facts import Facts
from iodock.program.rules.places import Faults
from metadata_log import FIRST, Trace, diagnosed, of_rule

FILES = 100


def any_order(count: int, of: int) -> list[int]:
    """Numbers below OF, in no order."""
    chosen = random.Random(count)
    return [chosen.randrange(of) for _ in range(count)]


def worth(diagnosis: Diagnosis) -> list[str]:
    return [one.rule for one in diagnosis.worth_changing]


def spread(folder: Path, each: Callable[[Trace], None], flags: str = "O_RDONLY", files: int = FILES) -> Path:
    """A log in which EACH is done to many files, one after the other."""
    log = Trace()
    for number in range(files):
        log.open(f"/data/station-{number}.dat", flags=flags)
        each(log)
        log.close()
    return log.imported(folder)


def at(log: Trace, call: str, size: int, offset: int, took_us: int) -> None:
    log.call(f'{call}(3, ""..., {size}, {offset})', str(size), took_us)


def jumping(log: Trace) -> None:
    for place in any_order(40, 4000):
        at(log, "pread64", 64, place * 4096, 50)


def from_the_end(log: Trace) -> None:
    for place in reversed(range(40)):
        at(log, "pread64", 512, place * 512, 50)


def asking_where(log: Trace) -> None:
    for number in range(40):
        log.call("lseek(3, 0, SEEK_CUR)", str(number * 65536), 50)
        log.read(65536, 10)


def off_the_page(log: Trace) -> None:
    for place in range(40):
        at(log, "pwrite64", 4096, place * 8192 + 512, 50)


def header_first(log: Trace) -> None:
    for number in range(1, 20):
        at(log, "pread64", 4096, 0, 50)
        at(log, "pread64", 512, number * 65536, 10)


def read_back(log: Trace) -> None:
    log.write(262144, 200)
    at(log, "pread64", 262144, 0, 200)


def in_three_writes(log: Trace) -> None:
    for _ in range(3):
        log.write(200, 500)


@pytest.mark.parametrize(
    ("rule", "each", "flags", "count"),
    [
        ("random-access", jumping, "O_RDONLY", 40 * FILES),
        ("backward-access", from_the_end, "O_RDONLY", 40 * FILES),
        ("seek-storm", asking_where, "O_RDONLY", 37 * FILES),
        ("unaligned-requests", off_the_page, "O_RDWR", 39 * FILES),
        ("read-after-write", read_back, "O_RDWR|O_CREAT", FILES),
        ("synchronous-flags", in_three_writes, "O_WRONLY|O_CREAT|O_SYNC", 3 * FILES),
        ("redundant-reads", header_first, "O_RDONLY", 18 * FILES),
    ],
)
def test_a_fault_may_be_spread_over_many_files(
    tmp_path: Path, rule: str, each: Callable[[Trace], None], flags: str, count: int
) -> None:
    diagnosis = diagnosed(spread(tmp_path, each, flags))
    assert rule in worth(diagnosis)
    (found,) = of_rule(diagnosis, rule)
    assert found.file_count == FILES
    assert found.evidence["count"] == pytest.approx(count, rel=0.05)


@pytest.mark.parametrize("each", [jumping, from_the_end, asking_where, off_the_page])
def test_a_few_files_of_them_are_not_worth_a_word(tmp_path: Path, each: Callable[[Trace], None]) -> None:
    found = worth(diagnosed(spread(tmp_path, each, "O_RDWR", files=4)))
    assert not {"random-access", "backward-access", "seek-storm", "unaligned-requests"} & set(found)


def test_equal_steps_back_are_backward(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/history", flags="O_RDONLY")
    for place in reversed(range(1000)):
        at(log, "pread64", 512, place * 1024, 50)
    assert worth(diagnosed(log.imported(tmp_path))) == ["backward-access"]


def buffered_backward(log: Trace) -> None:
    """As perl and C++ streams do it: a whole buffer is read for each record."""
    for place in reversed(range(1000)):
        at(log, "pread64", 8192, place * 200, 50)


def buffered_lookups(log: Trace) -> None:
    """As C's stdio does it: buffers begin at pages, and each page is read for many of its records."""
    for page in any_order(4000, 1000):
        at(log, "pread64", 4096, page * 4096, 50)


@pytest.mark.parametrize(
    ("rule", "each"), [("backward-access", buffered_backward), ("random-access", buffered_lookups)]
)
def test_what_buffers_fetch_again_has_the_order_as_its_cause(
    tmp_path: Path, rule: str, each: Callable[[Trace], None]
) -> None:
    diagnosis = diagnosed(spread(tmp_path, each, files=1))
    assert worth(diagnosis)[:1] == [rule]
    assert not of_rule(diagnosis, "redundant-reads")


def test_a_header_between_any_records_is_read_again(tmp_path: Path) -> None:
    def each(log: Trace) -> None:
        for record in any_order(2000, 2000):
            at(log, "pread64", 4096, 0, 50)
            at(log, "pread64", 512, 8192 + record * 512, 10)

    assert worth(diagnosed(spread(tmp_path, each, files=1)))[:1] == ["redundant-reads"]


def test_records_that_are_changed_in_place_are_accessed_at_random(tmp_path: Path) -> None:
    def each(log: Trace) -> None:
        for place in any_order(2000, 65536):
            at(log, "pread64", 8, place * 8, 50)
            at(log, "pwrite64", 8, place * 8, 5)

    assert "random-access" in worth(diagnosed(spread(tmp_path, each, "O_RDWR", files=1)))


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


def test_opening_to_write_anew_is_charged_with_the_writes(tmp_path: Path) -> None:
    diagnosis = diagnosed(written_whole(tmp_path, 100))
    assert worth(diagnosis)[:1] == ["redundant-writes"]
    (found,) = of_rule(diagnosis, "redundant-writes")
    assert found.evidence["opens"] == 100
    assert found.cost_seconds == pytest.approx(99 * (0.002 + 0.001 + 0.00001), rel=0.01)


def test_an_opening_that_hung_is_not_charged(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(written_whole(tmp_path, 30, hung_us=900_000)), "redundant-writes")
    assert found.cost_seconds == pytest.approx(29 * 0.00301, rel=0.01)


def test_what_another_program_reads_in_between_was_needed(tmp_path: Path) -> None:
    """A compiler's output, which the assembler reads."""
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


def test_small_files_written_in_order_may_have_odd_edges(tmp_path: Path) -> None:
    """As tar does it."""

    def each(log: Trace) -> None:
        log.write(9728, 50)
        for _ in range(12):
            log.write(10240, 50)

    assert not of_rule(diagnosed(spread(tmp_path, each, "O_WRONLY|O_CREAT")), "unaligned-requests")


def synced_once(folder: Path, size: int) -> Path:
    log = Trace()
    for number in range(40):
        log.open(f"/data/new/{number}", flags="O_WRONLY|O_CREAT")
        log.write(size, 10)
        log.call("fsync(3)", "0", 5000)
        log.close()
    return log.imported(folder)


def test_a_sync_for_each_of_many_small_files(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(synced_once(tmp_path, 2000)), "sync-heavy")
    assert found.evidence["count"] == 40
    assert found.cost_seconds == pytest.approx(0.2, rel=0.01)


def test_a_sync_for_each_of_many_large_files_is_left_alone(tmp_path: Path) -> None:
    assert not of_rule(diagnosed(synced_once(tmp_path, 1 << 20)), "sync-heavy")


def test_syncs_of_a_folder_count(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/new", flags="O_RDONLY|O_DIRECTORY")
    for number in range(40):
        log.open(f"/data/new/{number}", fd=4, flags="O_WRONLY|O_CREAT")
        log.write(32, 10, fd=4)
        log.close(fd=4)
        log.call("fsync(3)", "0", 5000)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "sync-heavy")
    assert found.cost_seconds == pytest.approx(39 * 0.005, rel=0.01)


def scratch(folder: Path, deleted: bool, name: str) -> Path:
    log = Trace()
    for number in range(20):
        log.open(f"/scratch/{name}{number:02d}", flags="O_RDWR|O_CREAT|O_EXCL")
        log.write(1 << 20, 4000)
        at(log, "pread64", 1 << 20, 0, 1000)
        log.close()
        if deleted:
            log.call(f'unlink("/scratch/{name}{number:02d}")', took_us=1000)
    return log.imported(folder)


@pytest.mark.parametrize(
    ("deleted", "name", "seconds"), [(True, "part-", 0.12), (False, "part-", 0.02), (True, "sortQ7xb", 0.02)]
)
def test_scratch_files_that_are_deleted_need_not_be_written(
    tmp_path: Path, deleted: bool, name: str, seconds: float
) -> None:
    (found,) = of_rule(diagnosed(scratch(tmp_path, deleted, name)), "read-after-write")
    assert found.cost_seconds == pytest.approx(seconds, rel=0.01)


class Computed(Facts):
    """Facts of which only the processes' CPU time is asked."""

    def __init__(self, cpu_ns: int | None) -> None:
        object.__setattr__(self, "cpu_ns", cpu_ns)
        object.__setattr__(self, "tracing_ns", 0)

    def rows(self, sql: str) -> list[dict[str, int | None]]:
        return [{"ns": self.cpu_ns}]


@pytest.mark.parametrize(
    ("name", "moved", "cpu_ns", "expected"),
    [
        ("/data/state.json", 1_100_000, 10**9, 5_000_000),
        ("/data/state.json", 1_100_000, 1000, 1000),
        ("/data/state.json", 1_100_000, None, 0),
        ("/data/state.json", 2_000_000, 10**9, 0),
        ("/data/state.bin", 1_100_000, 10**9, 0),
    ],
)
def test_text_is_formatted_and_parsed_again(name: str, moved: int, cpu_ns: int | None, expected: int) -> None:
    faults = Faults([{"place": 1, "name": name, "again": 1_000_000, "bytes": moved}])
    assert costs.text_ns(Computed(cpu_ns), faults, 1) == expected


def table_asked(folder: Path, into: str, looks_us: int) -> Path:
    """A shell starts `cat table | INTO` thirty times."""
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


def test_a_table_that_goes_through_a_pipe_into_few_bytes(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(table_asked(tmp_path, "/usr/bin/grep", 8000)), "whole-file-for-a-few-bytes")
    assert found.severity is Severity.MEDIUM
    assert found.evidence["times"] == 30
    assert found.cost_seconds == pytest.approx(29 * (8 * 0.00004 + 0.008), rel=0.05)


def test_what_a_shell_keeps_of_a_pipe_was_needed(tmp_path: Path) -> None:
    found = diagnosed(table_asked(tmp_path, "/usr/bin/dash", 8000))
    assert not of_rule(found, "whole-file-for-a-few-bytes")


def test_long_computing_after_the_reading_is_not_charged(tmp_path: Path) -> None:
    (found,) = of_rule(
        diagnosed(table_asked(tmp_path, "/usr/bin/grep", 80_000)), "whole-file-for-a-few-bytes"
    )
    assert found.cost_seconds == pytest.approx(29 * 8 * 0.00002, rel=0.05)
