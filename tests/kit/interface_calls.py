"""Changes stores as if the reads and writes had been made inside calls of MPI-IO or HDF5."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from made_store import without_checksums

WRITE, WRITE_ALL = "MPI_File_write_at", "MPI_File_write_at_all"


def with_calls_of_mpi_io(store: Path, call: str, more_ns: int = 0, offset_bytes: int | None = None) -> Path:
    """Puts each transfer of the store into its own MPI-IO call CALL, which takes MORE_NS longer than the
    transfer. For a collective CALL, every other task makes the call at the same time. OFFSET_BYTES: offset of
    every call; None if the MPI-IO view makes offsets unknown."""
    (path,) = (store / "events").glob("*.parquet")
    events = pq.read_table(path)
    utids = pq.read_table(store / "processes.parquet").column("utid").to_pylist()
    is_collective, rows, ids = call.endswith("_all"), [], []
    for event in events.to_pylist():
        if not event["bytes"]:
            ids.append(None)
            continue
        ids.append(len(rows))
        others = [utid for utid in utids if utid != event["utid"]] if is_collective else []
        for utid in (event["utid"], *others):
            longer = event | {"dur": event["dur"] + more_ns, "offset_bytes": offset_bytes}
            rows.append((len(rows), utid, is_collective, longer))
    _write(store, ids, {"interface_calls": _table(call, rows)})
    return store


def with_a_data_set(
    store: Path, transfers: int, requested_bytes: int, chunk_bytes: int, filters: str | None = None
) -> Path:
    """Puts each group of TRANSFERS into one HDF5 call on a chunked data set. Each call requests
    REQUESTED_BYTES and takes twice the time of its transfers."""
    (path,) = (store / "events").glob("*.parquet")
    moving = [event for event in pq.read_table(path).to_pylist() if event["bytes"]]
    groups = [moving[at : at + transfers] for at in range(0, len(moving), transfers)]
    rows = [
        (number, group[0]["utid"], False, group[0] | {
            "bytes": requested_bytes, "dur": 2 * sum(event["dur"] for event in group)
        })
        for number, group in enumerate(groups)
    ]  # fmt: skip
    numbers = (at // transfers for at in range(len(moving)))
    ids = [next(numbers) if event["bytes"] else None for event in pq.read_table(path).to_pylist()]
    calls = _table("H5Dread" if rows[0][3]["direction"] == 1 else "H5Dwrite", rows, "HDF5")
    sets = pa.table(
        {
            "interface_call_id": pa.array([0], pa.uint32()),
            "handle_id": pa.array([0], pa.uint32()),
            "file_id": pa.array([rows[0][3]["file_id"]], pa.uint32()),
            "name": ["/heat"],
            "layout": ["chunked"],
            "element_bytes": [8],
            "extent": ["2048x2048"],
            "chunk": [f"1x{chunk_bytes // 8}"],
            "chunk_bytes": [chunk_bytes],
            "filters": pa.array([filters], pa.string()),
        }
    )
    handles = pa.array([0] * len(rows), pa.uint32())
    calls = calls.append_column("handle_id", handles)
    _write(store, ids, {"interface_calls": calls, "datasets": sets})
    return store


def _write(store: Path, ids: list[int | None], tables: dict[str, pa.Table]) -> None:
    (path,) = (store / "events").glob("*.parquet")
    events = pq.read_table(path)
    at = events.schema.get_field_index("interface_call_id")
    pq.write_table(events.set_column(at, "interface_call_id", pa.array(ids, pa.uint32())), path)
    manifest = json.loads((store / "manifest.json").read_text())
    for name, table in tables.items():
        pq.write_table(table, store / f"{name}.parquet")
        manifest["tables"][name] = len(table)
    (store / "manifest.json").write_text(json.dumps(manifest))
    without_checksums(store)


def _table(
    call: str, rows: list[tuple[int, int, bool, dict[str, int]]], interface: str = "MPI-IO"
) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([row[0] for row in rows], pa.uint32()),
            "utid": pa.array([row[1] for row in rows], pa.uint32()),
            "interface": [interface] * len(rows),
            "call": [call] * len(rows),
            "is_collective": [row[2] for row in rows],
            "direction": pa.array([row[3]["direction"] for row in rows], pa.uint8()),
            "file_id": pa.array([row[3]["file_id"] for row in rows], pa.uint32()),
            "ts": pa.array([row[3]["ts"] for row in rows], pa.int64()),
            "dur": pa.array([row[3]["dur"] for row in rows], pa.int64()),
            "result": pa.array([0] * len(rows), pa.int64()),
            "requested_bytes": pa.array([row[3]["bytes"] for row in rows], pa.int64()),
            "offset_bytes": pa.array([row[3]["offset_bytes"] for row in rows], pa.int64()),
        }
    )
