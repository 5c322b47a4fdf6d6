"""Reads and writes of several files over time in one pass over the events, for the report."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.relations.keys import KEYS
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

END = "coalesce(e.end_ts, e.ts + e.dur, e.ts)"
"""When a call ended: bytes go to the interval of that moment; without durations, to that of the stamp."""

_COLUMNS = (
    KEYS["file"].column,
    Column("interval", "int", None, "time", "number of the interval, 0 being the one in which the run began"),
    Column("read_bytes", "int", "bytes", "measure", "bytes read by calls that ended in the interval"),
    Column("written_bytes", "int", "bytes", "measure", "bytes written by calls that ended in the interval"),
    Column("read_count", "int", "calls", "measure", "reads that ended in the interval"),
    Column("write_count", "int", "calls", "measure", "writes that ended in the interval"),
    Column("read_time_ns", "int", "ns", "measure", "time inside these reads, summed"),
    Column("write_time_ns", "int", "ns", "measure", "time inside these writes, summed"),
)


def run(store: Store, asked: Request) -> Answer:
    """One row per file and interval in which it was read or written."""
    selection = select(store, asked.filters)
    every = int(asked.options["every"])
    first = (store.manifest.first_ts or 0) // every
    where = selection.and_where("e.bytes IS NOT NULL", "e.direction IN (1, 2)", f"{END} IS NOT NULL")
    table = store.table(f"""WITH b AS (
  SELECT e.file_id, greatest(0, CAST(floor({END} / {every}.0) AS BIGINT) - {first}) AS interval,
    {_sums("e.bytes", "e.dur")}
  FROM events e {selection.joins} {where} GROUP BY 1, 2
)
SELECT n.name AS file, b.interval, {_totals()}
FROM b JOIN files n ON n.file_id = b.file_id GROUP BY 1, 2 ORDER BY 1, 2""")
    return answer(
        "file_timeline",
        "Reads and writes over time by file",
        store,
        asked,
        table,
        _COLUMNS,
        selection,
        keys=("file",),
    )


def _sums(size: str, time: str) -> str:
    of = {"read": "e.direction = 1", "write": "e.direction = 2"}
    names = {"read": "read_bytes", "write": "written_bytes"}
    parts = [f"sum({size}) FILTER (WHERE {of[way]}) AS {names[way]}" for way in of]
    parts += [f"count(*) FILTER (WHERE {of[way]}) AS {way}_count" for way in of]
    parts += [f"sum({time}) FILTER (WHERE {of[way]}) AS {way}_time_ns" for way in of]
    return ", ".join(parts)


def _totals() -> str:
    return ", ".join(f"CAST(coalesce(sum(b.{c.name}), 0) AS BIGINT) AS {c.name}" for c in _COLUMNS[2:])


ANALYSIS = Analysis(
    name="file_timeline",
    title="Reads and writes over time by file",
    doc="""Bytes, number and time of reads and writes per interval for every file that the filters leave;
intervals are counted from the start of the run, and those without reads and writes are left out.""",
    columns=_COLUMNS,
    run=run,
    options=(Option("every", "seconds", 1_000_000_000, "length of an interval in seconds"),),
    examples=("iodock show file_timeline run.iodock --file '/data/**' --every 0.1",),
    hidden=True,
)
