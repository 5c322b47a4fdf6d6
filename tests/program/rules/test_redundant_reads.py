"""Tests the rule `redundant-reads`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from iodock.program.findings import Severity
from log_shapes import any_order, at, columns, spread
from metadata_log import Trace
from timed_strace import StraceLog


def header_reread(log: StraceLog, again: bool, tells: int = 1) -> None:
    """Adds an event reader that queries its position, reads 8 KiB there, goes back, and reads them again."""
    log.open("/data/events.dat")
    for number in range(3000):
        place = number % 120 * 8192
        log.seek(place, 20)
        for _ in range(tells):
            log.tell(place, 20)
        log.read(8192, 30)
        if again:
            log.seek(place, 20)
            log.read(8192, 30)


def test_repeated_header_reads_are_found_even_if_halved(tmp_path: Path) -> None:
    """A case of Super-Kamiokande: the program reads 50 times the file's size, with 1.5 seeks per read, and
    then half of that, with 2 seeks per read."""
    costs = []
    for name, again in (("before", True), ("after", False)):
        log = StraceLog()
        header_reread(log, again)
        (tmp_path / name).mkdir()
        diagnosis = diagnosed(log.imported(tmp_path / name))
        (reads,), (seeks,) = (of_rule(diagnosis, rule) for rule in ("redundant-reads", "seek-storm"))
        assert not {Severity.NOTE} & {reads.severity, seeks.severity}
        costs.append((reads.evidence["factor"], seeks.evidence["seeks"], seeks.evidence["transfers"]))
    assert costs == [(50.0, 9000, 6000), (25.0, 6000, 3000)]


def test_reading_each_event_once_gives_no_finding(tmp_path: Path) -> None:
    log = StraceLog()
    log.open("/data/events.dat")
    for _ in range(3000):
        log.read(8192, 30)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def test_readers_of_the_same_input_are_counted(tmp_path: Path) -> None:
    log = StraceLog()
    for number in range(6):
        log.child(300 + number, "/opt/site/bin/worker")
        log.open("/data/input")
        for _ in range(20):
            log.read(65536, 1000)
        log.close()
        log.ends()
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "redundant-reads")
    assert found.message.values["processes"] == 6
    assert found.cost_seconds == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize(
    "name",
    [
        "/usr/lib/libx.so.6",
        "/opt/tool/share/table",
        "/home/me/lib/module.py",
        "/proc/self/maps",
        "/etc/services",
    ],
)
def test_program_files_may_be_read_by_many_processes(name: str, tmp_path: Path) -> None:
    log = StraceLog()
    for number in range(30):
        log.child(300 + number, "/opt/site/bin/worker")
        log.open(name)
        for _ in range(2):
            log.read(65536, 1000)
        log.close()
        log.ends()
    rules = {one.rule for one in diagnosed(log.imported(tmp_path)).findings}
    assert not rules & {"redundant-reads", "whole-file-for-a-few-bytes"}


def test_a_file_with_a_journal_counts_as_a_database(tmp_path: Path) -> None:
    log = StraceLog()
    log.open("/data/state-journal", "O_RDWR|O_CREAT", fd=4)
    log.write(512, fd=4)
    log.open("/data/state")
    for _ in range(2000):
        log.pread(1024, 0, 100)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def test_different_tools_may_read_the_same_input(tmp_path: Path) -> None:
    log = StraceLog()
    for number, tool in enumerate(("sort", "wc", "diff", "awk", "md5sum", "gzip")):
        log.child(300 + number, f"/usr/bin/{tool}")
        log.open("/data/input")
        for _ in range(20):
            log.read(65536, 1000)
        log.close()
        log.ends()
    assert not of_rule(diagnosed(log.imported(tmp_path)), "redundant-reads")


def test_repeated_passes_over_the_same_data_are_found(tmp_path: Path) -> None:
    diagnosis = columns(tmp_path, size=4096, step=0)
    (found,) = of_rule(diagnosis, "redundant-reads")
    assert found.evidence["factor"] == 40
    assert not of_rule(diagnosis, "random-access")


@pytest.mark.parametrize(("program", "found"), [("/usr/local/go/bin/go", False), ("/home/a/model", True)])
def test_build_tools_may_read_their_output_again(tmp_path: Path, program: str, found: bool) -> None:
    log = Trace()
    log.call(f'execve("{program}", ["{program}"], 0x7f /* 9 vars */)')
    for _ in range(4):
        log.open("/data/b010/package.a", flags="O_RDONLY")
        for _ in range(16):
            log.read(65536, 2000)
        log.close()
    assert bool(of_rule(diagnosed(log.imported(tmp_path)), "redundant-reads")) == found


def test_a_header_read_between_records_is_found(tmp_path: Path) -> None:
    def each(log: Trace) -> None:
        for record in any_order(2000, 2000):
            at(log, "pread64", 4096, 0, 50)
            at(log, "pread64", 512, 8192 + record * 512, 10)

    assert blamed(diagnosed(spread(tmp_path, each, files=1)))[:1] == ["redundant-reads"]


def pages_of(folder: Path, places: list[int]) -> Path:
    log = Trace()
    log.open("/data/diary.db", flags="O_RDONLY")
    for place in places:
        log.call(f'pread64(3, ""..., 4096, {4096 * place})', "4096", 20)
    return log.imported(folder)


def test_reading_a_whole_database_per_query_is_found(tmp_path: Path) -> None:
    path = pages_of(tmp_path, [place for _ in range(10) for place in range(1000)])
    (found,) = of_rule(diagnosed(path), "redundant-reads")
    assert found.evidence["factor"] == 10


def test_a_database_may_read_its_pages_repeatedly(tmp_path: Path) -> None:
    path = pages_of(tmp_path, [number * 617 % 1000 for number in range(10_000)])
    assert not of_rule(diagnosed(path), "redundant-reads")
