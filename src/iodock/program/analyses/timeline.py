"""Shows calls and bytes per interval of time."""

from __future__ import annotations

from dataclasses import replace

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.analyses.counters import timeline as counters
from iodock.program.relations.selection import Selection
from iodock.program.relations.spread import (
    END,
    cells_sql,
    ended_sums,
    moved_sql,
    round_interval,
    spread_sums,
)
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column
from iodock.shared.errors import RequestError
from iodock.shared.units import number_text

MOST_INTERVALS = 20_000_000
_USUAL_INTERVALS = 60
"""Largest number of intervals, unless their length is requested."""
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
    Column(
        "read_count", "int", "calls", "measure", "reads that transferred bytes or found the end of the file"
    ),
    Column("write_count", "int", "calls", "measure", "writes that transferred bytes"),
    Column("read_time_ns", "int", "ns", "measure", "time inside reads, failed ones too, over all threads"),
    Column("write_time_ns", "int", "ns", "measure", "time inside writes, failed ones too, over all threads"),
    Column("count", "int", "calls", "measure", "calls that ended in the interval", importance="first"),
    Column("success", "int", "calls", "measure", "calls that succeeded", importance="last"),
    Column("failed", "int", "calls", "measure", "calls that returned an error"),
    Column(
        "spread_read_bytes",
        "int",
        "bytes",
        "detail",
        "bytes read, with those of each call spread over its duration",
    ),
    Column("spread_written_bytes", "int", "bytes", "detail", "the same for bytes written"),
    Column("spread_read_time_ns", "int", "ns", "detail", "time inside reads that passed in the interval"),
    Column("spread_write_time_ns", "int", "ns", "detail", "the same for writes"),
)


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per interval, from the first to the last. Intervals without calls have
    zeros."""
    if store.manifest.profiles_only:
        return counters.run(store, asked, COLUMNS)
    every = asked.options["every"]
    if every is None:
        every = round_interval(store.manifest.wall_ns or 0, _USUAL_INTERVALS)
        asked = replace(asked, given={**asked.given, "every": every})
    if every < 1:
        raise RequestError("--every must be longer than 0")
    selection = select(store, asked.filters)
    _check_length(store, selection, every)
    store.keep("intervals", intervals_sql(selection, every))
    table = store.table(filled_sql(store.manifest.durations, every))
    return answer("timeline", "Over time", store, asked, table, COLUMNS, selection)


def intervals_sql(selection: Selection, every: int) -> str:
    """Returns the SQL that counts each call in the interval in which it ended, and distributes its bytes over
    the intervals in which it ran."""
    source = f"FROM events e {selection.joins} {selection.and_where(f'{END} IS NOT NULL')}"
    return f"""WITH cells AS MATERIALIZED ({cells_sql(source, every, again=selection.again)}),
counted AS (SELECT slot, {ended_sums()},
  sum(transfers) FILTER (WHERE direction = 1) AS read_count,
  sum(transfers) FILTER (WHERE direction = 2) AS write_count,
  sum(calls) FILTER (WHERE NOT again) AS count,
  sum(results) FILTER (WHERE NOT again AND is_right) AS success,
  sum(calls) FILTER (WHERE NOT again AND NOT is_right) AS failed
FROM cells GROUP BY slot),
moved AS ({moved_sql(source, every)})
SELECT coalesce(c.slot, m.slot) AS slot, c.* EXCLUDE (slot), {spread_sums("m")}
FROM counted c FULL JOIN moved m ON m.slot = c.slot"""


def _check_length(store: Store, selection: Selection, every: int) -> None:
    run = store.manifest
    span_ns = None if run.first_ts is None or run.last_ts is None else run.last_ts - run.first_ts
    if span_ns is not None and span_ns // every + 2 <= MOST_INTERVALS:
        return
    (row,) = store.rows(
        f"""SELECT (max({END}) - min({END} - coalesce(e.dur, 0))) // {every} + 1 AS intervals
FROM events e {selection.joins} {selection.and_where(f"{END} IS NOT NULL")}"""
    )
    if (row["intervals"] or 0) > MOST_INTERVALS:
        seconds = every / 1e9
        message = (
            f"{row['intervals']:,} intervals of {number_text(seconds, 6)} s are more than {MOST_INTERVALS:,}"
        )
        raise RequestError(message, "give a longer --every, or --since and --until")


def filled_sql(durations: bool, every: int) -> str:
    """Returns the SQL for every interval in order. Intervals without calls have zeros."""
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
    doc="""Calls and bytes per interval. A call is counted in the interval in which it ends, or, if the source
has no durations, in the interval of its time stamp, with all its bytes and its time. The columns spread_...
distribute these over the intervals in which the call lasted; charts are drawn from them. Intervals without a
call are rows of zeros. With --call the analysis shows how often one call was made, how often with success,
and when. For Darshan's logs it shows the bytes in the bins of their heatmaps, if they have these.""",
    columns=COLUMNS,
    run=run,
    profiles=True,
    options=(
        Option(
            "every",
            "seconds",
            None,
            "length of an interval, in seconds or with a unit (250ms); by default a round length that "
            "divides the run into at most 60 intervals",
        ),
    ),
    examples=(
        "iodock show timeline run.iodock --every 0.1",
        "iodock show timeline run.iodock --call openat --every 1 --format csv",
    ),
)
