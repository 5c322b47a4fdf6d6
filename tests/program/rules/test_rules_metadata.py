"""Rules on metadata, processes and time: what each finds, counts and charges in logs with known times, and
that its twin is clean."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iodock.program.findings import Severity
from iodock.shared.settings import Settings
from made_store import without_checksums
from metadata_faults import CASES, ENOENT, IDS, Case, made, searches_a_little
from metadata_log import FIRST, Trace, diagnosed, of_rule

MIB = 1 << 20


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


def cpu_of_all(path: Path, nanoseconds: int) -> Path:
    table = path / "processes.parquet"
    rows = pq.read_table(table)
    times = pa.array([nanoseconds] * rows.num_rows, pa.int64())
    pq.write_table(rows.set_column(rows.column_names.index("cpu_user_ns"), "cpu_user_ns", times), table)
    without_checksums(table.parent)
    return path


@pytest.mark.parametrize(("cpu_ns", "found"), [(1_000_000, True), (300_000_000, False)])
def test_large_pieces_are_named_where_nobody_computes_on_them(
    cpu_ns: int, found: bool, tmp_path: Path
) -> None:
    log = Trace()
    conversation(log, 65536)
    diagnosis = diagnosed(cpu_of_all(log.imported(tmp_path), cpu_ns))
    assert [one.rule for one in diagnosis.worth_changing] == (["pipe-bound"] if found else [])


def locks_in_turn(log: Trace, took_us: int) -> None:
    for pid in (201, 202, 203):
        log.start(pid, "/opt/bin/collect")
    for pid in (201, 202, 203):
        log.open("/data/all.lock", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(300):
            log.call("flock(3, LOCK_EX)", took_us=took_us, pid=pid)
            log.call("flock(3, LOCK_UN)", took_us=2, pid=pid)
            log.pause(10, pid)
        log.end(pid)


def test_processes_that_wait_for_each_others_locks_contend(tmp_path: Path) -> None:
    log = Trace()
    locks_in_turn(log, 1000)
    diagnosis = diagnosed(log.imported(tmp_path))
    (found,) = of_rule(diagnosis, "shared-file-contention")
    assert found.evidence["count"] == 1800 and found.evidence["writers"] == 3
    assert found.files == ("/data/all.lock",)
    assert diagnosis.worth_changing[0].rule == "shared-file-contention"


def test_locks_that_are_free_are_no_contention(tmp_path: Path) -> None:
    log = Trace()
    locks_in_turn(log, 5)
    assert not of_rule(diagnosed(log.imported(tmp_path)), "shared-file-contention")


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
