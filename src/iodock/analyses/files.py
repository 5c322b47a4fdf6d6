"""What was touched: files with their kind, size, handles and how they were accessed."""

from __future__ import annotations

from iodock.analyses.base import Analysis, Option, Request, answer, select
from iodock.answer import Answer, Column, Totals
from iodock.relations.selection import Selection
from iodock.store import Store

COLUMNS = (
    Column("file", "str", None, "key", "the file's name"),
    Column("kind", "str", None, "detail", "regular, directory, pipe, ...; file if only the path is known"),
    Column("mount", "str", None, "detail", "where its file system is mounted, where known"),
    Column("fs_type", "str", None, "detail", "type of its file system, where known"),
    Column("size_bytes", "int", "bytes", "measure", "last size seen, where known"),
    Column("count", "int", "calls", "measure", "calls on the file"),
    Column("failed", "int", "calls", "measure", "calls that failed"),
    Column("opens", "int", "calls", "measure", "successful opens"),
    Column("handles", "int", None, "measure", "open file descriptions used"),
    Column("processes", "int", None, "measure", "processes and threads that used it"),
    Column("total_time_ns", "int", "ns", "measure", "time inside these calls, added up over all threads"),
    Column("read_bytes", "int", "bytes", "measure", "bytes read"),
    Column("written_bytes", "int", "bytes", "measure", "bytes written"),
    Column("io_count", "int", "calls", "measure", "transfers"),
    Column(
        "access_pattern",
        "str",
        None,
        "detail",
        "the most frequent one of the next six, where transfers have offsets",
    ),
    Column("consecutive", "int", "calls", "measure", "transfers that start where the one before ended"),
    Column("sequential", "int", "calls", "measure", "transfers further on, with a gap"),
    Column("strided", "int", "calls", "measure", "transfers with the same gap and size as the one before"),
    Column("backward", "int", "calls", "measure", "transfers that lie before the one before"),
    Column("random", "int", "calls", "measure", "transfers that fit none of these"),
    Column("repeated", "int", "calls", "measure", "transfers at the same offset again"),
    Column(
        "read_again_bytes",
        "int",
        "bytes",
        "measure",
        "bytes read that the same process had read before, where known",
    ),
    Column("first_ts", "int", "ns", "time", "first call"),
    Column("last_ts", "int", "ns", "time", "end of the last call"),
)
_PATTERNS = {2: "consecutive", 3: "sequential", 4: "strided", 5: "backward", 6: "random", 7: "repeated"}


def run(store: Store, asked: Request) -> Answer:
    """One row per file, the costliest first."""
    selection = select(store, asked.filters)
    store.keep("file_sums", sums_sql(selection))
    top = asked.options["top"]
    limit = f" LIMIT {top}" if top else ""
    order = "total_time_ns DESC NULLS LAST, count DESC, file"
    table = store.table(f"SELECT * FROM file_sums ORDER BY {order}{limit}")
    (total,) = store.rows("SELECT count(*) AS files, CAST(sum(read_bytes) AS BIGINT) AS read_bytes, "
                          "CAST(sum(written_bytes) AS BIGINT) AS written_bytes FROM file_sums")  # fmt: skip
    files = int(total.pop("files"))
    totals = Totals(total, None, table.num_rows, files, "files")
    return answer("files", "Files", store, asked, table, COLUMNS, selection, totals, keys=("file",))


def sums_sql(selection: Selection) -> str:
    """One row per file; a call with both ends in the same file is one call."""
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
SELECT f.name AS file, f.kind, f.mount_point AS mount, f.fs_type, f.size_bytes, s.* EXCLUDE (file_id),
  CASE WHEN {largest} = 0 THEN NULL {whens} END AS access_pattern
FROM s JOIN files f ON f.file_id = s.file_id"""


ANALYSIS = Analysis(
    name="files",
    title="Files",
    doc="""Every file that the program touched: what it is, where it lies, how large it was, how often and by
how many it was used, and in which order its parts were accessed. The costliest come first.""",
    columns=COLUMNS,
    run=run,
    options=(Option("top", "int", None, "only the N costliest files"),),
    examples=(
        "iodock show files run.iodock --user-files --top 20",
        "iodock show files run.iodock --kind all",
    ),
)
