"""Finds the costliest files of every call and of all calls together, in one pass over the events."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.relations.grouping import MEASURES
from iodock.program.relations.keys import KEYS
from iodock.program.relations.selection import Selection
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

SUMS = "call_file_sums"
_SUMMED = (
    "count",
    "success",
    "failed",
    "total_time_ns",
    "sys_cpu_time_ns",
    "read_bytes",
    "written_bytes",
    "timed",
)
_SHOWN = (*_SUMMED[:-1], "mean_time_ns", "min_time_ns", "max_time_ns")
_COLUMNS = (
    Column("call", "str", None, "key", "the system call; null: all calls together"),
    KEYS["file"].column,
    Column("others", "bool", None, "detail", "the row stands for the files beyond the first N together"),
    Column("file_count", "int", "files", "measure", "number of files that the row represents"),
    *(column for column in MEASURES if column.name in _SHOWN),
)


def run(store: Store, asked: Request) -> Answer:
    """Returns the costliest files of every call (as many as the option `top` says), and the sum of the other
    files."""
    selection = select(store, asked.filters)
    store.keep(SUMS, sums_sql(selection))
    table = store.table(_top_sql(int(asked.options["top"]), int(asked.options["top_of_all"])))
    return answer(
        "call_files", "Files of every call", store, asked, table, _COLUMNS, selection, keys=("call", "file")
    )


def sums_sql(selection: Selection) -> str:
    """Returns the SQL for sums by call and file. A call whose two files are the same file counts once."""
    counted = f"NOT {selection.again_in_file}"

    def calls(condition: str) -> str:
        return f"count(*) FILTER (WHERE {counted} AND {condition})"

    return f"""SELECT e.call_id, e.file_id, {calls("true")} AS count,
  {calls("e.errno_id IS NULL AND e.result IS NOT NULL")} AS success,
  {calls("e.errno_id IS NOT NULL")} AS failed,
  {calls("e.dur IS NOT NULL")} AS timed, CAST(sum(e.dur) FILTER (WHERE {counted}) AS BIGINT) AS total_time_ns,
  CAST(sum(e.sys_cpu_ns) FILTER (WHERE {counted}) AS BIGINT) AS sys_cpu_time_ns,
  min(e.dur) AS min_time_ns, max(e.dur) AS max_time_ns,
  CAST(sum(e.bytes) FILTER (WHERE e.direction = 1) AS BIGINT) AS read_bytes,
  CAST(sum(e.bytes) FILTER (WHERE e.direction = 2) AS BIGINT) AS written_bytes
{selection.from_events} GROUP BY 1, 2"""


def _top_sql(top: int, top_of_all: int) -> str:
    summed = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in _SUMMED)
    ends = "min(min_time_ns) AS min_time_ns, max(max_time_ns) AS max_time_ns"
    limit = f"CASE WHEN call_id IS NULL THEN {top_of_all} ELSE {top} END"
    return f"""WITH sums AS (
  SELECT call_id, file_id, {", ".join(_SUMMED)}, min_time_ns, max_time_ns FROM {SUMS}
  UNION ALL SELECT NULL AS call_id, file_id, {summed}, {ends} FROM {SUMS} GROUP BY file_id
), ranked AS (
  SELECT *, row_number() OVER (
    PARTITION BY call_id
    ORDER BY total_time_ns DESC NULLS LAST, sys_cpu_time_ns DESC NULLS LAST, count DESC, file_id) AS place
  FROM sums
), shown AS (
  SELECT call_id, CASE WHEN place <= {limit} THEN file_id END AS file_id, place > {limit} AS others,
    count(*) AS file_count, min(place) AS place, {summed}, {ends}
  FROM ranked
  GROUP BY call_id, least(place, {limit} + 1), place > {limit}, CASE WHEN place <= {limit} THEN file_id END
)
SELECT c.name AS call, n.name AS file, s.*,
  CAST(s.total_time_ns AS DOUBLE) / nullif(s.timed, 0) AS mean_time_ns
FROM shown s LEFT JOIN calls c ON c.id = s.call_id LEFT JOIN files n ON n.file_id = s.file_id
ORDER BY c.name NULLS FIRST, s.place"""


ANALYSIS = Analysis(
    name="call_files",
    title="Files of every call",
    doc="""For every system call, and for all of them together (rows without a call), the files that cost
most, and the rest of the files as one row. A call with two ends (rename) counts at each of its files.""",
    columns=_COLUMNS,
    run=run,
    options=(
        Option("top", "int", 20, "files of each system call"),
        Option("top_of_all", "int", 300, "files of all calls together"),
    ),
    examples=("iodock show call_files run.iodock --top 5",),
    hidden=True,
)
