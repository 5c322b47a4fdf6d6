"""The machine's own state while the program ran, as levels and rates: what may explain a slow moment."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Option, Request, answer
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

_COLUMNS = (
    Column("ts", "int", "ns", "time", "when, ns since the epoch", importance="first"),
    Column("source", "str", None, "key", "diskstats, mountstats, llite, pressure, loadavg or process_io"),
    Column("target", "str", None, "key", "device, mount, pid, ...; empty for the whole machine"),
    Column("metric", "str", None, "key", "what is measured, with its unit"),
    Column(
        "kind", "str", None, "detail", "rate (a counter's growth per second) or level", importance="usual"
    ),
    Column("value", "float", None, "measure", "the level, or the growth per second", importance="first"),
)


def run(store: Store, asked: Request) -> Answer:
    """One row per series and moment; a counter's first sample has no rate and is left out."""
    every = int(asked.options["every"])
    table = store.table(f"""WITH steps AS (
  SELECT ts, source, coalesce(target, '') AS target, metric, kind, value,
    lag(value) OVER series AS before, lag(ts) OVER series AS before_ts
  FROM samples WINDOW series AS (PARTITION BY host, source, target, metric ORDER BY ts)
), values_ AS (
  SELECT ts, source, target, metric, CASE WHEN kind = 'counter' THEN 'rate' ELSE 'level' END AS kind,
    CASE WHEN kind <> 'counter' THEN value WHEN value >= before AND ts > before_ts
      THEN (value - before) * 1000000000 / (ts - before_ts) END AS value
  FROM steps
)
SELECT CAST(min(ts) AS BIGINT) AS ts, source, target, metric, kind, avg(value) AS value FROM values_
WHERE value IS NOT NULL GROUP BY ts // {every}, source, target, metric, kind
ORDER BY source, target, metric, 1""")
    return answer(
        "machine", "The machine meanwhile", store, asked, table, _COLUMNS, keys=("source", "target", "metric")
    )


ANALYSIS = Analysis(
    name="machine",
    title="The machine meanwhile",
    doc="""The state of the machine, sampled while a program was recorded: disks, file-system clients,
pressure and load. Counters are shown as growth per second, levels as they are, both averaged over intervals.
It is of the whole machine, so other programs are in it too. Imported logs have no samples, and filters do not
apply.""",
    columns=_COLUMNS,
    run=run,
    options=(Option("every", "seconds", 1_000_000_000, "length of an interval in seconds"),),
    examples=("iodock show machine run.iodock --every 5",),
)
