"""Tests checksums of a monitor store: damage leads to an error that names the file, not to wrong numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from iodock.centre.monitor import own_files, summaries
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import Span
from iodock.centre.store import RESOLUTIONS, MonitorStore
from iodock.shared.errors import StoreError
from iodock.simulation.centre import Centre
from iodock.simulation.history import write_history
from iodock.simulation.scenarios import named

SECOND = 1_000_000_000
BEGIN = 1_780_000_000 * SECOND
LATE = BEGIN + 2 * 86_400 * SECOND


@pytest.fixture
def collector(tmp_path: Path) -> Collector:
    made = Collector(tmp_path / "store")
    centre = Centre(named("healthy"), seed=1, begin_ns=BEGIN - 7200 * SECOND, servers=2, jobs=2)
    for _ in range(2):
        write_history(centre, made.writer, 1200, 60, lambda share: None)
    return made


def rows(store: MonitorStore) -> list[list[dict[str, Any]]]:
    asked = "SELECT * FROM job_io ORDER BY ALL"
    return [store.table(asked, begin=0, end=1 << 62, resolution=one).to_pylist() for one in RESOLUTIONS]


def flip(path: Path, place: int) -> None:
    found = bytearray(path.read_bytes())
    found[place % len(found)] ^= 1
    path.write_bytes(found)


def test_a_flipped_bit_gives_an_error_with_the_file_name(collector: Collector) -> None:
    store = collector.store
    wanted = rows(store)
    (path, *_) = sorted(store.folder.glob("job_io/fine/*/*.parquet"))
    size = path.stat().st_size
    for place in range(0, size, size // 20):
        flip(path, place)
        with pytest.raises(StoreError, match=f"{path.name}: is damaged") as error:
            rows(store)
        assert "from a backup" in (error.value.hint or "")
        flip(path, place)
        assert rows(store) == wanted


def test_every_written_file_gets_a_checksum(collector: Collector) -> None:
    collector.tend(LATE)
    collector.flush()
    every = [file for files in collector.store.catalogue.files.values() for file in files]
    assert {file.name.split("/")[1] for file in every} == set(RESOLUTIONS)
    assert all(file.checksum for file in every)


def test_a_flipped_bit_of_the_catalogue_is_detected(collector: Collector) -> None:
    path = collector.store.folder / "catalogue.json"
    written = path.read_bytes()
    key = written.rindex(b'"checksum"')
    for place in range(0, key, key // 100):
        flip(path, place)
        with pytest.raises(StoreError, match="is damaged"):
            rows(MonitorStore(collector.store.folder))
        path.write_bytes(written)


def test_a_store_without_checksums_is_read_and_completed(tmp_path: Path, collector: Collector) -> None:
    wanted = rows(collector.store)
    folder = tmp_path / "copy"
    shutil.copytree(collector.store.folder, folder)
    path = folder / "catalogue.json"
    found = json.loads(path.read_text())
    del found["checksum"], found["state_checksum"]
    for files in [files for levels in found["tables"].values() for files in levels.values()]:
        for entry in files:
            del entry["file_checksum"]
    path.write_text(json.dumps(found))
    assert rows(MonitorStore(folder)) == wanted
    again = Collector(folder)
    again.tend(LATE)
    assert all(file.checksum for files in again.store.catalogue.files.values() for file in files)


def test_upkeep_skips_damaged_files_and_reports_them(collector: Collector) -> None:
    store = collector.store
    damaged = store.catalogue.of("job_io", "fine")[0]
    flip(store.folder / damaged.name, 100)
    with pytest.raises(StoreError, match="is damaged"):
        collector.tend(LATE)
    kept = store.catalogue.of("job_io", "fine")
    assert damaged in kept and all(file.rolled for file in kept if file != damaged)
    assert store.catalogue.of("targets", "ten_minutes")
    flip(store.folder / damaged.name, 100)
    collector.tend(LATE)
    assert all(file.rolled for file in store.catalogue.of("job_io", "fine"))


@pytest.mark.whole
def test_a_damaged_summary_is_not_used(collector: Collector) -> None:
    collector.tend(LATE)
    store, ids = collector.store, JobIds()
    within = Span(BEGIN - 86_400 * SECOND, LATE, 3600 * SECOND, summaries.COARSEST, summaries.COARSEST)

    def asked() -> list[dict[str, Any]]:
        sql = "SELECT job, sum(write_bytes) AS bytes FROM {} GROUP BY ALL ORDER BY ALL"
        return summaries.asked_of_jobs(store, ids, within, lambda rows: sql.format(rows)).to_pylist()

    wanted = asked()
    paths = sorted((store.folder / "summaries").rglob("*.parquet"))
    assert wanted and paths
    for path in paths:
        assert own_files.is_summary(path.relative_to(store.folder).as_posix())
        for place in range(0, path.stat().st_size, 97):
            flip(path, place)
            assert asked() == wanted
            flip(path, place)
