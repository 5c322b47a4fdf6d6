"""Rules on ranks: what each finds, counts and charges in logs with known times, and that equal ranks are left
alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iodock.program.findings import Severity
from iodock.shared.settings import FileSystem, Settings
from made_store import without_checksums
from metadata_log import Trace, diagnosed, of_rule
from rank_log import ranks

MIB = 1 << 20


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


def test_a_rank_of_which_one_call_of_many_hung_is_none(tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        writes(log, number, pid, 20, 10_000)
        log.open(f"/data/end.{number}", flags="O_WRONLY|O_CREAT", pid=pid)
        log.write(MIB, 400_000 if number == 1 else 10_000, pid=pid)
        log.close(pid=pid)

    assert not of_rule(diagnosed(ranks(work, tmp_path)), "straggler")


def test_a_rank_that_is_slow_in_few_large_calls_is_a_straggler(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 2, 150_000 if n == 1 else 50_000), tmp_path)
    (found,) = of_rule(diagnosed(path), "straggler")
    assert found.cost_seconds == pytest.approx(0.2)


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
    assert found.title.text == "One rank does all the I/O"
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


@pytest.mark.parametrize("asked, severity", [("/data", Severity.NOTE), ("/dev/shm", Severity.MEDIUM)])
def test_mpi_io_asks_for_the_type_of_the_file_system(tmp_path: Path, asked: str, severity: Severity) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.call(f'statfs("{asked}", {{f_type=EXT2_SUPER_MAGIC, ...}})', pid=pid)
        log.open("/data/shared.out", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(0 if number else 40):
            log.write(MIB, 10_000, pid=pid)
        log.close(pid=pid)

    (found,) = of_rule(diagnosed(ranks(work, tmp_path)), "serial-phases")
    assert found.severity is severity


@pytest.mark.parametrize(
    ("others", "rule"), [(20, "rank-imbalance"), (0, "serial-phases")], ids=["uneven parts", "only a header"]
)
def test_ranks_with_parts_of_one_file_share_it_unevenly(others: int, rule: str, tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.open("/data/shared.in", flags="O_RDONLY", pid=pid)
        log.call('pread64(3, ""..., 4096, 0)', "4096", 100, pid)
        for piece in range(940 if number == 2 else others):
            place = 4096 + (number * 1000 + piece) * 65536
            log.call(f'pread64(3, ""..., 65536, {place})', "65536", 500, pid)

    diagnosis = diagnosed(ranks(work, tmp_path))
    both = ("rank-imbalance", "serial-phases")
    assert [name for name in both if of_rule(diagnosis, name)] == [rule]


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


def mounted_at_root(store: Path) -> Path:
    """The store with all files on the file system `/`, which a log can't tell."""
    path = store / "files.parquet"
    files = pq.read_table(path)
    column = files.schema.get_field_index("mount_point")
    roots = pa.array(["/"] * files.num_rows, pa.string())
    pq.write_table(files.set_column(column, "mount_point", roots), path)
    without_checksums(path.parent)
    return store


def test_stripes_multiply_files(tmp_path: Path) -> None:
    settings = Settings(file_systems={"/": FileSystem(stripe_count=8)})
    store = mounted_at_root(ranks(step_files, tmp_path))
    (found,) = of_rule(diagnosed(store, settings), "file-per-process")
    assert (found.evidence["stripes"], found.evidence["objects"]) == (8, 3200)
