"""Tests the rule `file-per-process`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from diagnosing import diagnosed, of_rule
from iodock.shared.settings import FileSystem, Settings
from made_store import without_checksums
from metadata_log import FIRST, Trace, of_log
from rank_log import ranks, writes


@pytest.mark.parametrize(("together", "found"), [(True, True), (False, False)])
def test_workers_are_distinguished_from_earlier_forks(tmp_path: Path, together: bool, found: bool) -> None:
    def write(log: Trace) -> None:
        log.start(FIRST + 1)
        log.pause(500, FIRST + 1)
        log.end(FIRST + 1)
        log.pause(1000)
        for worker in range(4):
            pid = FIRST + 2 + worker
            log.start(pid)
            for step in range(60):
                log.open(f"/data/w{worker}-s{step}.out", flags="O_WRONLY|O_CREAT", took_us=100, pid=pid)
                log.write(4096, 10, pid=pid)
                log.close(pid=pid)
            log.end(pid)
            if not together:
                log.clocks[FIRST] = log.clocks[pid]

    assert bool(of_rule(of_log(tmp_path, write), "file-per-process")) == found


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


def test_one_file_per_rank_is_not_a_file_flood(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 20, 10_000), tmp_path)
    assert not of_rule(diagnosed(path), "file-per-process")


def mounted_at_root(store: Path) -> Path:
    """Puts all files of the store on a file system mounted at `/`. Logs do not contain mount points."""
    path = store / "files.parquet"
    files = pq.read_table(path)
    column = files.schema.get_field_index("mount_point")
    roots = pa.array(["/"] * files.num_rows, pa.string())
    pq.write_table(files.set_column(column, "mount_point", roots), path)
    without_checksums(path.parent)
    return store


def test_stripes_multiply_the_number_of_objects(tmp_path: Path) -> None:
    settings = Settings(file_systems={"/": FileSystem(stripe_count=8)})
    store = mounted_at_root(ranks(step_files, tmp_path))
    (found,) = of_rule(diagnosed(store, settings), "file-per-process")
    assert (found.evidence["stripes"], found.evidence["objects"]) == (8, 3200)
