"""Lists every call on the chosen files, one by one."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from iodock.program.analyses.base import Analysis, Option, Request, Stream, answered, select
from iodock.program.analyses.counters import accesses as counters
from iodock.program.relations.ordering import first_of, order_sql
from iodock.program.relations.selection import Selection
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

COLUMNS = (
    Column(
        "ts",
        "int",
        "ns",
        "time",
        "start, ns since the epoch or midnight; null where only the end is known",
        importance="first",
    ),
    Column("dur", "int", "ns", "measure", "time inside the call", importance="first"),
    Column("pid", "int", None, "key", "process id", importance="last"),
    Column("tid", "int", None, "key", "thread id", importance="usual"),
    Column("call", "str", None, "key", "the system call"),
    Column("file", "str", None, "key", "the file's name; null for calls without a file"),
    Column(
        "side",
        "str",
        None,
        "key",
        "end of a two-ended call: in, out, old, new; else null",
        importance="last",
    ),
    Column("offset_bytes", "int", "bytes", "measure", "offset in the file, if known", importance="first"),
    Column("requested_bytes", "int", "bytes", "measure", "bytes requested"),
    Column("result", "int", None, "detail", "returned value; null for no result"),
    Column("errno", "str", None, "key", "the error, if the call failed", importance="usual"),
    Column(
        "bytes",
        "int",
        "bytes",
        "measure",
        "bytes transferred at this end; null if the call transfers none",
        importance="first",
    ),
    Column("direction", "str", None, "key", "read or write, if bytes are transferred", importance="last"),
    Column("end_ts", "int", "ns", "time", "end of the call, where known"),
    Column(
        "sys_cpu_time_ns",
        "int",
        "ns",
        "measure",
        "system CPU time, if the source has it (truss -E)",
        importance="last",
    ),
)

ROWS = """SELECT e.ts, e.dur, p.pid, p.tid, c.name AS call, n.name AS file,
  CASE e.side WHEN 1 THEN 'in' WHEN 2 THEN 'out' WHEN 3 THEN 'old' WHEN 4 THEN 'new' END AS side,
  e.offset_bytes, e.requested_bytes, e.result, x.name AS errno, e.bytes,
  CASE e.direction WHEN 1 THEN 'read' WHEN 2 THEN 'write' END AS direction,
  coalesce(e.end_ts, e.ts + e.dur) AS end_ts, e.sys_cpu_ns AS sys_cpu_time_ns"""


def rows_sql(selection: Selection) -> str:
    """Returns the SQL for one row per call and chosen file, sorted by the time at which calls ended. A call
    on two files has two rows."""
    return f"""{ROWS} FROM events e {selection.joins}
  LEFT JOIN processes p ON p.utid = e.utid LEFT JOIN calls c ON c.id = e.call_id
  LEFT JOIN errnos x ON x.id = e.errno_id LEFT JOIN files n ON n.file_id = e.file_id {selection.where}"""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Holds the SQL that gives the rows, the columns of these rows, and the notes for the answer."""

    sql: str
    columns: tuple[Column, ...]
    notes: tuple[str, ...]


def run(store: Store, asked: Request) -> Answer:
    """Returns the answer with all rows in memory. `stream` returns the same rows in batches."""
    rows = _rows(store, asked)
    table = store.reader(_chosen_sql(rows, asked)).read_all()
    return _answer(store, asked, table, rows)


def _rows(store: Store, asked: Request) -> _Rows:
    """Returns the SQL for the rows: all calls, or, in a store of counters, the single accesses that it
    contains."""
    if store.manifest.profiles_only:
        sql, notes = counters.rows_sql(store, asked, COLUMNS)
        return _Rows(sql, counters.columns(COLUMNS), notes)
    selection = select(store, asked.filters)
    return _Rows(rows_sql(selection), COLUMNS, selection.notes)


def _chosen_sql(rows: _Rows, asked: Request) -> str:
    """Returns the SQL for the rows, sorted and limited as the options `sort` and `top` say."""
    order, top = order_sql(rows.columns, asked.options), asked.options["top"]
    sql = rows.sql
    if order:
        sql = f"SELECT * FROM ({sql}) r ORDER BY {', '.join(order)}, ts, end_ts"
    return f"{sql} LIMIT {top}" if top else sql


def _answer(store: Store, asked: Request, table: pa.Table, rows: _Rows) -> Answer:
    totals = None
    if top := asked.options["top"]:
        (found,) = store.rows(f"SELECT count(*) AS n FROM ({rows.sql}) r")
        totals = first_of(min(top, int(found["n"])), int(found["n"]), "calls")
    return answered("accesses", "Single calls", store, asked, table, rows.columns, rows.notes, totals)


def stream(store: Store, asked: Request) -> Stream:
    """Returns an answer whose rows are read in batches, so that the rows need not fit into memory."""
    rows = _rows(store, asked)
    sql = _chosen_sql(rows, asked)
    names = [column.name for column in rows.columns]
    empty = store.table(f"SELECT * FROM ({sql}) r LIMIT 0")
    head = _answer(store, asked, empty, rows)
    return Stream(head, lambda: store.reader(sql), lambda: store.json_reader(sql, names))


ANALYSIS = Analysis(
    name="accesses",
    title="Single calls",
    doc="""Every call on the chosen files, in the order in which calls ended: start, duration, size and
offset of each. A call on two files (rename, sendfile) has a row for each chosen file. For Darshan's logs
these are the reads and writes that DXT recorded, with interface and rank.""",
    columns=COLUMNS,
    run=run,
    stream=stream,
    profiles=True,
    orders=True,
    options=(Option("top", "int", None, "only the first N calls, or with --sort those N"),),
    examples=(
        "iodock show accesses run.iodock --file /scratch/out.dat --format csv -o out.csv",
        "iodock show accesses run.iodock --top 20 --sort dur",
        "iodock show accesses run.iodock --file out.dat --call read --chart offset -o offset.png",
    ),
)
