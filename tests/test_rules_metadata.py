"""Rules on metadata, processes and time: what each finds, counts and charges in logs with known times, and
that its twin is clean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from iodock.findings import Severity
from iodock.settings import FileSystem, Settings
from metadata_log import FIRST, Trace, diagnosed, of_rule

MIB = 1 << 20
ENOENT = "-1 ENOENT (No such file or directory)"
Build = Callable[[Trace], None]


@dataclass(frozen=True)
class Case:
    """A fault in a run of one second, what is to be said of it, and the same work done well."""

    rule: str
    fault: Build
    count: int
    seconds: float
    """Cost."""
    files: tuple[str, ...]
    """The first files named."""
    clean: Build
    name: str = ""


def searches(log: Trace) -> None:
    for number in range(1000):
        log.open_missing(f"/data/path/{number % 4}/table.cfg", 200)


def searches_a_little(log: Trace) -> None:
    for number in range(200):
        log.open_missing(f"/data/path/{number}/table.cfg", 200)


def asks_for_attributes(log: Trace) -> None:
    for number in range(3000):
        name = f"/data/f{number % 3}"
        log.call(f'lgetxattr("{name}", "user.x", 0x7f, 255)', "-1 ENODATA (No data available)", 100)


def gets_attributes(log: Trace) -> None:
    for number in range(3000):
        log.call(f'lgetxattr("/data/f{number // 3}", "user.x", "abc", 255)', "3", 100)


def stats_again(log: Trace) -> None:
    for _ in range(1001):
        log.call('stat("/data/in", {st_mode=S_IFREG|0644, st_size=5, ...})', "0", 300)


def stats_each_once(log: Trace) -> None:
    for number in range(1001):
        log.call(f'stat("/data/in{number}", {{st_mode=S_IFREG|0644, st_size=5, ...}})', "0", 300)


def waits_for_a_file(log: Trace) -> None:
    for _ in range(1001):
        log.call('stat("/data/ready", 0x7f)', ENOENT, 300)


def reopens(log: Trace) -> None:
    for _ in range(501):
        log.open("/data/log", took_us=300, flags="O_WRONLY|O_APPEND")
        log.write(40, 20)
        log.close(200)


def keeps_open(log: Trace) -> None:
    log.open("/data/log", took_us=300, flags="O_WRONLY|O_APPEND")
    for _ in range(501):
        log.write(40, 20)
    log.close(200)


def lists_again(log: Trace) -> None:
    for _ in range(101):
        log.open("/data/in", took_us=100, flags="O_RDONLY|O_DIRECTORY")
        log.call("getdents64(3, 0x55 /* 90 entries */, 32768)", "2900", 3000)
        log.call("getdents64(3, 0x55 /* 0 entries */, 32768)", "0", 100)
        log.close(100)


def lists_many_once(log: Trace) -> None:
    for number in range(101):
        log.open(f"/data/in{number}", took_us=100, flags="O_RDONLY|O_DIRECTORY")
        log.call("getdents64(3, 0x55 /* 90 entries */, 32768)", "2900", 3000)
        log.call("getdents64(3, 0x55 /* 0 entries */, 32768)", "0", 100)
        log.close(100)


def creates_many(log: Trace) -> None:
    for number in range(600):
        log.open(f"/data/out/step{number:04d}.dat", took_us=300, flags="O_WRONLY|O_CREAT")
        log.write(100, 10)
        log.close(100)


def creates_few(log: Trace) -> None:
    for number in range(400):
        log.open(f"/data/out/step{number:04d}.dat", took_us=300, flags="O_WRONLY|O_CREAT")
        log.write(100, 10)
        log.close(100)


def syncs_each(log: Trace) -> None:
    log.open("/data/journal", flags="O_WRONLY|O_CREAT")
    for _ in range(101):
        log.write(4096, 10)
        log.call("fsync(3)", took_us=5000)


def syncs_checkpoints(log: Trace) -> None:
    log.open("/data/state", flags="O_WRONLY|O_CREAT")
    for _ in range(30):
        for _ in range(8):
            log.write(MIB, 1000)
        log.call("fsync(3)", took_us=5000)


def locks_again(log: Trace) -> None:
    log.open("/data/table")
    for _ in range(2005):
        log.call("flock(3, LOCK_EX)", took_us=200)
    log.read(100, 10)


def locks_many_once(log: Trace) -> None:
    for number in range(1000):
        log.open(f"/data/table{number}x")
        log.call("flock(3, LOCK_EX)", took_us=400)
        log.close()


def child_per_record(log: Trace) -> None:
    for number in range(100):
        pid = 1000 + number
        log.start(pid, "/usr/bin/cut")
        log.call('access("/etc/ld.so.preload", R_OK)', ENOENT, 100, pid)
        log.open("/usr/lib/libc.so.6", took_us=100, flags="O_RDONLY", pid=pid)
        log.close(100, pid=pid)
        log.pause(4700, pid)
        log.end(pid)
        log.pause(5000)


def compiler_per_source(log: Trace) -> None:
    for number in range(100):
        pid = 1000 + number
        log.start(pid, "/usr/bin/gcc")
        log.open("/data/source.h", took_us=100, flags="O_RDONLY", pid=pid)
        log.close(100, pid=pid)
        log.pause(4800, pid)
        log.end(pid)
        log.pause(5000)


def hangs_once(log: Trace) -> None:
    for number in range(100):
        log.open("/data/plot.cfg", took_us=400_000 if number == 50 else 50, flags="O_WRONLY|O_CREAT")
        log.close(10)


def hangs_never(log: Trace) -> None:
    for _ in range(100):
        log.open("/data/plot.cfg", took_us=50, flags="O_WRONLY|O_CREAT")
        log.close(10)


def turns(log: Trace) -> None:
    log.open("/data/state", flags="O_WRONLY|O_CREAT")
    for _ in range(10):
        log.pause(50_000)
        for _ in range(4):
            log.write(MIB, 10_000)


def irregular_turns(log: Trace) -> None:
    log.open("/data/state", flags="O_WRONLY|O_CREAT")
    for number in range(10):
        log.pause(450_000 if number == 5 else 6_000)
        for _ in range(4):
            log.write(MIB, 10_000)


def debug_lines(log: Trace) -> None:
    log.open("/data/debug.txt", flags="O_WRONLY|O_CREAT")
    for _ in range(900):
        log.pause(1000)
        log.write(50, 100)


def a_line_at_the_end(log: Trace) -> None:
    log.open("/data/debug.txt", flags="O_WRONLY|O_CREAT")
    log.pause(900_000)
    for _ in range(900):
        log.write(50, 100)


CASES = [
    Case("failed-open-storm", searches, 1000, 0.2, ("/data/path/0/table.cfg",), searches_a_little),
    Case("failed-xattr", asks_for_attributes, 3000, 0.3, ("/data/f0",), gets_attributes),
    Case("stat-storm", stats_again, 1000, 0.3, ("/data/in",), stats_each_once),
    Case("stat-storm", waits_for_a_file, 1000, 0.3, ("/data/ready",), stats_each_once, "of-nothing"),
    Case("open-close-loop", reopens, 500, 0.25, ("/data/log",), keeps_open),
    Case("directory-scan-storm", lists_again, 100, 0.33, ("/data/in",), lists_many_once),
    Case("tiny-file-flood", creates_many, 1200, 0.24, (), creates_few),
    Case("sync-heavy", syncs_each, 101, 0.5, ("/data/journal",), syncs_checkpoints),
    # Four calls are what any program needs.
    Case("metadata-heavy", locks_again, 2002, 0.401 * 2002 / 2006, ("/data/table",), locks_many_once),
    Case("process-storm", child_per_record, 400, 0.5, (), compiler_per_source),
    Case("slow-call", hangs_once, 1, 0.4, ("/data/plot.cfg",), hangs_never),
    # Nine pauses of 50 ms lie between ten times 40 ms of writing.
    Case("io-not-overlapped", turns, 40, 0.4, (), irregular_turns),
    Case("write-in-compute-loop", debug_lines, 900, 0.09, ("/data/debug.txt",), a_line_at_the_end),
]
IDS = [f"{case.rule}{'-' if case.name else ''}{case.name}" for case in CASES]


def made(build: Build, folder: Path, durations: bool = True) -> Path:
    log = Trace()
    build(log)
    return log.imported(folder, durations=durations)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_fault_is_found_counted_and_charged(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.fault, tmp_path))
    (found,) = of_rule(diagnosis, case.rule)
    assert found.evidence["count"] == case.count
    assert found.cost_seconds == pytest.approx(case.seconds, rel=0.01)
    assert found.files[: len(case.files)] == case.files
    assert found.severity is not Severity.NOTE
    assert diagnosis.worth_changing[0].rule == case.rule, [one.rule for one in diagnosis.worth_changing]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_same_work_done_well_is_not_blamed(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.clean, tmp_path))
    assert [one.rule for one in diagnosis.worth_changing] == []


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_without_durations_the_calls_count(case: Case, tmp_path: Path) -> None:
    diagnosis = diagnosed(made(case.fault, tmp_path, durations=False))
    if case.rule in {one.rule for one in diagnosis.silent}:
        return
    (found,) = of_rule(diagnosis, case.rule)
    assert found.evidence["count"] == case.count
    assert found.severity is not Severity.NOTE


# One log for each rank: the first call is at the same time in all of them.
def ranks(work: Callable[[Trace, int, int], None], folder: Path) -> Path:
    log = Trace(clocks={FIRST + number: 0 for number in range(4)})
    for number in range(4):
        work(log, number, FIRST + number)
        if number:
            log.clocks[FIRST + number] = max(1_000_000, log.clocks[FIRST + number])
            log.end(FIRST + number)
    return log.imported(folder, ranks=4)


def writes(log: Trace, number: int, pid: int, pieces: int, took_us: int) -> None:
    log.open(f"/data/out.{number}", flags="O_WRONLY|O_CREAT", pid=pid)
    for _ in range(pieces):
        log.write(MIB, took_us, pid=pid)
    log.close(pid=pid)


def test_a_rank_with_more_to_write_is_charged_beyond_the_mean(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 50 if n == 3 else 10, 10_000), tmp_path)
    diagnosis = diagnosed(path)
    (found,) = of_rule(diagnosis, "rank-imbalance")
    assert found.message.values["worker"] == 3
    assert found.cost_seconds == pytest.approx(0.5 - 0.2)
    assert [one.rule for one in diagnosis.worth_changing] == ["rank-imbalance"]


def test_a_rank_that_needs_longer_for_the_same_is_a_straggler(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 10, 50_000 if n == 1 else 10_000), tmp_path)
    diagnosis = diagnosed(path)
    (found,) = of_rule(diagnosis, "straggler")
    assert found.message.values["worker"] == 1
    assert found.cost_seconds == pytest.approx(0.5 - 0.1)
    assert [one.rule for one in diagnosis.worth_changing] == ["straggler"]


def test_a_rank_that_comes_late_is_a_straggler(tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.pause(500_000 if number == 2 else 1000 * number, pid)
        writes(log, number, pid, 10, 10_000)

    (found,) = of_rule(diagnosed(ranks(work, tmp_path)), "straggler")
    assert found.message.values["worker"] == 2
    assert found.cost_seconds == pytest.approx(0.5 - 0.003)


def test_a_rank_that_works_alone_could_share(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 0 if n else 40, 10_000), tmp_path)
    diagnosis = diagnosed(path)
    (found,) = of_rule(diagnosis, "serial-phases")
    assert found.cost_seconds == pytest.approx(0.4 * 3 / 4)
    assert [one.rule for one in diagnosis.worth_changing] == ["serial-phases"]


def test_one_rank_that_writes_what_all_have_open_may_do_it_for_them(tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.open("/data/shared.out", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(0 if number else 40):
            log.write(MIB, 10_000, pid=pid)
        log.close(pid=pid)

    (found,) = of_rule(diagnosed(ranks(work, tmp_path)), "serial-phases")
    assert found.severity is Severity.NOTE


def test_equal_ranks_are_not_blamed(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 20, 10_000 + 1000 * n), tmp_path)
    assert not diagnosed(path).worth_changing


def interleaved(log: Trace, number: int, pid: int) -> None:
    log.open("/data/shared", flags="O_WRONLY|O_CREAT", pid=pid)
    for step in range(500):
        log.call(f'pwrite64(3, ""..., 512, {(step * 4 + number) * 512})', "512", 1000, pid)


def test_a_shared_file_in_small_pieces_is_named(tmp_path: Path) -> None:
    diagnosis = diagnosed(ranks(interleaved, tmp_path))
    (found,) = of_rule(diagnosis, "shared-file-contention")
    assert (found.evidence["count"], found.evidence["writers"]) == (2000, 4)
    # All four are in a write at the same time: half a second of the run.
    assert found.cost_seconds == pytest.approx(0.5, rel=0.01)
    assert diagnosis.worth_changing[0].rule == "shared-file-contention"


def test_writers_one_after_the_other_do_not_meet(tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.pause(200_000 * number, pid)
        log.open("/data/shared", flags="O_WRONLY|O_CREAT", pid=pid)
        for step in range(100):
            log.call(f'pwrite64(3, ""..., 512, {(step * 4 + number) * 512})', "512", 1000, pid)

    assert not of_rule(diagnosed(ranks(work, tmp_path)), "shared-file-contention")


def step_files(log: Trace, number: int, pid: int) -> None:
    for step in range(100):
        log.open(f"/data/step{step:03d}.{number}", took_us=2000, flags="O_WRONLY|O_CREAT", pid=pid)
        log.write(100_000, 100, pid=pid)
        log.close(1000, pid=pid)


def test_files_of_each_rank_are_counted_with_their_stripes(tmp_path: Path) -> None:
    path = ranks(step_files, tmp_path)
    diagnosis = diagnosed(path)
    (found,) = of_rule(diagnosis, "file-per-process")
    assert (found.evidence["files"], found.evidence["workers"], found.evidence["objects"]) == (400, 4, 400)
    assert found.cost_seconds == pytest.approx(0.3, rel=0.01)
    assert [one.rule for one in diagnosis.worth_changing] == ["file-per-process"]


def test_one_file_for_each_rank_is_no_flood(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 20, 10_000), tmp_path)
    assert not of_rule(diagnosed(path), "file-per-process")


def conversation(log: Trace, size: int) -> None:
    log.call("pipe2([3, 4], 0)")
    log.call("pipe2([5, 6], 0)")
    log.start(300)
    log.clocks[300] = log.clocks[FIRST]
    for _ in range(1000):
        log.write(size, 10, fd=4)
        log.read(size, 390, fd=5)
        log.read(size, 300, fd=3, pid=300)
        log.write(size, 100, fd=6, pid=300)
    log.end(300)


def test_small_pieces_through_pipes_cost_the_waiting(tmp_path: Path) -> None:
    log = Trace()
    conversation(log, 50)
    diagnosis = diagnosed(log.imported(tmp_path))
    (found,) = of_rule(diagnosis, "pipe-bound")
    assert found.evidence["count"] == 4000
    assert found.cost_seconds == pytest.approx(0.4, rel=0.01)
    assert diagnosis.worth_changing[0].rule == "pipe-bound"


def test_large_pieces_through_pipes_are_fine(tmp_path: Path) -> None:
    log = Trace()
    conversation(log, 65536)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def test_closes_that_write_out_are_explained_and_left(tmp_path: Path) -> None:
    """As SWarp's: closes take 83 % of the I/O time, writes 9 %."""
    log = Trace()
    for number in range(10):
        log.open(f"/data/resamp{number}.fits", flags="O_WRONLY|O_CREAT")
        for _ in range(9):
            log.write(MIB, 1000)
        log.close(83_000)
    diagnosis = diagnosed(log.imported(tmp_path, wall_us=2_000_000))
    (found,) = of_rule(diagnosis, "slow-close")
    assert found.severity is Severity.NOTE and found.gain is None
    assert found.cost_seconds == pytest.approx(0.83)
    assert not diagnosis.worth_changing


def test_a_hung_call_is_dated(tmp_path: Path) -> None:
    """As plot5's: one open of 13.9 s at 12:08:20, and one close of 1.9 s."""
    log = Trace(stamp="day")
    log.pause(10_048)
    for number in range(246):
        log.open("/home/me/plot.cfg", took_us=30 if number else 13_936_576, flags="O_WRONLY|O_CREAT|O_TRUNC")
        log.write(40, 11)
        log.close(10 if number else 1_939_770)
    diagnosis = diagnosed(log.imported(tmp_path, wall_us=20_000_000))
    opened, closed = of_rule(diagnosis, "slow-call")
    assert str(opened.message.values["when"]).startswith("12:08:20.010048")
    assert (opened.call, closed.call) == ("openat", "close")
    assert opened.cost_seconds == pytest.approx(13.9366, rel=0.001)
    assert closed.cost_seconds == pytest.approx(1.9398, rel=0.001)
    assert [one.rule for one in diagnosis.worth_changing] == ["slow-call", "slow-call"]


def test_a_long_read_of_many_bytes_is_not_hung(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/in")
    for _ in range(200):
        log.read(4096, 10)
    log.read(256 * MIB, 400_000)
    assert not of_rule(diagnosed(log.imported(tmp_path)), "slow-call")


def listing(log: Trace, usual_us: int, longest_us: int) -> None:
    log.call('execve("/usr/bin/ls", ["ls", "-l"], 0x7f /* 9 vars */)')
    for number in range(6904):
        name = f"/home/me/data/file{number}"
        log.call(f'lstat("{name}", {{st_mode=S_IFREG|0644, st_size=5, ...}})', "0", 23)
        for which in range(3):
            took = longest_us if number == 3000 and which == 1 else usual_us
            log.call(f'lgetxattr("{name}", "system.posix_acl_access", 0x0, 0)', "-1 ENODATA (No data)", took)


def test_a_slow_listing_has_its_attributes_and_its_outlier(tmp_path: Path) -> None:
    """As at NAOJ: 20,712 of 20,712 lgetxattr fail; 5.5 of 6.3 s; the longest is 0.72 s."""
    log = Trace()
    listing(log, 233, 722_723)
    diagnosis = diagnosed(log.imported(tmp_path))
    asked, hung = diagnosis.worth_changing
    assert (asked.rule, hung.rule) == ("failed-xattr", "slow-call")
    assert (asked.evidence["count"], asked.evidence["asked"]) == (20_712, 20_712)
    assert asked.evidence["longest_ns"] == 722_723_000


def test_a_fast_listing_is_left_alone(tmp_path: Path) -> None:
    log = Trace()
    listing(log, 12, 55)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def test_many_metadata_calls_in_a_long_run_are_fine(tmp_path: Path) -> None:
    """As JAXA's CFD code: many metadata calls for each write, as long as the data, in 100 s."""
    log = Trace()
    for _ in range(511):
        for name, size in (("/data/RESULT/x.rslt", 2_500_000), ("/data/adc.txt", 2100)):
            log.call(f'stat("{name}", {{st_mode=S_IFREG|0644, st_size=5, ...}})', "0", 7)
            log.open(name, took_us=50, flags="O_RDWR|O_CREAT")
            log.call("fstat(3, {st_mode=S_IFREG|0644, st_size=5, ...})", "0", 2)
            log.write(size, 100 if size > 10_000 else 1)
            log.close(1)
        log.pause(190_000)
    diagnosis = diagnosed(log.imported(tmp_path))
    assert not diagnosis.worth_changing


def test_the_start_of_each_process_is_the_storms_affair(tmp_path: Path) -> None:
    """As in Kyoto: each process of the loop misses the loader's file; the loop is named, not the file."""
    log = Trace()
    for number in range(400):
        pid = 1000 + number
        log.start(pid, "/usr/bin/cat")
        log.call('access("/etc/ld.so.preload", R_OK)', ENOENT, 500, pid)
        log.call('open("/etc/ld.config", O_RDONLY)', ENOENT, 500, pid)
        log.end(pid)
        log.pause(1000)
    diagnosis = diagnosed(log.imported(tmp_path))
    (found,) = diagnosis.worth_changing
    assert found.rule == "process-storm"
    assert (found.evidence["processes"], found.evidence["missed"]) == (400, 800)
    assert found.cost_seconds == pytest.approx(0.4, rel=0.01)


def test_misses_without_durations_count(tmp_path: Path) -> None:
    """One process in the log, as a table of totals gives it: 318 of 1,590 opens miss one file."""
    log = Trace()
    for number in range(1590):
        if number % 5:
            log.open(f"/data/in{number}")
            log.close()
        else:
            log.open_missing("/etc/ld.config", 0)
    (found,) = of_rule(diagnosed(log.imported(tmp_path, durations=False)), "failed-open-storm")
    assert found.files == ("/etc/ld.config",)
    assert found.evidence["count"] == 318
    assert found.severity is Severity.LOW


def test_a_database_may_ask_for_its_journal_each_time(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/run.db")
    for _ in range(3000):
        log.call('stat("/data/run.db-wal", 0x7f)', ENOENT, 50)
        log.call('stat("/data/run.db", {st_mode=S_IFREG|0644, st_size=5, ...})', "0", 50)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def test_thresholds_are_settings(tmp_path: Path) -> None:
    path = made(searches_a_little, tmp_path)
    assert of_rule(
        diagnosed(path, Settings(rules={"failed-open-storm": {"least_count": 100, "least_repeats": 100}})),
        "failed-open-storm",
    )


@pytest.mark.parametrize(
    "program", ["/usr/bin/git", "/usr/bin/tar", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "/usr/bin/find"]
)
def test_tools_that_go_through_trees_are_not_blamed(program: str, tmp_path: Path) -> None:
    log = Trace()
    log.call(f'execve("{program}", ["{program}"], 0x7f /* 9 vars */)')
    for number in range(1000):
        name = f"/data/tree/part{number}.txt"
        log.call(f'lstat("{name}", {{st_mode=S_IFREG|0644, st_size=90, ...}})', "0", 100)
        log.open_missing(f"{name}.attributes", 100)
        log.open(name, took_us=200)
        log.read(90, 10)
        log.close(50)
    assert not diagnosed(log.imported(tmp_path)).worth_changing


def test_stripes_multiply_files(tmp_path: Path) -> None:
    settings = Settings(file_systems={"/": FileSystem(stripe_count=8)})
    (found,) = of_rule(diagnosed(ranks(step_files, tmp_path), settings), "file-per-process")
    assert found.evidence["objects"] in (400, 3200)


def test_a_pipe_that_leads_out_of_the_run_is_not_judged(tmp_path: Path) -> None:
    log = Trace()
    for _ in range(2000):
        log.call('write(1<pipe:[77]>, ""..., 50)', "50", 100)
    assert not of_rule(diagnosed(log.imported(tmp_path)), "pipe-bound")


def opens_its_journal(log: Trace) -> None:
    log.open("/data/runs.data", fd=4)
    for _ in range(501):
        log.open("/data/runs.data-journal", took_us=300, flags="O_RDWR|O_CREAT")
        log.write(512, 20)
        log.close(200)


def test_a_database_opens_its_journal_for_each_transaction(tmp_path: Path) -> None:
    assert not of_rule(diagnosed(made(opens_its_journal, tmp_path)), "open-close-loop")


def forks_again(log: Trace) -> None:
    log.call('execve("/opt/bin/solver", ["solver"], 0x7f /* 9 vars */)')
    for number in range(400):
        log.start(1000 + number)
        log.open("/data/in", pid=1000 + number, took_us=1000)
        log.end(1000 + number)
        log.pause(1500)


def test_processes_without_a_program_are_named_after_who_forked_them(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(made(forks_again, tmp_path)), "process-storm")
    assert found.evidence["programs"] == "solver (fork)"


def test_folders_that_python_searches_at_each_import_are_not_blamed(tmp_path: Path) -> None:
    def imports(log: Trace) -> None:
        for _ in range(500):
            for folder in ("/home/me/project", "/opt/conda/lib/python3.11"):
                log.call(f'stat("{folder}", {{st_mode=S_IFDIR|0755, st_size=5, ...}})', "0", 300)

    assert not of_rule(diagnosed(made(imports, tmp_path)), "stat-storm")


def test_a_folder_that_python_asks_in_a_loop_is_blamed(tmp_path: Path) -> None:
    def polls(log: Trace) -> None:
        for number in range(1001):
            for folder in ("/home/me/out", "/opt/conda/lib/python3.11")[: 1 if number else 2]:
                log.call(f'stat("{folder}", {{st_mode=S_IFDIR|0755, st_size=5, ...}})', "0", 300)

    (found,) = of_rule(diagnosed(made(polls, tmp_path)), "stat-storm")
    assert found.files == ("/home/me/out",)
