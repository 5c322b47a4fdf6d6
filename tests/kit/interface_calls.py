"""Stores whose reads and writes were made in calls of MPI-IO."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from made_store import without_checksums

WRITE, WRITE_ALL = "MPI_File_write_at", "MPI_File_write_at_all"


def with_calls_of_mpi_io(store: Path, call: str) -> Path:
    """The store as if each transfer had been made in a CALL of its own. Of a collective call each task makes
    one for each transfer, whoever moves the bytes."""
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
            rows.append((len(rows), utid, is_collective, event))
    at = events.schema.get_field_index("interface_call_id")
    pq.write_table(events.set_column(at, "interface_call_id", pa.array(ids, pa.uint32())), path)
    pq.write_table(_table(call, rows), store / "interface_calls.parquet")
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["tables"]["interface_calls"] = len(rows)
    (store / "manifest.json").write_text(json.dumps(manifest))
    without_checksums(store)
    return store


def _table(call: str, rows: list[tuple[int, int, bool, dict[str, int]]]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([row[0] for row in rows], pa.uint32()),
            "utid": pa.array([row[1] for row in rows], pa.uint32()),
            "interface": ["MPI-IO"] * len(rows),
            "call": [call] * len(rows),
            "is_collective": [row[2] for row in rows],
            "direction": pa.array([row[3]["direction"] for row in rows], pa.uint8()),
            "file_id": pa.array([row[3]["file_id"] for row in rows], pa.uint32()),
            "ts": pa.array([row[3]["ts"] for row in rows], pa.int64()),
            "dur": pa.array([row[3]["dur"] for row in rows], pa.int64()),
            "result": pa.array([0] * len(rows), pa.int64()),
            "requested_bytes": pa.array([row[3]["bytes"] for row in rows], pa.int64()),
        }
    )
