"""Creates stores of any size with SQL, for tests of readers of stores, without a recorder or parser."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

START = 1_700_000_000_000_000_000
STEP_NS = 20_000
CALLS = [
    (0, "openat", "open", "metadata"), (1, "read", "read", "data"), (2, "write", "write", "data"),
    (3, "close", "close", "metadata"), (4, "lseek", "lseek", "seek"),
]  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """The size and content of a made-up store."""

    events: int = 2000
    names: tuple[str, ...] = ("/data/a.dat", "/data/b.dat", "/etc/c.conf")
    durations: bool = True
    times: bool = True
    tasks: int = 4


def make_store(folder: Path, shape: Shape) -> Path:
    """Writes a store. Each 20 events are 1 open (every third fails), 4 writes, 11 reads, 2 closes and 2
    seeks."""
    (folder / "events").mkdir(parents=True)
    with duckdb.connect(config={"threads": 2, "memory_limit": "1GB"}) as connection:
        _copy(connection, _events(shape), folder / "events" / "part-00000.parquet")
        _copy(connection, _tasks(shape), folder / "processes.parquet")
        calls = ", ".join(map(str, CALLS))
        _copy(
            connection, f"SELECT * FROM (VALUES {calls}) t(id, name, family, class)", folder / "calls.parquet"
        )
        _copy(connection, "SELECT 0 AS id, 'ENOENT' AS name", folder / "errnos.parquet")
    _write_files(folder / "files.parquet", shape.names)
    (folder / "manifest.json").write_text(json.dumps(_manifest(shape)))
    return folder


def without_checksums(store: Path) -> Path:
    """Removes the checksums from a store, as in stores of older versions, and returns its path."""
    path = store / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest = {key: value for key, value in manifest.items() if key not in ("checksum", "checksums")}
    path.write_text(json.dumps(manifest))
    return store


def _copy(connection: duckdb.DuckDBPyConnection, sql: str, path: Path) -> None:
    connection.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 1000000)")


def _events(shape: Shape) -> str:
    ts = f"{START} + i * {STEP_NS}" if shape.times else "NULL"
    dur = "1000 + hash(i) % 4000" if shape.durations else "NULL"
    files = len(shape.names)
    return f"""SELECT CAST({ts} AS BIGINT) AS ts, CAST({dur} AS BIGINT) AS dur,
  CAST(CASE WHEN k = 0 THEN 0 WHEN k < 5 THEN 2 WHEN k < 16 THEN 1 WHEN k < 18 THEN 3 ELSE 4 END
    AS USMALLINT) AS call_id,
  CAST(CASE WHEN i % 60 = 0 THEN 0 END AS USMALLINT) AS errno_id, CAST(4096 AS BIGINT) AS result,
  CAST(i % {shape.tasks} AS UINTEGER) AS utid,
  CAST(floor(power(hash(i * 31) % 1000003 / 1000003.0, 3) * {files}) AS UINTEGER) AS file_id,
  CAST(0 AS UTINYINT) AS side,
  CAST(CASE WHEN k BETWEEN 1 AND 15 THEN (i * 4096) % 268435456 END AS BIGINT) AS offset_bytes,
  CAST(CASE WHEN k BETWEEN 1 AND 15 THEN 1 << (i % 17) END AS BIGINT) AS bytes,
  CAST(CASE WHEN k BETWEEN 1 AND 4 THEN 2 WHEN k BETWEEN 5 AND 15 THEN 1 ELSE 0 END AS UTINYINT) AS direction,
  CAST(i % 99 AS UINTEGER) AS handle_id, CAST(i % 8 AS UTINYINT) AS pattern
FROM (SELECT i, i % 20 AS k FROM range({shape.events}) t(i)) z"""


def _tasks(shape: Shape) -> str:
    end = START + shape.events * STEP_NS
    return f"""SELECT CAST(i AS UINTEGER) AS utid, CAST(i AS UINTEGER) AS upid, CAST(i AS INTEGER) AS rank,
  CAST(100 + i AS INTEGER) AS pid, CAST(100 + i AS INTEGER) AS tid,
  CAST(CASE WHEN i > 0 THEN 99 + i END AS INTEGER) AS parent_pid,
  CASE WHEN i = 0 THEN 'root' ELSE 'fork' END AS how,
  CAST({START} AS BIGINT) AS start_ts, CAST({end} AS BIGINT) AS end_ts, CAST(0 AS INTEGER) AS exit_code
FROM range({shape.tasks}) t(i)"""


def _write_files(path: Path, names: tuple[str, ...]) -> None:
    columns = {
        "file_id": pa.array(range(len(names)), pa.uint32()),
        "name": list(names),
        "kind": ["regular"] * len(names),
    }
    pq.write_table(pa.table(columns), path)


def _manifest(shape: Shape) -> dict[str, object]:
    losses = (
        []
        if shape.durations
        else [{"name": "missing-durations", "count": shape.events, "cure": "re-run strace with -T"}]
    )
    return {
        "schema": 1, "state": "complete", "writer": "iodock 0.1.0",
        "captured": {"how": "strace", "command": ["./solver", "--mesh"], "exit_status": 0},
        "clock": "epoch" if shape.times else "none",
        "first_ts": START if shape.times else None,
        "last_ts": START + shape.events * STEP_NS if shape.times else None,
        "source": {"calls": shape.events, "durations": shape.durations}, "losses": losses,
    }  # fmt: skip
