"""Rules on data at their limits: what they leave alone, and what stays found after half of it went."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from data_faults import MIB, large_reads, made, small_reads
from iodock.program.findings import Severity
from iodock.shared.settings import FileSystem, Settings
from timed_strace import StraceLog, diagnosed, mounted, of_rule


def test_a_rate_beyond_memory_is_only_noted(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.open("/data/a")
        for _ in range(100):
            log.read(8 * MIB, 500)

    diagnosis = diagnosed(made(build, tmp_path))
    (found,) = of_rule(diagnosis, "cache-speed")
    assert found.severity is Severity.NOTE and found.gain is None
    assert found.evidence["rate_bytes_per_s"] == pytest.approx(8 * MIB / 500e-6)
    assert not diagnosis.worth_changing


def header_reread(log: StraceLog, again: bool, tells: int = 1) -> None:
    """An event reader that asks for its position, reads 8 KiB at it, goes back, and reads them again."""
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


def test_a_header_read_again_stays_found_after_half_of_it_went(tmp_path: Path) -> None:
    """As at Super-Kamiokande: 50 times the file, 1.5 seeks per read; then half of it, and 2 per read."""
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


def test_it_is_gone_when_each_event_is_read_once_without_seeks(tmp_path: Path) -> None:
    log = StraceLog()
    log.open("/data/events.dat")
    for _ in range(3000):
        log.read(8192, 30)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def test_ranks_or_workers_that_each_read_the_input_are_told_as_many(tmp_path: Path) -> None:
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
def test_what_belongs_to_programs_is_read_by_many_without_blame(name: str, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    "name", ["/data/run.db", "/data/index.sqlite", "/home/me/code/.git/objects/pack/p.pack"]
)
def test_databases_may_jump_and_read_again(name: str, tmp_path: Path) -> None:
    log = StraceLog()
    log.open(name)
    place = 1
    for _ in range(3000):
        place = place * 16807 % 2147483647
        log.pread(4096, place % 200 * 4096, 100)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def test_a_file_beside_its_journal_is_a_database(tmp_path: Path) -> None:
    log = StraceLog()
    log.open("/data/state-journal", "O_RDWR|O_CREAT", fd=4)
    log.write(512, fd=4)
    log.open("/data/state")
    for _ in range(2000):
        log.pread(1024, 0, 100)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def test_stalls_of_the_disk_are_not_charged_to_small_requests(tmp_path: Path) -> None:
    """Each 32nd read waits for the disk, as it would in large requests too."""
    log = StraceLog()
    log.open("/data/a")
    for number in range(3200):
        log.read(2048, 5000 if number % 32 == 0 else 5)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "small-requests")
    assert found.cost_seconds is not None and found.cost_seconds < 0.025


def test_requests_of_many_files_opened_once_each_are_not_small_requests(tmp_path: Path) -> None:
    log = StraceLog()
    for number in range(2000):
        log.open(f"/data/set/part{number}")
        log.read(300, 100)
        log.close()
    assert not of_rule(diagnosed(log.imported(tmp_path)), "small-requests")


def test_a_network_file_system_asks_for_larger_requests(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.open("/data/a")
        for _ in range(2001):
            log.read(8192, 100)

    store = made(build, tmp_path)
    assert not of_rule(diagnosed(store), "small-requests")
    (found,) = of_rule(diagnosed(mounted(store, "/data", "nfs4")), "small-requests")
    assert found.evidence["count"] == 2000


def test_thresholds_are_settings(tmp_path: Path) -> None:
    store = made(small_reads, tmp_path)
    raised = Settings(rules={"small-requests": {"least_count": 5000}})
    assert not of_rule(diagnosed(store, raised), "small-requests")


def test_the_link_of_a_site_makes_a_slower_rate_a_cache(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.open("/data/a")
        for _ in range(100):
            log.read(MIB, 1000)

    store = made(build, tmp_path)
    slow_link = Settings(file_systems={"/data": FileSystem(link_bytes_per_s=125e6)})
    assert not of_rule(diagnosed(store), "cache-speed")
    (found,) = of_rule(diagnosed(mounted(store, "/data", "nfs4"), slow_link), "cache-speed")
    assert found.severity is Severity.NOTE


def test_mmap_is_said_not_to_be_seen(tmp_path: Path) -> None:
    silent = {one.rule for one in diagnosed(made(large_reads, tmp_path)).silent}
    assert "mmap-random" in silent


def test_tools_that_each_read_the_input_have_their_reasons(tmp_path: Path) -> None:
    log = StraceLog()
    for number, tool in enumerate(("sort", "wc", "diff", "awk", "md5sum", "gzip")):
        log.child(300 + number, f"/usr/bin/{tool}")
        log.open("/data/input")
        for _ in range(20):
            log.read(65536, 1000)
        log.close()
        log.ends()
    assert not of_rule(diagnosed(log.imported(tmp_path)), "redundant-reads")


def test_each_open_may_meet_the_end_twice(tmp_path: Path) -> None:
    def build(reads_of_nothing: int) -> Callable[[StraceLog], None]:
        def parts(log: StraceLog) -> None:
            for number in range(1500):
                log.open(f"/data/part{number}")
                log.read(4096, 10)
                for _ in range(reads_of_nothing):
                    log.read(0, 20, asked=4096)
                log.close()

        return parts

    for reads_of_nothing, count in ((2, None), (10, 1500 * 8)):
        (tmp_path / str(reads_of_nothing)).mkdir()
        found = of_rule(
            diagnosed(made(build(reads_of_nothing), tmp_path / str(reads_of_nothing))), "polling-at-end"
        )
        assert [one.evidence["count"] for one in found] == ([] if count is None else [count])


def test_pipes_may_be_asked_at_their_end(tmp_path: Path) -> None:
    def build(log: StraceLog) -> None:
        log.call("pipe2([3, 4], 0) = 0", 1)
        for _ in range(3000):
            log.read(0, 50, asked=4096)

    assert of_rule(diagnosed(made(build, tmp_path)), "polling-at-end") == []
