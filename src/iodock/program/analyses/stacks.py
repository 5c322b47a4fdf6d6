"""Lists the call stacks from which calls were made, with the number and cost of their calls."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Request, answered, select
from iodock.program.relations.keys import KEYS
from iodock.program.relations.selection import Selection
from iodock.program.relations.sites import FRAMES, LINES, keep_frames, keep_lines
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

COLUMNS = (
    KEYS["line"].column,
    Column("function", "str", None, "detail", "the function that this line is in", importance="first"),
    Column(
        "frames",
        "list",
        None,
        "detail",
        "functions with their lines, innermost first; an inlined function precedes the one that contains it",
    ),
    Column("count", "int", "calls", "measure", "calls with this stack", importance="first"),
    Column("failed", "int", "calls", "measure", "number of calls that failed"),
    Column("total_time_ns", "int", "ns", "measure", "time inside the calls", importance="first"),
    Column("read_bytes", "int", "bytes", "measure", "bytes read", importance="first"),
    Column("written_bytes", "int", "bytes", "measure", "bytes written", importance="first"),
)
_COSTLIEST = ("total_time_ns DESC NULLS LAST", "count DESC", "line NULLS LAST", "frames")
_STACKS = "call_stacks"


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per stack, the costliest first."""
    keep_lines(store)
    keep_frames(store)
    selection = select(store, asked.filters)
    notes = [*selection.notes]
    if not store.rows_of("sites"):
        notes.append(
            f"{store.name} does not contain the places from which its calls were made: record "
            "with --stacks all"
        )
    store.keep(_STACKS, _rows_sql(selection))
    table = store.table(f"SELECT * FROM {_STACKS} ORDER BY {', '.join(_COSTLIEST)}")
    return answered("stacks", "Stacks", store, asked, table, COLUMNS, notes, keys=("line",))


def _rows_sql(selection: Selection) -> str:
    counted = f"NOT {selection.again}"
    return f"""WITH s AS (SELECT e.stack_id, any_value(e.site_id) AS site_id,
  count(*) FILTER (WHERE {counted}) AS count, count(e.errno_id) FILTER (WHERE {counted}) AS failed,
  CAST(sum(e.dur) FILTER (WHERE {counted}) AS BIGINT) AS total_time_ns,
  CAST(sum(e.bytes) FILTER (WHERE e.direction = 1) AS BIGINT) AS read_bytes,
  CAST(sum(e.bytes) FILTER (WHERE e.direction = 2) AS BIGINT) AS written_bytes
{selection.from_events} GROUP BY 1)
SELECT l.line, l.function, s.count, s.failed, s.total_time_ns, s.read_bytes, s.written_bytes,
  coalesce(f.frames, CAST([] AS VARCHAR[])) AS frames
FROM s LEFT JOIN {LINES} l ON l.site_id = s.site_id LEFT JOIN {FRAMES} f ON f.stack_id = s.stack_id"""


ANALYSIS = Analysis(
    name="stacks",
    title="Stacks",
    doc="""Places in the program from which calls were made: one row per stack, the costliest first, with the
line to change. That is the innermost line outside of installed libraries. A row without a line has the calls
for which the source does not show it.""",
    columns=COLUMNS,
    run=run,
    examples=("iodock show stacks run.iodock --top 5", "iodock show stacks run.iodock --call fsync --wide"),
)
