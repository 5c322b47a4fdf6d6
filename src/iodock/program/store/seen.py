"""Defines two views with names instead of numbers, for users who write SQL: `calls_seen` has one row per
call, `call_ends` one row for each file that a call uses (docs/reference/views.md).

A call on two files (rename, sendfile) has a row in `events` for each file. A query that counts calls needs
the call once; a query by file needs it at both files.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SeenColumn:
    """Describes one column of a view."""

    name: str
    doc: str


@dataclass(frozen=True, slots=True)
class SeenView:
    """Describes one view over the store's tables."""

    name: str
    doc: str
    columns: tuple[SeenColumn, ...]
    select: str


def _columns(text: str) -> tuple[SeenColumn, ...]:
    return tuple(SeenColumn(*line.split(None, 1)) for line in text.splitlines() if line.strip())


_TASK = """
    ts start, ns since the epoch or midnight
    end_ts end, ns
    dur elapsed ns inside the call
    sys_cpu_ns system CPU ns of the call (truss -E)
    rank MPI rank
    host host on which the task ran
    pid process id
    tid thread id
    call name of the system call
    family calls that do the same: open = open, openat, ...
    class data, metadata, seek, sync, map or other
"""
_OUTCOME = """
    result returned value, null for no result
    errno name of the error, null if the call did not fail
"""

CALLS = _columns(
    f"""{_TASK}
    file name of the file; if there are two: the file that is read, or the old name
    kind kind of that file
    folder folder of that file
    other_file for a call with two ends: the file that is written, or the new name; else null
    other_kind kind of the other file
    by_path whether a path names one of the call's files: iodock show counts such calls unless --kind is given
    offset_bytes place in `file`
    requested_bytes bytes requested at the first end
    bytes read_bytes and written_bytes together; null if the call transfers none
    read_bytes bytes that the call read, at all of its ends; null if it reads none
    written_bytes bytes that the call wrote, at all of its ends; null if it writes none
    direction read, write, or both for a call that reads and writes; null if it transfers none
    {_OUTCOME}
    fd descriptor of the first end, as numbered by the program
    """
)
ENDS = _columns(
    f"""{_TASK}
    side null for a call with one end; else in, out, old or new
    file name of the file at this end
    kind kind of that file
    folder folder of that file
    other_file for a call with two ends: name of the file at the other end
    is_again true for a second end at the same file: exclude these when you count calls by file
    offset_bytes offset in the file
    requested_bytes bytes requested
    bytes bytes transferred at this end, null if the call transfers none
    direction read or write; null if no bytes are transferred at this end
    {_OUTCOME}
    fd descriptor of this end, as numbered by the program
    """
)
_NAMES = """LEFT JOIN processes p ON p.utid = e.utid LEFT JOIN calls c ON c.id = e.call_id
  LEFT JOIN files f ON f.file_id = e.file_id LEFT JOIN files g ON g.file_id = e.other_file_id
  LEFT JOIN errnos x ON x.id = e.errno_id"""
_BY_PATH = "{}.kind IN ('file', 'regular', 'directory', 'symlink', 'device', 'fifo')"
_VALUES = {
    "ts": "e.ts",
    "end_ts": "coalesce(e.end_ts, e.ts + e.dur)",
    "dur": "e.dur",
    "sys_cpu_ns": "e.sys_cpu_ns",
    "rank": "p.rank",
    "host": "p.host",
    "pid": "p.pid",
    "tid": "p.tid",
    "call": "c.name",
    "family": "c.family",
    "class": "c.class",
    "file": "f.name",
    "kind": "f.kind",
    "folder": "f.folder",
    "other_file": "g.name",
    "other_kind": "g.kind",
    "offset_bytes": "e.offset_bytes",
    "requested_bytes": "e.requested_bytes",
    "bytes": "e.bytes",
    "direction": "CASE e.direction WHEN 1 THEN 'read' WHEN 2 THEN 'write' END",
    "result": "e.result",
    "errno": "x.name",
    "fd": "e.fd",
}
_OF_ENDS = {
    "side": "CASE e.side WHEN 1 THEN 'in' WHEN 2 THEN 'out' WHEN 3 THEN 'old' WHEN 4 THEN 'new' END",
    "is_again": "(e.side IN (2, 4) AND f.name IS NOT DISTINCT FROM g.name)",
}
_OF_ONE_END = {
    "other_file": "NULL::VARCHAR",
    "other_kind": "NULL::VARCHAR",
    "by_path": f"coalesce({_BY_PATH.format('f')}, false)",
    "read_bytes": "CASE e.direction WHEN 1 THEN e.bytes END",
    "written_bytes": "CASE e.direction WHEN 2 THEN e.bytes END",
}
_OF_TWO_ENDS = {
    "by_path": f"(coalesce({_BY_PATH.format('f')}, false) OR a.by_path)",
    "bytes": "a.bytes",
    "read_bytes": "a.read_bytes",
    "written_bytes": "a.written_bytes",
    "direction": "CASE WHEN a.reads AND a.writes THEN 'both' WHEN a.reads THEN 'read' "
    "WHEN a.writes THEN 'write' END",
}
# The rows of one call are adjacent among the rows of its task, and the row with `side` 1 or 3 comes first, so
# a running count of these rows numbers the calls.
_ADDED = f"""ends AS (SELECT *, row_number() OVER () AS place FROM events WHERE side <> 0),
numbered AS (SELECT *, count(*) FILTER (WHERE side IN (1, 3)) OVER (PARTITION BY utid ORDER BY place)
    AS number FROM ends),
added AS (SELECT n.utid, n.number, CAST(sum(n.bytes) AS BIGINT) AS bytes,
    CAST(sum(n.bytes) FILTER (WHERE n.direction = 1) AS BIGINT) AS read_bytes,
    CAST(sum(n.bytes) FILTER (WHERE n.direction = 2) AS BIGINT) AS written_bytes,
    bool_or(n.direction = 1) AS reads, bool_or(n.direction = 2) AS writes,
    bool_or(coalesce({_BY_PATH.format("f")}, false)) AS by_path
  FROM numbered n LEFT JOIN files f ON f.file_id = n.file_id GROUP BY n.utid, n.number)"""


def _selected(columns: tuple[SeenColumn, ...], own: dict[str, str]) -> str:
    values = _VALUES | own
    return ", ".join(f"{values[column.name]} AS {column.name}" for column in columns)


def _calls() -> str:
    one_end = _NAMES.replace(" LEFT JOIN files g ON g.file_id = e.other_file_id", "")
    return f"""WITH {_ADDED}
SELECT {_selected(CALLS, _OF_ONE_END)} FROM events e {one_end} WHERE e.side = 0
UNION ALL
SELECT {_selected(CALLS, _OF_TWO_ENDS)} FROM numbered e JOIN added a USING (utid, number)
  {_NAMES} WHERE e.side IN (1, 3)"""


VIEWS = (
    SeenView(
        "calls_seen",
        "one row per call, with names: use this view to count calls and to sum times and bytes",
        CALLS,
        _calls(),
    ),
    SeenView(
        "call_ends",
        "one row per call and end, with names: use this view for questions about files",
        ENDS,
        f"SELECT {_selected(ENDS, _OF_ENDS)} FROM events e {_NAMES}",
    ),
)
