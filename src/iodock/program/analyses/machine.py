"""Shows the state of the machine while the program ran, as levels and rates. They may explain a slow
period."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from iodock.program.analyses.base import Analysis, Option, Request, answer
from iodock.program.meanwhile.sentences import of_run
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column
from iodock.shared.errors import IodockError
from iodock.shared.language import Language
from iodock.shared.meanwhile import Meanwhile, Servers
from iodock.shared.sentences import say

_COLUMNS = (
    Column("ts", "int", "ns", "time", "time, ns since the epoch", importance="first"),
    Column(
        "source",
        "str",
        None,
        "key",
        "diskstats, mountstats, llite, pressure, loadavg, process_io; of the monitor: server, others",
    ),
    Column("target", "str", None, "key", "device, mount, pid, server, job, ...; empty for the whole machine"),
    Column("metric", "str", None, "key", "quantity that is measured, with its unit"),
    Column(
        "kind", "str", None, "detail", "rate (a counter's growth per second) or level", importance="usual"
    ),
    Column("value", "float", None, "measure", "the level, or the growth per second", importance="first"),
)


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per series and moment. The first sample of a counter has no rate and is
    left out."""
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
        "machine",
        "The machine during the run",
        store,
        asked,
        table,
        _COLUMNS,
        keys=("source", "target", "metric"),
    )


def with_servers(answer: Answer, servers: Servers, text: Language) -> Answer:
    """Adds to an answer a row for each sample of a file server, rows for other users that moved data from the
    same machine, and notes on both. Leaves out the rows that can't be read."""
    notes = [say(one, text) for one in of_run(servers)]
    try:
        found = servers.meanwhile()
        rows = [] if found is None else [*_server_rows(found), *_other_rows(servers, answer)]
    except IodockError:
        rows = []
    added = pa.Table.from_pylist(rows, schema=answer.table.schema) if rows else answer.table.slice(0, 0)
    return replace(answer, table=pa.concat_tables([answer.table, added]), notes=(*answer.notes, *notes))


def _server_rows(found: Meanwhile) -> Iterator[dict[str, Any]]:
    for one in found.curves:
        kind = "rate" if one.metric.endswith("_per_s") else "level"
        for at, value in one.points:
            yield _row(at, "server", one.server, one.metric.removesuffix("_per_s"), kind, value)


def _other_rows(servers: Servers, answer: Answer) -> Iterator[dict[str, Any]]:
    """Yields rows for other users: the bytes of each user over the whole run. The rows have the time at which
    the run started."""
    moments = answer.table.column("ts").to_pylist()
    if answer.first_ts is None or not moments:
        return
    for one in servers.others(answer.first_ts, max(moments)) or ():
        yield _row(answer.first_ts, "others", one.name, "read_bytes", "level", one.read_bytes)
        yield _row(answer.first_ts, "others", one.name, "written_bytes", "level", one.written_bytes)


def _row(at: int, source: str, target: str, metric: str, kind: str, value: float) -> dict[str, Any]:
    return {
        "ts": at, "source": source, "target": target, "metric": metric, "kind": kind, "value": float(value),
    }  # fmt: skip


ANALYSIS = Analysis(
    name="machine",
    title="The machine during the run",
    doc="""The state of the machine, sampled while a program was recorded: disks, file-system clients,
pressure and load. Counters are shown as growth per second, levels as read, both averaged over intervals. The
values are those of the whole machine, so they include other programs. Imported logs have no samples, and
filters do not apply. If the settings name a monitor's store, rows of source `server` show the activity of
the file servers, and rows of source `others` the bytes transferred by other jobs and sessions on the same
machine during the run."""
    "",
    columns=_COLUMNS,
    run=run,
    options=(Option("every", "seconds", 1_000_000_000, "length of an interval in seconds"),),
    examples=("iodock show machine run.iodock --every 5",),
)
