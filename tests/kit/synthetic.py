"""Writes made-up stores with pyarrow as docs/explanation/store.md describes them. It uses none of iodock's
Rust code, so tests check the documented format independently."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

EVENTS = pa.schema(
    [
        ("ts", pa.int64()),
        ("end_ts", pa.int64()),
        ("dur", pa.int64()),
        ("sys_cpu_ns", pa.int64()),
        ("call_id", pa.uint16()),
        ("errno_id", pa.uint16()),
        ("result", pa.int64()),
        ("utid", pa.uint32()),
        ("file_id", pa.uint32()),
        ("other_file_id", pa.uint32()),
        ("side", pa.uint8()),
        ("requested_bytes", pa.int64()),
        ("offset_bytes", pa.int64()),
        ("bytes", pa.int64()),
        ("direction", pa.uint8()),
        ("fd", pa.int32()),
        ("handle_id", pa.uint32()),
        ("flags", pa.uint32()),
        ("pattern", pa.uint8()),
        ("gap_bytes", pa.int64()),
        ("own_read_bytes", pa.int64()),
        ("any_read_bytes", pa.int64()),
        ("own_written_bytes", pa.int64()),
        ("any_written_bytes", pa.int64()),
    ]
)
FILES = pa.schema(
    [
        ("file_id", pa.uint32()),
        ("name", pa.string()),
        ("name_raw", pa.binary()),
        ("kind", pa.string()),
        ("relative", pa.bool_()),
        ("folder", pa.string()),
        ("ending", pa.string()),
        ("pattern", pa.string()),
        ("mount_point", pa.string()),
        ("fs_type", pa.string()),
        ("size_bytes", pa.int64()),
        ("host", pa.string()),
    ]
)
PROCESSES = pa.schema(
    [
        ("utid", pa.uint32()),
        ("upid", pa.uint32()),
        ("host", pa.string()),
        ("rank", pa.int32()),
        ("pid", pa.int32()),
        ("tid", pa.int32()),
        ("generation", pa.int32()),
        ("parent_utid", pa.uint32()),
        ("parent_pid", pa.int32()),
        ("how", pa.string()),
        ("start_ts", pa.int64()),
        ("end_ts", pa.int64()),
        ("exit_code", pa.int32()),
        ("exit_signal", pa.string()),
        ("core_dumped", pa.bool_()),
        ("cpu_user_ns", pa.int64()),
        ("cpu_system_ns", pa.int64()),
    ]
)
COMMANDS = pa.schema(
    [("utid", pa.uint32()), ("ts", pa.int64()), ("path", pa.string()), ("argv", pa.list_(pa.string()))]
)
CALLS = pa.schema(
    [("id", pa.uint16()), ("name", pa.string()), ("family", pa.string()), ("class", pa.string())]
)
ERRNOS = pa.schema([("id", pa.uint16()), ("name", pa.string())])

KNOWN_CALLS = [
    ("open", "open", "metadata"),
    ("openat", "open", "metadata"),
    ("close", "close", "metadata"),
    ("read", "read", "data"),
    ("pread64", "read", "data"),
    ("write", "write", "data"),
    ("lseek", "lseek", "seek"),
    ("fsync", "fsync", "sync"),
    ("rename", "rename", "metadata"),
    ("sendfile", "sendfile", "data"),
    ("copy_file_range", "copy_file_range", "data"),
    ("mmap", "mmap", "map"),
    ("brk", "brk", "other"),
    ("exit_group", "exit", "other"),
    ("poll", "poll", "other"),
    ("newfstatat", "stat", "metadata"),
]
CALL_ID = {name: number for number, (name, _, _) in enumerate(KNOWN_CALLS)}
KNOWN_ERRNOS = ["ENOENT", "EACCES", "EAGAIN"]
ERRNO_ID = {name: number for number, name in enumerate(KNOWN_ERRNOS)}
SIDES = {"only": 0, "in": 1, "out": 2, "old": 3, "new": 4}


def file_row(file_id: int, name: str, kind: str = "regular", **more: Any) -> dict[str, Any]:
    """Returns a row of files.parquet, with the columns that follow from the name."""
    base = name.rsplit("/", 1)[-1]
    ending = base.rsplit(".", 1)[1] if "." in base.lstrip(".") else ""
    folder = name.rsplit("/", 1)[0] if "/" in name else ""
    pattern = "".join("*" if letter.isdigit() else letter for letter in name)
    while "**" in pattern:
        pattern = pattern.replace("**", "*")
    row = {
        "file_id": file_id,
        "name": name,
        "kind": kind,
        "relative": False,
        "folder": folder,
        "ending": ending,
        "pattern": pattern,
    }
    return row | more


def process_row(utid: int, pid: int, tid: int | None = None, **more: Any) -> dict[str, Any]:
    """Returns a row of processes.parquet; by default the process is a root."""
    row = {"utid": utid, "upid": utid, "pid": pid, "tid": tid or pid, "generation": 0, "how": "root"}
    return row | more


def event_row(call: str, **more: Any) -> dict[str, Any]:
    """Returns a row of events.parquet; `side` and `errno` may be given by name."""
    row = {"call_id": CALL_ID[call], "utid": 0, "side": 0, "direction": 0, "pattern": 0}
    row |= more
    row["side"] = SIDES.get(row["side"], row["side"])
    if "errno" in row:
        row["errno_id"] = ERRNO_ID[row.pop("errno")]
    return row


def write_table(path: Path, schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes one Parquet table from rows. Columns that a row does not name are null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path, compression="zstd")


def write_store(
    path: Path,
    events: Sequence[Mapping[str, Any]],
    files: Sequence[Mapping[str, Any]],
    processes: Sequence[Mapping[str, Any]],
    commands: Sequence[Mapping[str, Any]] = (),
    **manifest: Any,
) -> Path:
    """Writes a whole store. `manifest` replaces keys of manifest.json."""
    write_table(path / "events" / "part-00000.parquet", EVENTS, events)
    write_table(path / "files.parquet", FILES, files)
    write_table(path / "processes.parquet", PROCESSES, processes)
    write_table(path / "commands.parquet", COMMANDS, commands)
    write_fixed_tables(path)
    stamps = [row["ts"] for row in events if row.get("ts") is not None]
    ends = [
        row.get("end_ts") or row["ts"] + (row.get("dur") or 0)
        for row in events
        if row.get("ts") is not None or row.get("end_ts") is not None
    ]
    durations = any(row.get("dur") is not None for row in events)
    write_manifest(
        path,
        first_ts=min(stamps, default=None),
        last_ts=max(ends, default=None),
        events=len(events),
        files=len(files),
        processes=len(processes),
        durations=durations,
        **manifest,
    )
    return path


def write_fixed_tables(path: Path) -> None:
    """Writes calls.parquet and errnos.parquet."""
    calls = [
        {"id": number, "name": name, "family": family, "class": kind}
        for number, (name, family, kind) in enumerate(KNOWN_CALLS)
    ]
    write_table(path / "calls.parquet", CALLS, calls)
    write_table(
        path / "errnos.parquet", ERRNOS, [{"id": n, "name": name} for n, name in enumerate(KNOWN_ERRNOS)]
    )


def write_manifest(
    path: Path,
    first_ts: int | None,
    last_ts: int | None,
    events: int,
    files: int,
    processes: int,
    durations: bool = True,
    **more: Any,
) -> None:
    """Writes manifest.json."""
    manifest = {
        "schema": 1,
        "state": "complete",
        "writer": "iodock 0.1.0",
        "created_ns": 1_700_000_000_000_000_000,
        "captured": {
            "how": "strace",
            "command": ["./made-up"],
            "logs": ["made-up.log"],
            "exit_status": 0,
            "exit_signal": None,
            "working_directory": None,
            "wall_ns": None,
        },
        "host": {"name": "node1", "kernel": "6.1.0", "cpus": 2},
        "hosts": [],
        "ranks": None,
        "clock": "epoch",
        "first_ts": first_ts,
        "last_ts": last_ts,
        "source": {
            "lines": events,
            "calls": events,
            "unfinished": 0,
            "orphans": 0,
            "durations": durations,
            "signals": {},
        },
        "tables": {"events": events, "files": files, "processes": processes},
        "losses": [],
    }
    (path / "manifest.json").write_text(json.dumps(manifest | more))
