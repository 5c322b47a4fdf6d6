"""Compares the ranks of an MPI program: the time of each rank in reading, writing, metadata calls and
waiting."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from iodock.program.analyses.base import Analysis, Request, answer, select
from iodock.program.analyses.counters.ranks import COUNTED_RANKS, keep_counted
from iodock.program.analyses.overview import PART
from iodock.program.relations.io_time import IO_CALLS
from iodock.program.relations.selection import Selection, as_events
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = (
    Column("rank", "int", None, "key", "MPI rank"),
    Column("host", "str", None, "detail", "host, if known"),
    Column(
        "recorded",
        "str",
        None,
        "detail",
        "whole: each call is recorded; counted: sums only (record --ranks or --light), with unknown "
        "values empty",
        importance="usual",
    ),
    Column("tasks", "int", None, "detail", "processes and threads of the rank"),
    Column("wall_time_ns", "int", "ns", "measure", "from the rank's start to its end", importance="usual"),
    Column(
        "io_time_ns",
        "int",
        "ns",
        "measure",
        "time inside I/O calls, without waiting, added up over the rank's threads",
        importance="first",
    ),
    Column("read_time_ns", "int", "ns", "measure", "of this, bytes read", importance="first"),
    Column("write_time_ns", "int", "ns", "measure", "writing", importance="first"),
    Column(
        "metadata_time_ns",
        "int",
        "ns",
        "measure",
        "calls about files: open, stat, close and others, and seeks",
        importance="first",
    ),
    Column("sync_time_ns", "int", "ns", "measure", "calls that wait until data is on its device"),
    Column(
        "waiting_time_ns",
        "int",
        "ns",
        "measure",
        "time inside calls that wait for other processes, on pipes and sockets; of processes only, since "
        "threads that MPI starts are idle in such calls",
        importance="usual",
    ),
    Column(
        "collective_time_ns",
        "int",
        "ns",
        "measure",
        "time in collective calls of MPI-IO outside of their system calls, mostly waiting for other "
        "ranks; empty if these calls were not recorded",
        importance="usual",
    ),
    Column("count", "int", "calls", "measure", "I/O calls excluding waiting", importance="first"),
    Column("reads", "int", "calls", "measure", "of these, reads of files"),
    Column("writes", "int", "calls", "measure", "writes of files"),
    Column("read_bytes", "int", "bytes", "measure", "bytes read from files", importance="first"),
    Column("written_bytes", "int", "bytes", "measure", "bytes written to files", importance="first"),
)
_TITLE = "Ranks in parallel"
_CALLED, _SUMS = "calls_of_ranks", "sums_of_ranks"


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per rank, the rank with most I/O time first."""
    if store.manifest.profiles_only and not store.manifest.is_light:
        store.need_no_profiles()
    filters = asked.filters
    if not filters.kind and not filters.file:
        filters = dataclasses.replace(filters, kind=("all",))
    selection = select(store, filters)
    store.keep(_CALLED, _called(selection))
    store.keep(_SUMS, _sums())
    counted = keep_counted(store, filters)
    table = store.table(_rows(selection, select(store, filters.without_calls())))
    noted = dataclasses.replace(selection, notes=(*selection.notes, *counted, *_notes(store, table)))
    return answer("ranks", _TITLE, store, asked, table, _COLUMNS, noted, keys=("rank",))


def _called(selection: Selection) -> str:
    counted = f"NOT {selection.again}"
    return f"""SELECT e.utid, e.file_id, e.call_id, e.direction, count(*) FILTER (WHERE {counted}) AS count,
  CAST(sum(e.dur) FILTER (WHERE {counted}) AS BIGINT) AS time, CAST(sum(e.bytes) AS BIGINT) AS bytes
{selection.from_events} GROUP BY 1, 2, 3, 4"""


def _sums() -> str:
    """Returns the SQL for sums by rank, part of the I/O and direction."""
    return f"""WITH parts AS (SELECT p.rank, p.tid <> p.pid AS is_thread, {PART} AS part, s.direction,
    s.count, s.time, s.bytes
  FROM {_CALLED} s JOIN processes p ON p.utid = s.utid JOIN calls c ON c.id = s.call_id
  LEFT JOIN files f ON f.file_id = s.file_id
  WHERE p.rank IS NOT NULL AND (s.file_id IS NOT NULL OR {IO_CALLS}))
SELECT rank, part, direction, sum(count) AS count, sum(time) AS time, sum(bytes) AS bytes FROM parts
WHERE NOT (part = 'waiting' AND is_thread) GROUP BY ALL"""


_TIMES = {
    "io_time_ns": "part <> 'waiting'",
    "read_time_ns": "part = 'data' AND direction = 1",
    "write_time_ns": "part = 'data' AND direction = 2",
    "metadata_time_ns": "part IN ('metadata', 'seek')",
    "sync_time_ns": "part = 'sync'",
    "waiting_time_ns": "part = 'waiting'",
}


def _rows(selection: Selection, called: Selection) -> str:
    """Returns the SQL for the rows. CALLED is the selection for the calls of interfaces."""
    # If no call of the rank has a duration, the time is unknown (NULL). If calls have durations but none is
    # of this kind, it is 0.
    times = ", ".join(
        f"CASE WHEN count(time) > 0 THEN CAST(coalesce(sum(time) FILTER ({condition}), 0) AS BIGINT) END "
        f"AS {name}"
        for name, condition in _TIMES.items()
    )
    chosen = f"AND {selection.tasks}" if selection.tasks else ""
    collective = called.and_where("e.is_collective", "e.interface = 'MPI-IO'")
    return f"""WITH ranks AS (SELECT p.rank, min(p.host) AS host, count(*) AS tasks,
    CASE WHEN count(p.end_ts) = count(*) THEN max(p.end_ts) - min(p.start_ts) END AS wall_time_ns
  FROM processes p WHERE p.rank IS NOT NULL {chosen} GROUP BY p.rank),
summed AS (SELECT rank, {times}, CAST(sum(count) FILTER (part <> 'waiting') AS BIGINT) AS count,
    CAST(sum(count) FILTER (part = 'data' AND direction = 1) AS BIGINT) AS reads,
    CAST(sum(count) FILTER (part = 'data' AND direction = 2) AS BIGINT) AS writes,
    CAST(sum(bytes) FILTER (part = 'data' AND direction = 1) AS BIGINT) AS read_bytes,
    CAST(sum(bytes) FILTER (part = 'data' AND direction = 2) AS BIGINT) AS written_bytes
  FROM {_SUMS} GROUP BY rank),
inside AS (SELECT interface_call_id AS id, sum(dur) AS time FROM events
  WHERE interface_call_id IS NOT NULL AND side NOT IN (2, 4) GROUP BY 1),
together AS (SELECT p.rank, CAST(sum(greatest(0, e.dur - coalesce(n.time, 0))) AS BIGINT) AS time
  FROM {as_events("interface_calls", "other_file_id")} e JOIN processes p ON p.utid = e.utid
    LEFT JOIN inside n ON n.id = e.id {called.joins} {collective} GROUP BY p.rank),
whole AS (SELECT r.rank, r.host, 'whole' AS recorded, r.tasks, r.wall_time_ns,
    {", ".join(f"s.{name}" for name in _TIMES)}, t.time AS collective_time_ns,
    {", ".join(f"coalesce(s.{name}, 0) AS {name}" for name in _SUMMED)}
  FROM ranks r LEFT JOIN summed s ON s.rank = r.rank LEFT JOIN together t ON t.rank = r.rank
  WHERE r.rank NOT IN (SELECT rank FROM {COUNTED_RANKS})),
counted AS (SELECT r.rank, r.host, 'counted' AS recorded, r.tasks, r.wall_time_ns, c.* EXCLUDE (rank)
  FROM ranks r JOIN {COUNTED_RANKS} c ON c.rank = r.rank)
SELECT * FROM whole UNION ALL SELECT * FROM counted ORDER BY io_time_ns DESC NULLS LAST, rank"""


_SUMMED = ("count", "reads", "writes", "read_bytes", "written_bytes")


def _notes(store: Store, table: pa.Table) -> list[str]:
    if not table.num_rows:
        return ["no process of this run is known as an MPI rank; `iodock show processes` lists all processes"]
    (others,) = store.rows("SELECT count(*) AS tasks FROM processes WHERE rank IS NULL")
    return (
        [f"not listed: {others['tasks']:,} processes and threads without a rank"] if others["tasks"] else []
    )


ANALYSIS = Analysis(
    name="ranks",
    title=_TITLE,
    doc="""The ranks of an MPI program, the one with most I/O time first: time in reads, writes, calls about
files, and waiting, and the bytes. Times are added up over the threads of a rank. `--rank 0,8-15` chooses
ranks. Without --kind or --file the table covers every file, pipe and socket. Counted ranks (`record --ranks`,
`--light`) are listed next to recorded ones, with the values that counters have.""",
    columns=_COLUMNS,
    run=run,
    profiles=True,
    examples=("iodock show ranks run.iodock", "iodock show ranks run.iodock --rank 0,7,96-103"),
)
