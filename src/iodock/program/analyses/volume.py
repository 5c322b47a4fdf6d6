"""Compares the number of bytes that a run moved with the sizes of its files, and so shows how many times each
file was read or written."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.relations.ordering import order_sql
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column, Totals

COLUMNS = (
    Column("file", "str", None, "key", "the file's name"),
    Column("size_bytes", "int", "bytes", "measure", "last known size (expected volume)", importance="first"),
    Column("read_bytes", "int", "bytes", "measure", "bytes read", importance="first"),
    Column("written_bytes", "int", "bytes", "measure", "bytes written", importance="first"),
    Column("read_factor", "float", None, "measure", "bytes read divided by the size"),
    Column("written_factor", "float", None, "measure", "bytes written divided by the size"),
    Column("read_again_bytes", "int", "bytes", "measure", "bytes read again, if known", importance="last"),
    Column("mapped", "int", "calls", "measure", "times mapped; bytes read through a map are not counted"),
)  # fmt: skip

_MOST_REDUNDANT = (
    "greatest(read_bytes + written_bytes - coalesce(size_bytes, 0), 0) DESC",
    "read_bytes DESC",
    "file",
)


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per file whose bytes were read or written. The files with most redundant
    bytes come first."""
    selection = select(store, asked.filters)
    store.keep(
        "volumes",
        f"""WITH s AS (SELECT e.file_id,
  CAST(coalesce(sum(e.bytes) FILTER (WHERE e.direction = 1), 0) AS BIGINT) AS read_bytes,
  CAST(coalesce(sum(e.bytes) FILTER (WHERE e.direction = 2), 0) AS BIGINT) AS written_bytes,
  CAST(sum(e.any_read_bytes) FILTER (WHERE e.direction = 1) AS BIGINT) AS read_again_bytes,
  count(*) FILTER (WHERE e.call_id IN (SELECT id FROM calls WHERE family = 'mmap')) AS mapped
FROM events e {selection.joins} {selection.and_where("e.file_id IS NOT NULL")} GROUP BY 1)
SELECT f.name AS file, f.size_bytes, s.read_bytes, s.written_bytes,
  s.read_bytes / nullif(f.size_bytes, 0) AS read_factor,
  s.written_bytes / nullif(f.size_bytes, 0) AS written_factor, s.read_again_bytes, s.mapped
FROM s JOIN files f ON f.file_id = s.file_id WHERE s.read_bytes + s.written_bytes + s.mapped > 0""",
    )
    top = asked.options["top"]
    limit = f" LIMIT {top}" if top else ""
    order = ", ".join(order_sql(COLUMNS, asked.options, _MOST_REDUNDANT))
    table = store.table(f"SELECT * FROM volumes ORDER BY {order}{limit}")
    (total,) = store.rows(_TOTAL_SQL)
    files = int(total.pop("files"))
    totals = Totals(total, None, table.num_rows, files, "files")
    return answer("volume", "Volume", store, asked, table, COLUMNS, selection, totals, keys=("file",))


_TOTAL_SQL = """SELECT count(*) AS files, CAST(sum(size_bytes) AS BIGINT) AS size_bytes,
  CAST(sum(read_bytes) AS BIGINT) AS read_bytes, CAST(sum(written_bytes) AS BIGINT) AS written_bytes,
  sum(read_bytes) FILTER (WHERE size_bytes > 0) / sum(size_bytes) FILTER (WHERE read_bytes > 0)
    AS read_factor,
  sum(written_bytes) FILTER (WHERE size_bytes > 0) / sum(size_bytes) FILTER (WHERE written_bytes > 0)
    AS written_factor FROM volumes"""

ANALYSIS = Analysis(
    name="volume",
    title="Volume",
    doc="""Step 2 of the method: bytes transferred compared with the sizes of the files. A factor well above 1
means redundant I/O. Mapped files may have been read without a call.""",
    columns=COLUMNS,
    run=run,
    orders=True,
    options=(Option("top", "int", None, "only the N files with the most redundant bytes"),),
    examples=("iodock show volume run.iodock --user-files --top 10",),
)
