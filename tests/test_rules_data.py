"""Rules on data: what each finds, counts and charges in logs with known times, and that its twin is clean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from iodock.findings import Severity
from iodock.settings import FileSystem, Settings
from iodock.store import Store
from timed_strace import StraceLog, diagnosed, mounted, of_rule

MIB = 1 << 20
Build = Callable[[StraceLog], None]


@dataclass(frozen=True)
class Case:
    """A fault, what is to be said of it, and the same work done well."""

    rule: str
    fault: Build
    count: int
    seconds: float
    """Cost."""
    files: tuple[str, ...]
    clean: Build
    name: str = ""


def small_reads(log: StraceLog) -> None:
    log.open("/data/a")
    for _ in range(2001):
        log.read(100, 100)


def large_reads(log: StraceLog) -> None:
    log.open("/data/a")
    for _ in range(20):
        log.read(65536, 10_000)


def small_writes(log: StraceLog) -> None:
    log.open("/data/out", "O_WRONLY|O_CREAT")
    for _ in range(5001):
        log.write(50, 20)


def page_writes(log: StraceLog) -> None:
    log.open("/data/out", "O_WRONLY|O_CREAT")
    for _ in range(5001):
        log.write(4096, 20)


def reads_of_a_byte(log: StraceLog) -> None:
    log.open("/data/list")
    for _ in range(5000):
        log.read(1, 20)


def few_reads_of_a_byte(log: StraceLog) -> None:
    log.open("/data/list")
    for _ in range(200):
        log.read(1, 20)


def jumps(log: StraceLog) -> None:
    log.open("/data/table")
    place = 1
    for _ in range(1000):
        place = place * 16807 % 2147483647
        log.pread(4096, place % 100_000 * 4096, 100)


def sorted_jumps(log: StraceLog) -> None:
    log.open("/data/table")
    for number in range(1000):
        log.pread(4096, number * 40960, 100)


def blocks_backward(log: StraceLog) -> None:
    log.open("/data/history")
    for number in range(500, 0, -1):
        log.pread(4096, number * 4096, 200)


def blocks_forward(log: StraceLog) -> None:
    log.open("/data/history")
    for number in range(500):
        log.pread(4096, number * 4096, 200)


def unaligned(log: StraceLog) -> None:
    log.open("/data/records", "O_RDWR")
    for number in range(1000):
        log.pwrite(8192, 100 + number * 16384, 90)


def aligned(log: StraceLog) -> None:
    log.open("/data/records", "O_RDWR")
    for number in range(1000):
        log.pwrite(8192, number * 16384, 90)


def read_ten_times(log: StraceLog) -> None:
    for _ in range(10):
        log.open("/data/in")
        for _ in range(16):
            log.read(65536, 1000)
        log.close()


def read_once(log: StraceLog) -> None:
    log.open("/data/in")
    for _ in range(160):
        log.read(65536, 1000)


def rewritten(log: StraceLog) -> None:
    log.open("/data/state", "O_WRONLY|O_CREAT")
    for _ in range(101):
        log.pwrite(1000, 0, 1000)


def appended(log: StraceLog) -> None:
    log.open("/data/state", "O_WRONLY|O_CREAT")
    for _ in range(101):
        log.write(1000, 1000)


def read_back(log: StraceLog) -> None:
    log.open("/data/scratch", "O_RDWR|O_CREAT")
    for _ in range(20):
        log.write(65536, 100)
    log.seek(0)
    for _ in range(20):
        log.read(65536, 10_000)


def read_from_elsewhere(log: StraceLog) -> None:
    log.open("/data/scratch", "O_RDWR|O_CREAT")
    for _ in range(20):
        log.write(65536, 100)
    log.open("/data/in", fd=4)
    for _ in range(20):
        log.read(65536, 10_000, fd=4)


def tells(log: StraceLog) -> None:
    log.open("/data/events")
    for number in range(2000):
        log.tell(number * 8192, 50)
        log.read(8192, 10)


def seeks_that_lead_on(log: StraceLog) -> None:
    log.open("/data/events")
    for number in range(2000):
        log.seek(number * 81920, 50)
        log.read(8192, 10)


def lines_to_stdout(log: StraceLog) -> None:
    log.open("/data/out.txt", "O_WRONLY|O_CREAT", fd=5)
    log.call("dup2(5, 1) = 1", 1)
    for _ in range(4000):
        log.write(40, 30, fd=1)


def blocks_to_stdout(log: StraceLog) -> None:
    log.open("/data/out.txt", "O_WRONLY|O_CREAT", fd=5)
    log.call("dup2(5, 1) = 1", 1)
    for _ in range(40):
        log.write(4096, 3000, fd=1)


def synchronous(log: StraceLog) -> None:
    log.open("/data/log", "O_WRONLY|O_CREAT|O_DSYNC")
    for _ in range(100):
        log.write(4096, 5000)


def synchronous_once(log: StraceLog) -> None:
    log.open("/data/log", "O_WRONLY|O_CREAT")
    for _ in range(100):
        log.write(4096, 5)
    log.call("fsync(3) = 0", 5000)


def direct_refused(log: StraceLog) -> None:
    log.open("/data/direct", "O_WRONLY|O_CREAT|O_DIRECT")
    for _ in range(100):
        log.call('write(3, ""..., 1000) = -1 EINVAL (Invalid argument)', 1000)


def direct_fitting(log: StraceLog) -> None:
    log.open("/data/direct", "O_WRONLY|O_CREAT|O_DIRECT")
    for _ in range(100):
        log.write(4096, 1000)


def copied(log: StraceLog) -> None:
    log.open("/data/from")
    log.open("/data/to", "O_WRONLY|O_CREAT", fd=4)
    for _ in range(100):
        log.read(65536, 1000)
        log.write(65536, 2000, fd=4)


def changed_on_the_way(log: StraceLog) -> None:
    log.open("/data/from")
    log.open("/data/to", "O_WRONLY|O_CREAT", fd=4)
    for _ in range(100):
        log.read(65536, 1000)
        log.now += 3000
        log.write(65536, 2000, fd=4)


def never_read(log: StraceLog) -> None:
    log.open("/data/tmp1", "O_WRONLY|O_CREAT")
    for _ in range(40):
        log.write(65536, 10_000)
    log.close()
    log.call('unlink("/data/tmp1") = 0', 1000)


def read_before_it_went(log: StraceLog) -> None:
    log.open("/data/tmp1", "O_RDWR|O_CREAT")
    for _ in range(40):
        log.write(65536, 10_000)
    log.pread(4096, 0)
    log.close()
    log.call('unlink("/data/tmp1") = 0', 1000)


def grep_per_record(log: StraceLog) -> None:
    for number in range(20):
        log.child(200 + number, "/usr/bin/grep")
        log.open("/data/catalogue")
        for _ in range(4):
            log.read(65536, 1000)
        log.close()
        log.call('write(1, ""..., 20) = 20', 1)
        log.ends()


def grep_of_all(log: StraceLog) -> None:
    log.child(200, "/usr/bin/grep")
    log.open("/data/catalogue")
    for _ in range(80):
        log.read(65536, 1000)
    log.call('write(1, ""..., 400) = 400', 1)
    log.ends()


CASES = [
    # 2,000 follow another; they could be one read, and 200 kB take 40 us from memory.
    Case("small-requests", small_reads, 2000, 0.2 - 0.0001 - 0.00004, ("/data/a",), large_reads),
    Case(
        "small-requests", small_writes, 5000, 0.1 - 0.00002 - 0.000125, ("/data/out",), page_writes, "writes"
    ),
    Case("bytewise-read", reads_of_a_byte, 5000, 0.1, ("/data/list",), few_reads_of_a_byte),
    # 4 MB in 4 reads of 100 us, and 0.82 ms from memory.
    Case("random-access", jumps, 1000, 0.1 - 0.0004 - 0.00082, ("/data/table",), sorted_jumps),
    Case("backward-access", blocks_backward, 500, 0.1 - 0.0004 - 0.00041, ("/data/history",), blocks_forward),
    # Three pages are touched in place of two.
    Case("unaligned-requests", unaligned, 999, 0.02997, ("/data/records",), aligned),
    Case("redundant-reads", read_ten_times, 144, 0.144, ("/data/in",), read_once),
    Case("redundant-writes", rewritten, 100, 0.1, ("/data/state",), appended),
    Case("read-after-write", read_back, 20, 0.2, ("/data/scratch",), read_from_elsewhere),
    Case("seek-storm", tells, 1997, 0.09985, ("/data/events",), seeks_that_lead_on),
    Case("stdout-unbuffered", lines_to_stdout, 4000, 0.12, ("/data/out.txt",), blocks_to_stdout),
    # 400 kB would take one write of 5 ms and 0.2 ms into memory.
    Case("synchronous-flags", synchronous, 100, 0.5 - 0.005 - 0.0002, ("/data/log",), synchronous_once),
    Case("direct-io-unaligned", direct_refused, 100, 0.1, ("/data/direct",), direct_fitting),
    Case("copy-through-user-space", copied, 200, 0.1, ("/data/to",), changed_on_the_way),
    Case("unused-output", never_read, 43, 0.401, ("/data/tmp1",), read_before_it_went),
    # One of twenty readings is needed.
    Case("whole-file-for-a-few-bytes", grep_per_record, 80, 0.076, ("/data/catalogue",), grep_of_all),
]
IDS = [f"{case.rule}{'-' if case.name else ''}{case.name}" for case in CASES]


def made(build: Build, folder: Path, durations: bool = True) -> Path:
    log = StraceLog()
    build(log)
    return log.imported(folder, durations=durations)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_fault_is_found_counted_charged_and_named_first(case: Case, tmp_path: Path) -> None:
    store = made(case.fault, tmp_path)
    diagnosis = diagnosed(store)
    assert [one.rule for one in diagnosis.worth_changing][:1] == [case.rule]
    (found,) = of_rule(diagnosis, case.rule)
    assert found.evidence["count"] == case.count
    assert found.cost_seconds == pytest.approx(case.seconds, rel=0.01)
    assert found.cost_share == pytest.approx(case.seconds, rel=0.05)
    assert found.files == case.files
    with Store.open(store) as opened:
        rows = opened.engine.user_query(found.query).to_pylist()
    assert case.files[0] in {row["file"] for row in rows}, "its query shows the file"


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_same_work_done_well_is_not_blamed(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.clean, tmp_path))
    assert [one.rule for one in diagnosis.worth_changing] == []


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_without_durations_the_calls_count(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.fault, tmp_path, durations=False))
    (found,) = of_rule(diagnosis, case.rule)
    assert found.cost_seconds is None and found.gain is None
    assert found.severity is Severity.MEDIUM


def bash_reads_lines(log: StraceLog) -> None:
    log.execute("/usr/bin/bash")
    log.open("/data/list")
    for number in range(3000):
        log.read(4096, 20)
        log.seek((number + 1) * 20, 10)


def test_a_shell_that_goes_back_after_each_line_is_told_once(tmp_path: Path) -> None:
    diagnosis = diagnosed(made(bash_reads_lines, tmp_path))
    (found,) = diagnosis.worth_changing
    assert found.rule == "bytewise-read"
    assert found.cost_seconds == pytest.approx(0.09, rel=0.01)


def test_writes_of_a_few_pages_one_after_the_other_may_be_unaligned(tmp_path: Path) -> None:
    def build(size: int) -> Build:
        def writes(log: StraceLog) -> None:
            log.open("/data/out", "O_WRONLY|O_CREAT")
            for _ in range(1000):
                log.write(size, 100)

        return writes

    found = {
        size: len(of_rule(diagnosed(made(build(size), tmp_path)), "unaligned-requests"))
        for size in (4096, 5000, 8191, 10240, 65000)
    }
    assert found == {4096: 0, 5000: 1, 8191: 0, 10240: 0, 65000: 0}


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
        log.child(300 + number, "/work/bin/worker")
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
        log.child(300 + number, "/work/bin/worker")
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
