"""Lists the processes of a run as a tree: which process started which other, the programs that they executed,
how they ended, and their shares of the I/O."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Request, answer, select
from iodock.program.analyses.counters import processes as counters
from iodock.program.relations.selection import Selection
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

COLUMNS = (
    Column("pid", "int", None, "key", "id of the task (a thread's own id), as the source shows it"),
    Column("process_pid", "int", None, "detail", "id of the process that the task belongs to"),
    Column("parent_pid", "int", None, "detail", "id of the parent task; null for roots", importance="usual"),
    Column("how", "str", None, "detail", "root, fork, vfork, thread or attached", importance="usual"),
    Column("rank", "int", None, "detail", "MPI rank, where known", importance="usual"),
    Column("host", "str", None, "detail", "host, if known"),
    Column("commands", "list", None, "detail", "programs that the process ran, in order", importance="first"),
    Column("start_ts", "int", "ns", "time", "time of the first trace of the task"),
    Column("end_ts", "int", "ns", "time", "end"),
    Column(
        "exit_code",
        "int",
        None,
        "detail",
        "exit status; null if a signal ended the task, or its end was not seen",
        importance="usual",
    ),
    Column("exit_signal", "str", None, "detail", "signal that ended the process", importance="usual"),
    Column("core_dumped", "bool", None, "detail", "whether the process left a core file"),
    Column(
        "cpu_user_ns", "int", "ns", "measure", "user CPU time, only for live recordings", importance="last"
    ),
    Column(
        "cpu_system_ns",
        "int",
        "ns",
        "measure",
        "system CPU time, only for live recordings",
        importance="last",
    ),
    Column("count", "int", "calls", "measure", "its calls on the chosen files", importance="first"),
    Column("failed", "int", "calls", "measure", "number of calls that failed"),
    Column("total_time_ns", "int", "ns", "measure", "time inside the calls", importance="first"),
    Column("read_bytes", "int", "bytes", "measure", "bytes read", importance="first"),
    Column("written_bytes", "int", "bytes", "measure", "bytes written", importance="first"),
)


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per task, in the order in which the tasks appeared."""
    if store.manifest.profiles_only:
        return counters.run(store, asked, COLUMNS)
    selection = select(store, asked.filters)
    table = store.table(rows_sql(selection, asked))
    return answer(
        "processes", "Processes and threads", store, asked, table, COLUMNS, selection, keys=("pid",)
    )


def rows_sql(selection: Selection, asked: Request) -> str:
    """Returns the SQL for tasks with the programs that they ran and their share of the calls."""
    counted = f"NOT {selection.again}"
    sums = f"""SELECT e.utid, count(*) FILTER (WHERE {counted}) AS count,
  count(e.errno_id) FILTER (WHERE {counted}) AS failed,
  CAST(sum(e.dur) FILTER (WHERE {counted}) AS BIGINT) AS total_time_ns,
  CAST(sum(e.bytes) FILTER (WHERE e.direction = 1) AS BIGINT) AS read_bytes,
  CAST(sum(e.bytes) FILTER (WHERE e.direction = 2) AS BIGINT) AS written_bytes
{selection.from_events} GROUP BY 1"""
    chosen = f"WHERE {selection.tasks}" if selection.tasks else ""
    return f"""WITH s AS ({sums}),
ran AS (SELECT utid, array_agg(path ORDER BY ts NULLS FIRST, place) AS commands
  FROM (SELECT utid, ts, path, row_number() OVER () AS place FROM commands) z GROUP BY 1)
SELECT p.tid AS pid, p.pid AS process_pid, p.parent_pid, p.how, p.rank, p.host,
  coalesce(r.commands, CAST([] AS VARCHAR[])) AS commands, p.start_ts, p.end_ts, p.exit_code, p.exit_signal,
  p.core_dumped, p.cpu_user_ns, p.cpu_system_ns, coalesce(s.count, 0) AS count,
  coalesce(s.failed, 0) AS failed, s.total_time_ns, s.read_bytes, s.written_bytes
FROM processes p LEFT JOIN s ON s.utid = p.utid LEFT JOIN ran r ON r.utid = p.utid {chosen} ORDER BY p.utid"""


ANALYSIS = Analysis(
    name="processes",
    title="Processes and threads",
    doc="""Every process and thread with its parent task, the programs that it ran, its start and end, and its
calls on the chosen files. For counters (Darshan's logs) the rows are ranks, if the counters have them.""",
    columns=COLUMNS,
    run=run,
    profiles=True,
    examples=("iodock show processes run.iodock", "iodock show processes run.iodock --format json"),
)
