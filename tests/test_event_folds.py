"""Events folded outside the SQL engine are what SQL makes of the same events."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iodock import _native, capture
from iodock.errors import QueryError
from iodock.relations.profile import DERIVED, Profile
from iodock.store import Store
from iodock.store.folds import Folding
from test_folds import imported, lines

NAMES = ("uses", "transfers")
CASES = Path(__file__).parent.parent / "fixtures" / "cases"
LOGS = sorted(
    (*CASES.glob("strace/*/log.xz"), *CASES.glob("truss/*.truss"), *CASES.parent.glob("truss/[!c]*"))
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("folds"), islice(lines(280_000, 500), 30_000))


def rows_of(store: Store, name: str) -> list[dict[str, Any]]:
    return store.rows(f"SELECT * FROM {name} ORDER BY ALL")


def both(path: Path, name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the derived table NAME, folded and asked in SQL."""
    derived = DERIVED[name]
    with Store.open(path) as store:
        Profile(store).need(derived.after)
        assert derived.fold is not None and store.fold("folded_rows", derived.fold)
        store.keep("asked_rows", derived.sql(store))
        described = [store.rows(f"DESCRIBE {made}_rows") for made in ("folded", "asked")]
        assert described[0] == described[1]
        return rows_of(store, "folded_rows"), rows_of(store, "asked_rows")


def assert_alike(path: Path) -> None:
    for name in NAMES:
        folded, asked = both(path, name)
        for row in (*folded, *asked):
            if row.get("typical_ns") is not None:
                # Logarithms are added up in another order.
                row["typical_ns"] = pytest.approx(row["typical_ns"], rel=1e-9, abs=1)
        assert folded == asked, name


def rewritten(run: Path, folder: Path, change: Callable[[pa.Table], pa.Table], **options: Any) -> Path:
    """A copy of RUN whose events were changed, and written by another writer."""
    copy = folder / "copy.iodock"
    shutil.copytree(run, copy)
    (part,) = (copy / "events").iterdir()
    pq.write_table(change(pq.read_table(part)), part, **({"compression": "zstd"} | options))
    return copy


def as_it_is(events: pa.Table) -> pa.Table:
    return events


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.parent.name}-{log.name}")
def test_each_case_folds_as_sql_does(log: Path, tmp_path: Path) -> None:
    capture.import_logs([str(log)], tmp_path / "run.iodock")
    assert_alike(tmp_path / "run.iodock")


@pytest.mark.parametrize("rows", [997, 4096, 9000])
def test_row_groups_of_any_size_and_several_threads(run: Path, tmp_path: Path, rows: int) -> None:
    assert_alike(rewritten(run, tmp_path, as_it_is, row_group_size=rows))


def test_several_files(run: Path, tmp_path: Path) -> None:
    copy = rewritten(run, tmp_path, as_it_is)
    (part,) = (copy / "events").iterdir()
    events = pq.read_table(part)
    for number, first in enumerate(range(0, len(events), 7000)):
        path = part.with_name(f"part-{number:05}.parquet")
        pq.write_table(events.slice(first, 7000), path, compression="zstd")
    assert_alike(copy)


def scattered(events: pa.Table) -> pa.Table:
    """The same columns, with nulls and numbers wherever they may be."""
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


def test_nulls_anywhere(run: Path, tmp_path: Path) -> None:
    assert_alike(rewritten(run, tmp_path, scattered, row_group_size=5000))


def test_a_store_of_before_lacks_columns(run: Path, tmp_path: Path) -> None:
    assert_alike(
        rewritten(
            run, tmp_path, lambda events: events.drop_columns(["own_read_bytes", "gap_bytes", "end_ts"])
        )
    )


def test_more_groups_than_are_kept_at_a_time(run: Path, tmp_path: Path) -> None:
    def many(events: pa.Table) -> pa.Table:
        events = pa.concat_tables([events] * 40)
        tasks = pa.array(range(len(events)), pa.uint32())
        return events.set_column(events.schema.get_field_index("utid"), "utid", tasks)

    copy = rewritten(run, tmp_path, many, row_group_size=100_000)
    manifest = copy / "manifest.json"
    count = pq.read_metadata(next((copy / "events").iterdir())).num_rows
    manifest.write_text(manifest.read_text().replace(f'"events": {count // 40}', f'"events": {count}'))
    parts = list(Folding(sorted((copy / "events").iterdir()), "uses", None).tables())
    assert len(parts) > 1 and sum(map(len, parts)) == count
    folded, asked = both(copy, "uses")
    assert folded == asked


@pytest.mark.parametrize("compression", ["snappy", "gzip"])
def test_what_another_writer_made_is_asked_in_sql(run: Path, tmp_path: Path, compression: str) -> None:
    copy = rewritten(run, tmp_path, as_it_is, compression=compression)
    for name in NAMES:
        with Store.open(run) as store, Store.open(copy) as other:
            Profile(store).need([name])
            fold = DERIVED[name].fold
            Profile(other).need(DERIVED[name].after)
            assert fold is not None and not other.fold("x", fold)
            Profile(other).need([name])
            assert rows_of(other, name) == [
                row | ({"typical_ns": pytest.approx(row["typical_ns"], abs=1)} if "typical_ns" in row else {})
                for row in rows_of(store, name)
            ]


def damaged(run: Path, folder: Path) -> Iterator[Path]:
    """Copies of RUN with a few bytes of its events changed."""
    chance = random.Random(11)
    copy = folder / "copy.iodock"
    shutil.copytree(run, copy)
    (part,) = (copy / "events").iterdir()
    whole = part.read_bytes()
    for _ in range(150):
        changed = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3))):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        part.write_bytes(changed)
        yield copy


def test_damage_is_left_to_sql_to_tell(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    refused = 0
    for copy in damaged(run, tmp_path):
        try:
            tables = list(Folding(sorted((copy / "events").iterdir()), "uses", None).tables())
            assert tables
        except _native.NativeError as error:
            assert "part-00000.parquet" in str(error)
            refused += 1
    assert 10 < refused < 150
    assert capfd.readouterr().err == ""


def test_a_damaged_file_is_named(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.iodock"
    shutil.copytree(run, copy)
    (part,) = (copy / "events").iterdir()
    whole = bytearray(part.read_bytes())
    whole[4 : len(whole) // 2] = bytes(len(whole) // 2 - 4)
    part.write_bytes(whole)
    with Store.open(copy) as store, pytest.raises(QueryError, match="part-00000"):
        Profile(store).need(["uses"])


def test_files_of_absurd_numbers_are_left_to_sql(run: Path) -> None:
    with Store.open(run) as store:
        Profile(store).need(["places"])
        store.keep(
            "places", "SELECT CAST(file_id + 4000000000 AS UINTEGER) AS file_id, place FROM kept.places"
        )
        fold = DERIVED["transfers"].fold
        assert fold is not None and not store.fold("transfers", fold)


def test_another_thread_stops_it(run: Path) -> None:
    folding = Folding(sorted((run / "events").iterdir()), "uses", None)
    stopper = threading.Thread(target=folding.stop)
    stopper.start()
    stopper.join()
    with pytest.raises(_native.NativeError, match="stopped"):
        list(folding.tables())
