"""Calls and bytes per interval of time."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.relations.selection import Selection
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column
from iodock.shared.errors import RequestError

MOST_INTERVALS = 20_000_000
COLUMNS = (
    Column(
        "ts",
        "int",
        "ns",
        "time",
        "start of the interval, ns since the epoch or midnight (see `clock`)",
        importance="first",
    ),
    Column(
        "read_bytes",
        "int",
        "bytes",
        "measure",
        "bytes read by calls that ended in the interval",
        importance="first",
    ),
    Column(
        "written_bytes",
        "int",
        "bytes",
        "measure",
        "bytes written by calls that ended in the interval",
        importance="first",
    ),
    Column("read_count", "int", "calls", "measure", "reads that moved bytes or found the end of the file"),
    Column("write_count", "int", "calls", "measure", "writes that moved bytes"),
    Column("read_time_ns", "int", "ns", "measure", "time inside reads, failed ones too, over all threads"),
    Column("write_time_ns", "int", "ns", "measure", "time inside writes, failed ones too, over all threads"),
    Column("count", "int", "calls", "measure", "calls that ended in the interval", importance="first"),
    Column("success", "int", "calls", "measure", "calls that succeeded", importance="last"),
    Column("failed", "int", "calls", "measure", "calls that returned an error"),
)


def run(store: Store, asked: Request) -> Answer:
    """One row per interval from the first call's end to the last's; empty intervals are zeros."""
    every = asked.options["every"]
    if every < 1:
        raise RequestError("--every must be longer than 0")
    selection = select(store, asked.filters)
    store.keep("intervals", intervals_sql(selection, every))
    _check_length(store, every)
    table = store.table(filled_sql(store.manifest.durations, every))
    return answer("timeline", "Over time", store, asked, table, COLUMNS, selection)


def intervals_sql(selection: Selection, every: int) -> str:
    """Sums by the interval in which a call ends; where a source has no durations, by its stamp."""
    end = "coalesce(e.end_ts, e.ts + e.dur, e.ts)"
    counted = f"NOT {selection.again}"
    # Whole numbers: as floats, stamps of the epoch are off by 100 ns and more. `//` rounds towards zero.
    slot = f"({end} - (({end} % {every}) + {every}) % {every}) // {every}"
    return f"""SELECT {slot} AS slot,
  sum(CASE WHEN e.direction = 1 THEN e.bytes END) AS read_bytes,
  sum(CASE WHEN e.direction = 2 THEN e.bytes END) AS written_bytes,
  count(CASE WHEN e.direction = 1 THEN e.bytes END) AS read_count,
  count(CASE WHEN e.direction = 2 THEN e.bytes END) AS write_count,
  sum(CASE WHEN e.direction = 1 THEN e.dur END) AS read_time_ns,
  sum(CASE WHEN e.direction = 2 THEN e.dur END) AS write_time_ns,
  count(*) FILTER (WHERE {counted}) AS count,
  count(e.result) FILTER (WHERE {counted} AND e.errno_id IS NULL) AS success,
  count(e.errno_id) FILTER (WHERE {counted}) AS failed
FROM events e {selection.joins} {selection.and_where(f"{end} IS NOT NULL")} GROUP BY 1"""


def _check_length(store: Store, every: int) -> None:
    (row,) = store.rows("SELECT max(slot) - min(slot) + 1 AS intervals FROM intervals")
    if (row["intervals"] or 0) > MOST_INTERVALS:
        seconds = every / 1e9
        message = f"{row['intervals']:,} intervals of {seconds:g} s are more than {MOST_INTERVALS:,}"
        raise RequestError(message, "give a longer --every, or --since and --until")


def filled_sql(durations: bool, every: int) -> str:
    """Every interval in order, the empty ones with zeros."""
    names = [column.name for column in COLUMNS if column.name != "ts"]
    sums = ", ".join(
        f"CAST(NULL AS BIGINT) AS {name}"
        if name.endswith("_time_ns") and not durations
        else f"CAST(coalesce(i.{name}, 0) AS BIGINT) AS {name}"
        for name in names
    )
    return f"""WITH ends AS (SELECT min(slot) AS low, max(slot) AS high FROM intervals),
slots AS (SELECT unnest(range(low, high + 1)) AS slot FROM ends WHERE low IS NOT NULL)
SELECT s.slot * {every} AS ts, {sums} FROM slots s LEFT JOIN intervals i ON i.slot = s.slot ORDER BY 1"""


ANALYSIS = Analysis(
    name="timeline",
    title="Over time",
    doc="""Calls and bytes per interval. Bytes and calls belong to the interval in which the call ends, or,
where the source has no durations, to that of its stamp. Intervals without a call are rows of zeros. With
--call it shows how often one call was made, how often with success, and when.""",
    columns=COLUMNS,
    run=run,
    options=(Option("every", "seconds", 1_000_000_000, "length of an interval: seconds, or 250ms"),),
    examples=(
        "iodock show timeline run.iodock --every 0.1",
        "iodock show timeline run.iodock --call openat --every 1 --format csv",
    ),
)
