"""Compares tables that iodock folds from events, outside of the SQL engine, with the results of SQL."""

from __future__ import annotations

import contextlib
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fold_log import imported, lines
from iodock import _native
from iodock.program import capture
from iodock.program.relations.derived import DERIVED
from iodock.program.relations.profile import FOLDS, Profile
from iodock.program.store import Store
from iodock.program.store.folds import Folding, places_in
from iodock.shared.errors import IodockError, QueryError
from made_store import without_checksums
from places import FIXTURES

NAMES = ("uses", "transfers")
CASES = FIXTURES / "cases"
LOGS = sorted(
    (*CASES.glob("strace/*/log.xz"), *CASES.glob("truss/*.truss"), *CASES.parent.glob("truss/[!c]*"))
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("folds"), islice(lines(280_000, 500), 30_000))


def rows_of(store: Store, name: str) -> list[dict[str, Any]]:
    return store.rows(f"SELECT * FROM {name} ORDER BY ALL")


def both(path: Path, name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the rows of the derived table NAME, computed by folding and by SQL."""
    derived = DERIVED[name]
    with Store.open(path) as store:
        profile = Profile(store)
        profile.need(derived.reads)
        assert store.fold("folded_rows", FOLDS[name])
        store.keep("asked_rows", derived.sql(profile.facts))
        described = [store.rows(f"DESCRIBE {made}_rows") for made in ("folded", "asked")]
        assert described[0] == described[1]
        return rows_of(store, "folded_rows"), rows_of(store, "asked_rows")


def assert_alike(path: Path) -> None:
    for name in NAMES:
        folded, asked = both(path, name)
        for row in (*folded, *asked):
            if row.get("typical_ns") is not None:
                # Fold and SQL add up the logarithms in different orders.
                row["typical_ns"] = pytest.approx(row["typical_ns"], rel=1e-9, abs=1)
        assert folded == asked, name


def rewritten(run: Path, folder: Path, change: Callable[[pa.Table], pa.Table], **options: Any) -> Path:
    """Returns a copy of RUN with changed events, written by pyarrow instead of iodock."""
    copy = folder / "copy.iodock"
    without_checksums(Path(shutil.copytree(run, copy)))
    (part,) = (copy / "events").iterdir()
    pq.write_table(change(pq.read_table(part)), part, **({"compression": "zstd"} | options))
    return copy


def as_it_is(events: pa.Table) -> pa.Table:
    return events


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.parent.name}-{log.name}")
def test_each_case_is_aggregated_as_by_sql(log: Path, tmp_path: Path) -> None:
    capture.import_logs([str(log)], tmp_path / "run.iodock")
    assert_alike(tmp_path / "run.iodock")


@pytest.mark.parametrize("rows", [997, 4096, 9000])
def test_row_groups_of_any_size_and_several_threads_give_the_same_sums(
    run: Path, tmp_path: Path, rows: int
) -> None:
    assert_alike(rewritten(run, tmp_path, as_it_is, row_group_size=rows))


def test_events_in_several_files_are_aggregated(run: Path, tmp_path: Path) -> None:
    copy = rewritten(run, tmp_path, as_it_is)
    (part,) = (copy / "events").iterdir()
    events = pq.read_table(part)
    for number, first in enumerate(range(0, len(events), 7000)):
        path = part.with_name(f"part-{number:05}.parquet")
        pq.write_table(events.slice(first, 7000), path, compression="zstd")
    assert_alike(copy)


def scattered(events: pa.Table) -> pa.Table:
    """Returns the same columns with random nulls and numbers."""
    chance = random.Random(7)
    columns: dict[str, pa.Array] = {}
    for field in events.schema:
        values = events[field.name].to_pylist()
        if field.nullable:
            values = [None if chance.random() < 0.3 else value for value in values]
        if field.name in ("gap_bytes", "offset_bytes"):
            values = [
                value if value is None else value - chance.choice((0, 1, 4096, 9999)) for value in values
            ]
        if field.name == "bytes":
            values = [value and chance.choice((value, 0, 1, 2, 3, 4097)) for value in values]
        if field.name == "pattern":
            values = [chance.randrange(8) for _ in values]
        columns[field.name] = pa.array(values, field.type)
    return pa.table(columns)


def test_nulls_anywhere_are_aggregated(run: Path, tmp_path: Path) -> None:
    assert_alike(rewritten(run, tmp_path, scattered, row_group_size=5000))


def test_an_older_store_without_some_columns_is_aggregated(run: Path, tmp_path: Path) -> None:
    assert_alike(
        rewritten(
            run, tmp_path, lambda events: events.drop_columns(["own_read_bytes", "gap_bytes", "end_ts"])
        )
    )


@pytest.mark.whole
def test_more_groups_than_the_table_holds_are_aggregated(run: Path, tmp_path: Path) -> None:
    def many(events: pa.Table) -> pa.Table:
        events = pa.concat_tables([events] * 40)
        tasks = pa.array(range(len(events)), pa.uint32())
        calls = pa.array((number % 60_000 for number in range(len(events))), pa.uint16())
        sizes = pa.array((1 << number // 60_000 % 40 for number in range(len(events))), pa.int64())
        for name, values in (("utid", tasks), ("call_id", calls), ("bytes", sizes)):
            events = events.set_column(events.schema.get_field_index(name), name, values)
        return events

    copy = rewritten(run, tmp_path, many, row_group_size=100_000)
    paths = sorted((copy / "events").iterdir())
    count = pq.read_metadata(paths[0]).num_rows
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"events": {count // 40}', f'"events": {count}'))
    parts = list(Folding(paths, "uses", None).tables())
    assert len(parts) > 1 and sum(part.rows for part in parts) == count
    with Store.open(copy) as store:
        Profile(store).need(["places"])
        places = FOLDS["transfers"]
        assert places.places is not None
        assert len(list(Folding(paths, "transfers", places_in(store.table(places.places))).tables())) > 1
    assert_alike(copy)


def with_column(name: str, values: Callable[[list[Any]], list[Any]], kind: pa.DataType) -> Any:
    def change(events: pa.Table) -> pa.Table:
        made = pa.array(values(events[name].to_pylist()), kind)
        return events.set_column(events.schema.get_field_index(name), name, made)

    return change


def first(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [value, *values[1:]]


STRANGE = {
    "signed": with_column("bytes", lambda values: values, pa.int32()),
    "negative": with_column("dur", first(-1), pa.int64()),
    "wide": with_column("utid", first(2**32 + 1), pa.int64()),
    "beyond": with_column("call_id", first(70_000), pa.uint32()),
    "a call that is null": with_column("call_id", first(None), pa.uint16()),
    "a side that is null": with_column("side", first(None), pa.uint8()),
    "least": with_column("gap_bytes", first(-(2**63)), pa.int64()),
    "sum": with_column("bytes", lambda values: [value and 2**62 for value in values], pa.int64()),
    "no calls": lambda events: events.drop_columns(["call_id"]),
}


@pytest.mark.parametrize("strange", STRANGE)
def test_events_of_another_format_are_refused(run: Path, tmp_path: Path, strange: str) -> None:
    refused = set()
    with Store.open(rewritten(run, tmp_path, STRANGE[strange])) as store:
        store.keep("places", "SELECT file_id, CAST(file_id AS BIGINT) AS place FROM files")
        for name in NAMES:
            fold = FOLDS[name]
            assert fold is not None
            if not store.fold("folded", fold):
                refused.add(name)
    of_one = {"wide": "uses", "a side that is null": "uses", "least": "transfers"}
    assert refused == ({of_one[strange]} if strange in of_one else set(NAMES))


@pytest.mark.parametrize(
    "files", ["file_id + 4000000000", "file_id // 2", "CAST(file_id AS BIGINT) + 5000000000"]
)
def test_file_ids_that_are_not_consecutive_are_left_to_sql(run: Path, files: str) -> None:
    with Store.open(run) as store:
        Profile(store).need(["places"])
        store.keep("places", f"SELECT {files} AS file_id, place FROM kept.places")
        fold = FOLDS["transfers"]
        assert fold.places is not None
        try:
            assert not store.fold("transfers", fold)
        except QueryError as error:
            assert "file_id" in str(error) or "UINT32" in str(error)


def test_file_numbers_of_any_width_give_the_same_sums(run: Path) -> None:
    with Store.open(run) as store:
        Profile(store).need(["transfers"])
        known = rows_of(store, "transfers")
        store.keep("places", "SELECT CAST(file_id AS BIGINT) AS file_id, place FROM kept.places")
        fold = FOLDS["transfers"]
        assert store.fold("transfers", fold) and rows_of(store, "transfers") == known


def test_a_missing_part_is_noticed(run: Path, tmp_path: Path) -> None:
    copy = rewritten(run, tmp_path, as_it_is)
    (part,) = (copy / "events").iterdir()
    events = pq.read_table(part)
    pq.write_table(events.slice(0, 7000), part, compression="zstd")
    pq.write_table(events.slice(7000), part.with_name("part-00001.parquet"), compression="zstd")
    with Store.open(copy) as store:
        assert store.rows("SELECT 1 FROM events LIMIT 1")
        part.with_name("part-00001.parquet").unlink()
        with pytest.raises(QueryError, match="part-00001"):
            Profile(store).need(["uses"])


@pytest.mark.parametrize("compression", ["snappy", "gzip"])
def test_events_of_another_writer_are_queried_with_sql(run: Path, tmp_path: Path, compression: str) -> None:
    copy = rewritten(run, tmp_path, as_it_is, compression=compression)
    for name in NAMES:
        with Store.open(run) as store, Store.open(copy) as other:
            Profile(store).need([name])
            fold = FOLDS[name]
            Profile(other).need(DERIVED[name].reads)
            assert not other.fold("x", fold)
            Profile(other).need([name])
            assert rows_of(other, name) == [
                row | ({"typical_ns": pytest.approx(row["typical_ns"], abs=1)} if "typical_ns" in row else {})
                for row in rows_of(store, name)
            ]


def damaged(run: Path, folder: Path, count: int, seed: int) -> Iterator[Path]:
    """Yields COUNT copies of RUN with a few changed bytes in the events, every second time in the footer."""
    chance = random.Random(seed)
    copy = folder / "copy.iodock"
    without_checksums(Path(shutil.copytree(run, copy)))
    (part,) = (copy / "events").iterdir()
    whole = part.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    for number in range(count):
        changed = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3))):
            place = chance.randrange(len(changed) - footer if number % 2 else 0, len(changed))
            changed[place] ^= 1 << chance.randrange(8)
        part.write_bytes(changed)
        yield copy


def folded_alone(store: Path, name: str) -> bool:
    """Returns whether the fold accepts the file."""
    places = pa.table({"file_id": pa.array([0], pa.uint32()), "place": pa.array([0], pa.uint32())})
    try:
        list(
            Folding(
                sorted((store / "events").iterdir()), name, places_in(places) if name == "transfers" else None
            ).tables()
        )
    except _native.NativeError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_damaged_events_are_left_to_sql_silently(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    count = 300
    taken = sum(folded_alone(copy, name) for copy in damaged(run, tmp_path, count, 11))
    assert 0.1 * count < taken < 0.95 * count
    assert capfd.readouterr().err == ""


@pytest.mark.whole
def test_damage_that_both_accept_gives_the_same_sums(run: Path, tmp_path: Path) -> None:
    taken, different = 0, 0
    for copy in damaged(run, tmp_path, 60, 13):
        with contextlib.suppress(IodockError), Store.open(copy) as store:
            fold = FOLDS["uses"]
            assert fold is not None
            if store.fold("folded_rows", fold):
                store.keep("asked_rows", DERIVED["uses"].sql(Profile(store).facts))
                taken += 1
                different += bool(
                    store.rows("SELECT 1 FROM (FROM folded_rows EXCEPT FROM asked_rows) LIMIT 1")
                )
    # Parquet's run-length encoded numbers have no checksum. If damage makes a run too long, the results of
    # the two readers may differ.
    assert taken > 20 and different <= 0.05 * taken


def test_a_damaged_file_is_named(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.iodock"
    without_checksums(Path(shutil.copytree(run, copy)))
    (part,) = (copy / "events").iterdir()
    whole = bytearray(part.read_bytes())
    whole[4 : len(whole) // 2] = bytes(len(whole) // 2 - 4)
    part.write_bytes(whole)
    with Store.open(copy) as store, pytest.raises(QueryError, match="part-00000"):
        Profile(store).need(["uses"])


def test_another_thread_can_stop_the_aggregation(run: Path, tmp_path: Path) -> None:
    copy = rewritten(run, tmp_path, lambda events: pa.concat_tables([events] * 100), row_group_size=200_000)
    folding = Folding(sorted((copy / "events").iterdir()), "uses", None)
    threading.Timer(0.02, folding.stop).start()
    with pytest.raises(_native.NativeError, match="stopped"):
        list(folding.tables())


def test_a_stopped_engine_raises_an_error(run: Path, tmp_path: Path) -> None:
    copy = rewritten(run, tmp_path, lambda events: pa.concat_tables([events] * 100), row_group_size=200_000)
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"events": 30', '"events_before": 30'))
    with Store.open(copy) as store:
        ended = threading.Event()

        def stop() -> None:
            while not ended.wait(0.01):
                store.engine.interrupt()

        assert store.rows("SELECT 1 FROM events LIMIT 1")
        stopper = threading.Thread(target=stop)
        stopper.start()
        try:
            with pytest.raises(QueryError, match=r"stopped|Interrupted"):
                Profile(store).need(["uses"])
        finally:
            ended.set()
            stopper.join()


def test_several_threads_can_aggregate_at_the_same_time(run: Path) -> None:
    with Store.open(run) as store, ThreadPoolExecutor(4) as pool:
        store.keep("places", "SELECT file_id, CAST(file_id AS BIGINT) AS place FROM files")
        names = [(f"{name}_{number}", FOLDS[name]) for name in NAMES for number in range(8)]
        assert all(pool.map(lambda one: store.fold(*one), names))
        for name in NAMES:
            assert all(
                rows_of(store, f"{name}_{number}") == rows_of(store, f"{name}_0") for number in range(1, 8)
            )
