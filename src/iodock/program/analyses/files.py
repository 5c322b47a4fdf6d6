"""Lists the files that a program used: their kind, size, handles and access patterns."""

from __future__ import annotations

from typing import Any

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.analyses.counters import files as counters
from iodock.program.relations.ordering import order_sql
from iodock.program.relations.selection import Selection
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column, Totals

COLUMNS = (
    Column("file", "str", None, "key", "the file's name"),
    Column("kind", "str", None, "detail", "regular, directory, pipe, ...; file if only the path is known"),
    Column("mount", "str", None, "detail", "mount point of its file system, if known"),
    Column("fs_type", "str", None, "detail", "type of its file system, if known"),
    Column("size_bytes", "int", "bytes", "measure", "last size seen, where known"),
    Column("count", "int", "calls", "measure", "calls on the file", importance="first"),
    Column("failed", "int", "calls", "measure", "calls that failed"),
    Column("opens", "int", "calls", "measure", "successful opens", importance="last"),
    Column("handles", "int", None, "measure", "open file descriptions used", importance="last"),
    Column("processes", "int", None, "measure", "processes and threads that used it", importance="last"),
    Column(
        "total_time_ns",
        "int",
        "ns",
        "measure",
        "time inside these calls, added up over all threads",
        importance="first",
    ),
    Column("read_bytes", "int", "bytes", "measure", "bytes read", importance="first"),
    Column("written_bytes", "int", "bytes", "measure", "bytes written", importance="first"),
    Column("io_count", "int", "calls", "measure", "transfers", importance="last"),
    Column(
        "access_pattern",
        "str",
        None,
        "detail",
        "the most frequent one of the next six, if transfers have offsets",
        importance="usual",
    ),
    Column(
        "consecutive",
        "int",
        "calls",
        "measure",
        "number of transfers that start where the previous one ended",
        importance="last",
    ),
    Column(
        "sequential",
        "int",
        "calls",
        "measure",
        "number of transfers further on, with a gap",
        importance="last",
    ),
    Column(
        "strided",
        "int",
        "calls",
        "measure",
        "number of transfers with the same gap and size as the previous one",
        importance="last",
    ),
    Column(
        "backward",
        "int",
        "calls",
        "measure",
        "number of transfers before the previous one",
        importance="last",
    ),
    Column(
        "random",
        "int",
        "calls",
        "measure",
        "number of transfers with none of these patterns",
        importance="last",
    ),
    Column(
        "repeated",
        "int",
        "calls",
        "measure",
        "number of transfers at the same offset again",
        importance="last",
    ),
    Column(
        "read_again_bytes",
        "int",
        "bytes",
        "measure",
        "bytes read that the same process had read before, if known",
        importance="last",
    ),
    Column("first_ts", "int", "ns", "time", "first call"),
    Column("last_ts", "int", "ns", "time", "end of the last call"),
)
_COSTLIEST = ("total_time_ns DESC NULLS LAST", "count DESC", "file", "file_id")
_OF_CALLS = ("count", "failed", "total_time_ns", "io_count")
"""Columns that are sums over calls. A call between two files is in the rows of both files."""
_PATTERNS = {2: "consecutive", 3: "sequential", 4: "strided", 5: "backward", 6: "random", 7: "repeated"}
_ADDED_UP = (
    *_OF_CALLS, "opens", "handles", "read_bytes", "written_bytes", *_PATTERNS.values(), "read_again_bytes",
)  # fmt: skip


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per file, the costliest first."""
    if store.manifest.profiles_only:
        return counters.run(store, asked, COLUMNS)
    selection = select(store, asked.filters)
    order = ", ".join(order_sql(COLUMNS, asked.options, _COSTLIEST))
    store.keep(
        "file_sums",
        f"SELECT *, row_number() OVER (ORDER BY {order}) AS place FROM ({sums_sql(selection)}) s",
    )
    top = asked.options["top"]
    limit = f"WHERE place <= {top}" if top else ""
    table = store.table(f"SELECT * EXCLUDE (file_id, place) FROM file_sums {limit} ORDER BY place")
    totals = _totals(store, selection, table.num_rows)
    return answer("files", "Files", store, asked, table, COLUMNS, selection, totals, keys=("file",))


def _totals(store: Store, selection: Selection, shown: int) -> Totals:
    store.keep("shared_calls", _shared_sql(selection))
    (found,) = store.rows("SELECT count(*) AS files FROM file_sums")
    files = int(found["files"])
    other = _added_up(store, shown) if shown < files else None
    return Totals(_added_up(store, 0), other, shown, files, "files")


def _added_up(store: Store, shown: int) -> dict[str, Any]:
    """Returns one row of sums for the files that the answer leaves out, which are those after the first
    SHOWN. A call between two of these files counts once. The row has no number of processes, because several
    files may have the same process."""
    shared = ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in _OF_CALLS)
    (row,) = store.rows(
        f"""SELECT {", ".join(_sum(name) for name in _ADDED_UP)},
  min(f.first_ts) AS first_ts, max(f.last_ts) AS last_ts
FROM file_sums f, (SELECT {shared} FROM shared_calls WHERE least(place, other_place) > {shown}) c
WHERE f.place > {shown}"""
    )
    return row


def _sum(name: str) -> str:
    less = f" - any_value(c.{name})" if name in _OF_CALLS else ""
    known = f"sum(f.{name}){less}"
    whole = known if name.endswith(("_bytes", "_ns")) else f"coalesce({known}, 0)"
    return f"CAST({whole} AS BIGINT) AS {name}"


def _shared_sql(selection: Selection) -> str:
    """Returns the SQL for calls that have two different chosen files. Each of the two files counts such a
    call."""
    where = selection.and_where("e.side IN (2, 4)", "e.file_id <> e.other_file_id")
    ends = f"FROM events e {selection.joins} {where if not selection.one_end else 'WHERE false'}"
    return f"""WITH s AS (SELECT e.file_id, e.other_file_id, count(*) AS count, count(e.errno_id) AS failed,
  sum(e.dur) AS total_time_ns, count(e.bytes) AS io_count {ends} GROUP BY 1, 2)
SELECT a.place, b.place AS other_place, s.count, s.failed, s.total_time_ns, s.io_count
FROM s JOIN file_sums a ON a.file_id = s.file_id JOIN file_sums b ON b.file_id = s.other_file_id"""


def sums_sql(selection: Selection) -> str:
    """Returns the SQL for one row per file. A call whose two files are the same file counts once."""
    again = selection.again_in_file
    patterns = ",\n  ".join(
        f"count(*) FILTER (WHERE e.pattern = {n}) AS {name}" for n, name in _PATTERNS.items()
    )
    opening = "(SELECT id FROM calls WHERE family = 'open')"
    inner = f"""SELECT e.file_id, count(*) FILTER (WHERE NOT {again}) AS count,
  count(e.errno_id) FILTER (WHERE NOT {again}) AS failed,
  count(e.result) FILTER (WHERE e.call_id IN {opening} AND e.errno_id IS NULL) AS opens,
  count(DISTINCT e.handle_id) AS handles, count(DISTINCT e.utid) AS processes,
  CAST(sum(e.dur) FILTER (WHERE NOT {again}) AS BIGINT) AS total_time_ns,
  CAST(sum(e.bytes) FILTER (WHERE e.direction = 1) AS BIGINT) AS read_bytes,
  CAST(sum(e.bytes) FILTER (WHERE e.direction = 2) AS BIGINT) AS written_bytes,
  count(e.bytes) FILTER (WHERE NOT {again}) AS io_count,
  {patterns},
  CAST(sum(e.own_read_bytes) FILTER (WHERE e.direction = 1) AS BIGINT) AS read_again_bytes,
  min(coalesce(e.ts, e.end_ts)) AS first_ts, max(coalesce(e.end_ts, e.ts + e.dur, e.ts)) AS last_ts
FROM events e {selection.joins} {selection.and_where("e.file_id IS NOT NULL")} GROUP BY 1"""
    names = list(_PATTERNS.values())
    largest = f"greatest({', '.join(names)})"
    whens = " ".join(f"WHEN {name} = {largest} THEN '{name}'" for name in names)
    return f"""WITH s AS ({inner})
SELECT f.name AS file, f.kind, f.mount_point AS mount, f.fs_type, f.size_bytes, s.*,
  CASE WHEN {largest} = 0 THEN NULL {whens} END AS access_pattern
FROM s JOIN files f ON f.file_id = s.file_id"""


ANALYSIS = Analysis(
    name="files",
    title="Files",
    doc="""Every file that the program used: its kind, location and size, how often and by how many processes
    it was used, and the order in which its parts were accessed. The costliest files come first. For counters
    (Darshan's logs) a row is a file and interface; a file that was counted for all ranks together has the
    fastest and the slowest rank and the variance.""",
    columns=COLUMNS,
    run=run,
    profiles=True,
    orders=True,
    options=(Option("top", "int", None, "only the N costliest files, the rest as one row 'other'"),),
    examples=(
        "iodock show files run.iodock --user-files --top 20",
        "iodock show files run.iodock --kind all",
    ),
)
