"""Shows reads and writes of several files over time in one pass over the events. The report uses this
analysis."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.relations.keys import KEYS
from iodock.program.relations.spread import (
    END,
    SPREAD,
    cells_sql,
    ended_sums,
    moved_sql,
    spread_sums,
)
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

_COLUMNS = (
    KEYS["file"].column,
    Column("interval", "int", None, "time", "number of the interval; 0 is the one in which the run began"),
    Column("read_bytes", "int", "bytes", "measure", "bytes read by calls that ended in the interval"),
    Column("written_bytes", "int", "bytes", "measure", "bytes written by calls that ended in the interval"),
    Column("read_count", "int", "calls", "measure", "reads that ended in the interval"),
    Column("write_count", "int", "calls", "measure", "writes that ended in the interval"),
    Column("read_time_ns", "int", "ns", "measure", "time inside these reads, summed"),
    Column("write_time_ns", "int", "ns", "measure", "time inside these writes, summed"),
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
    """Returns an answer with one row per file and interval in which the file was read or written."""
    selection = select(store, asked.filters)
    every = int(asked.options["every"])
    first = (store.manifest.first_ts or 0) // every
    where = selection.and_where("e.bytes IS NOT NULL", "e.direction IN (1, 2)", f"{END} IS NOT NULL")
    source = f"FROM events e {selection.joins} {where}"
    table = store.table(f"""WITH cells AS MATERIALIZED ({cells_sql(source, every, "e.file_id")}),
counted AS (SELECT key, slot, {ended_sums()},
    sum(calls) FILTER (WHERE direction = 1) AS read_count,
    sum(calls) FILTER (WHERE direction = 2) AS write_count FROM cells GROUP BY key, slot),
moved AS ({moved_sql(source, every, "e.file_id")}),
b AS (SELECT coalesce(c.key, m.key) AS key, greatest(0, coalesce(c.slot, m.slot) - {first}) AS interval,
    c.* EXCLUDE (key, slot), {spread_sums("m")}
  FROM counted c FULL JOIN moved m ON m.key = c.key AND m.slot = c.slot)
SELECT n.name AS file, b.interval, {_totals()}
FROM b JOIN files n ON n.file_id = b.key GROUP BY 1, 2
HAVING {" + ".join(f"coalesce(sum(b.{name}), 0)" for name in (*SPREAD, "read_count", "write_count"))} > 0
ORDER BY 1, 2""")
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
