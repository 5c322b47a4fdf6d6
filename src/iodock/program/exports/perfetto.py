"""Writes a Perfetto trace. Each call is on the track of its thread and on the track of its file, with its
stack.

The format and the numbers of fields are those of
https://github.com/google/perfetto/blob/main/protos/perfetto/trace/perfetto_trace.proto. This module writes
names and tracks, and crates/iodock-perfetto writes the calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, TypeGuard

import pyarrow as pa

from iodock import _native
from iodock.program.exports.protobuf import number, text
from iodock.program.relations.filters import Filters
from iodock.program.relations.flames import FUNCTIONS, PROGRAMS, STACKS, keep_programs, keep_stacks
from iodock.program.relations.selection import Selection, select
from iodock.program.store import Store
from iodock.shared.errors import RequestError

MOST_TRACKS = 200
"""Number of files that have tracks of their own: those with most time in calls, then those with most
calls."""

# Each constant is the first id of a range, as in crates/iodock-perfetto/src/lib.rs.
_THREADS, _PROCESSES, _FILES = 1 << 40, 2 << 40, 3 << 40
_ERRORS = _FILE_CATEGORY = 1 << 40
_OTHER_IDS = 1 << 24
"""First of the ids that replace ids which several processes share, or which are not known. Linux has no ids
above 2**22."""
_NONE = -(1 << 63)
_ANNOTATIONS = ("file", "bytes", "offset", "requested bytes", "result", "error")
_REALTIME, _BOOTTIME = 1, 6

_TS = "coalesce(e.ts, e.end_ts - coalesce(e.dur, 0))"
_COLUMNS = (
    *(_TS, "coalesce(e.dur, e.end_ts - e.ts)", "e.utid", "e.call_id", "k.id", "e.file_id", "e.bytes"),
    *("e.offset_bytes", "e.requested_bytes", "e.result", "e.errno_id", "e.stack_id"),
)
_CLASSES = "flame_classes"


def write_perfetto(store: Store, filters: Filters, out: BinaryIO) -> tuple[str, ...]:
    """Writes the trace with the chosen calls, and returns notes. Raises RequestError if the times of the
    calls are not known."""
    selection = select(store, filters)
    (known,) = store.rows(
        f"SELECT count(*) AS calls, count({_TS}) AS timed, min({_TS}) AS first {selection.from_events}"
    )
    if known["calls"] and not known["timed"]:
        raise RequestError(
            f"{store.name}: does not contain the times of calls", "--format speedscope needs no times"
        )
    keep_programs(store)
    keep_stacks(store)
    store.keep(_CLASSES, "SELECT class, row_number() OVER (ORDER BY class) AS id FROM calls GROUP BY 1")
    out.write(_clocks(store, known["first"] or 0))
    out.write(_interned(_names(store), cleared=True))
    for part in _long_names(store):
        out.write(_interned(part))
    for track in _tracks(store):
        out.write(_packet(text(60, track)))
    named = _files_with_tracks(store, selection)
    writer = _native.PerfettoCalls(named)
    for batch in store.reader(_calls_sql(selection)):
        out.write(writer.packets([_numbers(column) for column in batch.columns]))
    return (*selection.notes, *_notes(store, selection, len(named), known["calls"] - known["timed"]))


def _packet(content: bytes) -> bytes:
    # All packets belong to the same sequence. Perfetto resolves the numbers of names only within a sequence.
    return text(1, number(10, 1) + content)


def _clocks(store: Store, first: int) -> bytes:
    """Makes a packet that says which clock the times refer to. If they refer to the epoch, it says so."""
    clocks = [_BOOTTIME] if store.manifest.clock != "epoch" else [_REALTIME, _BOOTTIME]
    return _packet(text(6, b"".join(text(1, number(1, clock) + number(2, first)) for clock in clocks)))


def _interned(names: Iterable[bytes], cleared: bool = False) -> bytes:
    """Makes a packet that assigns numbers to names. If CLEARED is true, it is the first such packet, and
    Perfetto forgets names from before it."""
    return _packet(number(13, 1 if cleared else 2) + text(12, b"".join(names)))


def _name(field: int, at: int, name: str) -> bytes:
    return text(field, number(1, at) + text(2, name.encode("utf-8", "backslashreplace")))


def _names(store: Store) -> Iterator[bytes]:
    for row in store.rows("SELECT id, name FROM calls ORDER BY id"):
        yield _name(2, row["id"] + 1, row["name"])
    for row in store.rows(f"SELECT id, class FROM {_CLASSES} ORDER BY id"):
        yield _name(1, row["id"] + 1, row["class"])
    yield _name(1, _FILE_CATEGORY, "file")
    for at, name in enumerate(_ANNOTATIONS, 1):
        yield _name(3, at, name)
    for row in store.rows("SELECT id, name FROM errnos ORDER BY id"):
        yield _name(29, _ERRORS + row["id"] + 1, row["name"])


def _long_names(store: Store) -> Iterator[list[bytes]]:
    """Yields names of files, functions and stacks in several parts, because their number grows with the
    run."""
    for batch in store.reader("SELECT file_id, name FROM files"):
        yield [_name(29, row["file_id"] + 1, row["name"]) for row in batch.to_pylist()]
    modules: dict[str, int] = {}
    sources: dict[str, int] = {}
    for batch in store.reader(f"SELECT id, name, file, line, module, build_id FROM {FUNCTIONS} ORDER BY id"):
        part: list[bytes] = []
        for row in batch.to_pylist():
            part += _module(row["module"], row["build_id"], modules)
            if row["file"] is not None and row["file"] not in sources:
                sources[row["file"]] = len(sources) + 1
                part.append(_name(18, sources[row["file"]], row["file"]))
            part.append(_name(5, row["id"], row["name"]))
            place = number(5, sources.get(row["file"], 0)) + number(6, row["line"] or 0)
            mapping = number(3, modules.get(_key(row["module"], row["build_id"]), 0))
            part.append(text(6, number(1, row["id"]) + number(2, row["id"]) + mapping + place))
        yield part
    for batch in store.reader(f"SELECT stack_id, ids FROM {STACKS} ORDER BY stack_id"):
        yield [
            text(7, number(1, row["stack_id"] + 1) + b"".join(number(2, frame) for frame in row["ids"]))
            for row in batch.to_pylist()
        ]


def _key(module: str | None, build_id: str | None) -> str:
    return f"{build_id or ''} {module or ''}"


def _module(module: str | None, build_id: str | None, known: dict[str, int]) -> Iterator[bytes]:
    """Yields the fields that describe a program file or library, when it occurs for the first time. Its whole
    path is one name."""
    key = _key(module, build_id)
    if module is None or key in known:
        return
    at = known[key] = len(known) + 1
    yield _name(17, at, module)
    yield text(16, number(1, at) + text(2, bytes.fromhex(build_id) if _is_hexadecimal(build_id) else b""))
    yield text(19, number(1, at) + number(2, at) + number(7, at))


def _is_hexadecimal(text: str | None) -> TypeGuard[str]:
    return text is not None and re.fullmatch("([0-9a-fA-F]{2})+", text) is not None


def _tracks(store: Store) -> Iterator[bytes]:
    """Yields the tracks of processes and threads, and the track that is the parent of all files' tracks."""
    yield number(1, _FILES) + text(2, b"Files")
    for (
        row
    ) in store.rows(f"""WITH own AS (SELECT pid FROM processes GROUP BY 1 HAVING count(DISTINCT upid) = 1),
  one AS (SELECT tid FROM processes GROUP BY 1 HAVING count(*) = 1)
SELECT p.upid, p.utid, p.host, p.rank, p.pid AS shown, r.name,
  min(p.utid) OVER (PARTITION BY p.upid) AS first,
  CASE WHEN o.pid IS NULL THEN {_OTHER_IDS} + p.upid ELSE p.pid END AS pid,
  CASE WHEN o.pid IS NULL OR t.tid IS NULL THEN {_OTHER_IDS} + p.utid ELSE p.tid END AS tid
FROM processes p LEFT JOIN own o ON o.pid = p.pid LEFT JOIN one t ON t.tid = p.tid
  LEFT JOIN {PROGRAMS} r ON r.utid = p.utid ORDER BY p.utid"""):
        name = row["name"] or "?"
        if row["rank"] is not None:
            name = f"{name} rank {row['rank']}"
        if row["pid"] != row["shown"]:
            where = f"{row['host']}:{row['shown']}" if row["host"] else row["shown"]
            name = f"{name} ({where})"
        shown = name.encode("utf-8", "backslashreplace")
        if row["utid"] == row["first"]:
            process = number(1, row["pid"]) + text(6, shown)
            yield number(1, _PROCESSES + row["upid"]) + text(3, process)
        thread = number(1, row["pid"]) + number(2, row["tid"]) + text(5, shown)
        yield number(1, _THREADS + row["utid"]) + number(5, _PROCESSES + row["upid"]) + text(4, thread)


def _files_with_tracks(store: Store, selection: Selection) -> list[tuple[int, str]]:
    rows = store.rows(f"""SELECT f.file_id, any_value(n.name) AS name FROM
  (SELECT e.file_id, e.dur, 1 AS calls {selection.from_events}) f JOIN files n ON n.file_id = f.file_id
GROUP BY 1 ORDER BY sum(f.dur) DESC NULLS LAST, count(*) DESC, 1 LIMIT {MOST_TRACKS}""")
    return [(row["file_id"], row["name"]) for row in rows]


def _calls_sql(selection: Selection) -> str:
    columns = [f"coalesce(CAST({one} AS BIGINT), {_NONE}) AS c{at}" for at, one in enumerate(_COLUMNS)]
    joins = f"LEFT JOIN calls c ON c.id = e.call_id LEFT JOIN {_CLASSES} k ON k.class = c.class"
    return f"""SELECT {", ".join(columns)}, CAST(NOT {selection.again} AS BIGINT) AS counted
FROM events e {selection.joins} {joins} {selection.and_where(f"{_TS} IS NOT NULL")}"""


def _numbers(column: pa.Array) -> bytes:
    buffer = column.buffers()[1]
    return buffer.slice(column.offset * 8, len(column) * 8).to_pybytes() if buffer is not None else b""


def _notes(store: Store, selection: Selection, tracks: int, untimed: int) -> Iterator[str]:
    if untimed:
        yield f"{untimed:,} rows are left out: it is not known when these calls were made"
    if tracks == MOST_TRACKS:
        (row,) = store.rows(f"SELECT count(DISTINCT e.file_id) AS files {selection.from_events}")
        if row["files"] > tracks:
            most = "items with most time in calls"
            yield f"only {tracks} of {row['files']:,} files have tracks of their own, {most}"
