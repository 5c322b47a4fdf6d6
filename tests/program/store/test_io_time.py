"""Compares the time in I/O calls that import sums up with the stored events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from iodock.program.analyses.base import select
from iodock.program.relations.filters import Filters
from iodock.program.relations.io_time import io_calls_sql, io_time, swept
from iodock.program.run import Run
from iodock.program.store import Store
from made_store import Shape, make_store
from places import FIXTURES

CASES = FIXTURES / "cases"
FOLDERS = [CASES, *map(Path, filter(None, os.environ.get("IODOCK_CASES", "").split(":")))]
LOGS = [
    log for folder in FOLDERS for kind in ("strace/*/log*", "truss/*.truss*") for log in folder.glob(kind)
]
EVERY_KIND = Filters(kind=("all",))


def imported(log: Path, store: Path) -> Store:
    command = [sys.executable, "-m", "iodock", "import", str(log), "-o", str(store), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return Store.open(store)


def from_events(store: Store) -> dict[int, tuple[int, int]]:
    calls = io_calls_sql(store, select(store, EVERY_KIND))
    rows = store.rows(
        f"""SELECT utid, CAST(sum(dur) FILTER (WHERE in_subset) AS BIGINT) AS io,
  CAST(sum(dur) FILTER (WHERE NOT in_subset) AS BIGINT) AS waiting FROM ({calls}) c GROUP BY utid"""
    )
    return {row["utid"]: (row["io"] or 0, row["waiting"] or 0) for row in rows}


def assert_agrees(store: Store) -> None:
    selection = select(store, EVERY_KIND)
    told = io_time(store, selection)
    tasks = store.rows("SELECT utid, io_ns, waiting_ns FROM processes")
    if not store.manifest.durations:
        assert told is None
        assert all(row["io_ns"] is None and row["waiting_ns"] is None for row in tasks)
        return
    assert ("io" in store.manifest.raw) == (store.manifest.first_ts is not None)
    if told is not None:
        assert told == swept(store, selection)
    sums = from_events(store)
    assert {row["utid"]: (row["io_ns"], row["waiting_ns"]) for row in tasks} == {
        row["utid"]: sums.get(row["utid"], (0, 0)) for row in tasks
    }


@pytest.mark.parametrize("log", sorted(LOGS), ids=lambda log: f"{log.parent.name}-{log.name}")
def test_the_io_time_of_the_import_equals_that_of_the_events(log: Path, tmp_path: Path) -> None:
    assert_agrees(imported(log, tmp_path / "case.iodock"))


OPEN = '100 1.000000 openat(AT_FDCWD, "/run/f", O_RDONLY) = 3 <0.000010>'
STAT = "100 5.000000 fstat(3, {st_mode=S_IFIFO|0600, st_size=0, ...}) = 0 <0.000010>"


def fifo_log(path: Path, reads: int) -> Path:
    """Writes a log with READS reads of 1 µs from a file. Only a later fstat shows that the file is a FIFO."""
    lines = [OPEN, *(f'100 2.{read:06d} read(3, "a", 1) = 1 <0.000001>' for read in range(reads)), STAT]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("reads", [2, 300_000])
def test_a_path_that_proves_a_fifo_is_excluded_from_the_start(reads: int, tmp_path: Path) -> None:
    store = imported(fifo_log(tmp_path / "log", reads), tmp_path / "run.iodock")
    found = io_time(store, select(store, EVERY_KIND))
    assert found is not None
    assert (found.any_ns, found.subset_ns) == (20_000 + reads * 1000, 20_000)
    # If the log shows the kind too late, import stores no time, and iodock computes it from the events.
    assert ("io" in store.manifest.raw) == (reads == 2)
    assert store.rows("SELECT io_ns FROM processes") == [{"io_ns": 20_000 if reads == 2 else None}]


def test_durations_without_times_give_only_times_of_tasks(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('100 openat(AT_FDCWD, "/d/f", O_RDONLY) = 3 <0.000010>\n100 close(3) = 0 <0.000010>\n')
    store = imported(log, tmp_path / "run.iodock")
    assert io_time(store, select(store, EVERY_KIND)) is None
    assert store.rows("SELECT io_ns, waiting_ns FROM processes") == [{"io_ns": 20_000, "waiting_ns": 0}]


def test_the_stored_io_time_is_used_only_without_filters(tmp_path: Path) -> None:
    path = make_store(tmp_path / "made.iodock", Shape(events=400))
    without = Store.open(path)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["io"] = {"any_ns": 7, "file_ns": 5}
    (path / "manifest.json").write_text(json.dumps(manifest))
    store = Store.open(path)

    def io_ns(opened: Store, **filters: object) -> object:
        return Run(opened).show("overview", **filters).totals.total["io_time_ns"]

    assert io_ns(store) == io_ns(store, kind="all") == 5
    assert io_ns(without) not in (None, 5)
    for filters in ({"kind": "regular"}, {"pid": 100}, {"direction": "read"}, {"since": 0}):
        assert io_ns(store, **filters) == io_ns(without, **filters) not in (None, 5)
