"""Compares the data that the program loaded into the page cache with the data that it requested."""

from __future__ import annotations

from dataclasses import replace

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.relations import faults, pages
from iodock.program.relations.keys import KEYS
from iodock.program.relations.selection import Selection, as_events
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

_BROUGHT = "brought_pages"
_TOUCHED = "touched_pages"
_FILE = KEYS["file"].column
_TIMES = (
    Column("first_ts", "int", "ns", "time", "time at which the first page was read"),
    Column("last_ts", "int", "ns", "time", "time of the last one"),
)
_COLUMNS = (
    _FILE,
    Column("processes", "int", "processes", "measure", "processes that loaded pages of the file"),
    Column(
        "pages", "int", "pages", "measure", "pages of 4 KiB loaded to be read, each as often as it was loaded"
    ),
    Column(
        "brought_bytes",
        "int",
        "bytes",
        "measure",
        "size of those pages in bytes, including read-ahead",
        importance="first",
    ),
    Column("different_bytes", "int", "bytes", "measure", "distinct ones of these: the rest was repeated"),
    Column("ranges", "int", "ranges", "measure", "pieces of the file that they form"),
    Column(
        "read_bytes",
        "int",
        "bytes",
        "measure",
        "different bytes that calls read, from memory or not",
        importance="first",
    ),
    Column(
        "touched_bytes",
        "int",
        "bytes",
        "measure",
        "bytes accessed in maps of it, as far as page faults show them",
    ),
    Column(
        "amplification",
        "float",
        None,
        "measure",
        "loaded bytes divided by the bytes that were read or accessed",
        importance="first",
    ),
    Column("written_bytes", "int", "bytes", "measure", "pages that a write created in memory"),
    Column(
        "unclear_bytes", "int", "bytes", "measure", "pages of which it is not known whether they were read"
    ),
    *_TIMES,
)
_RANGES = (
    _FILE,
    Column("offset_bytes", "int", "bytes", "key", "offset in the file at which it begins"),
    Column("end_bytes", "int", "bytes", "detail", "end offset, at the end of a page"),
    Column("bytes", "int", "bytes", "measure", "its length", importance="first"),
    Column(
        "brought_bytes",
        "int",
        "bytes",
        "measure",
        "bytes loaded, each page as often as it was loaded",
        importance="first",
    ),
    *_TIMES,
)
_LIMITS = (
    "pages of holes count as read, though no device has them; O_DIRECT reads, and what others had brought in "
    "before, bring nothing into the page cache"
)
_UNKNOWN = "only recordings with --backend bpf show what was loaded into the page cache"


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per file that was read or whose pages were loaded. With `--ranges` there
    is one row per loaded part of a file."""
    selection = select(store, asked.filters.without_calls())
    came = as_events("pages", "other_file_id")
    store.keep(_BROUGHT, _chosen(came, "e.end_ts, e.bytes, e.is_written", selection))
    seen = as_events("faults", "end_ts", "other_file_id")
    store.keep(_TOUCHED, faults.steps(f"({_chosen(seen, 'e.is_major', selection)})"))
    known = pages.are_known(store)
    by_range = bool(asked.options["ranges"])
    table = store.table(_range_rows() if by_range else _file_rows(selection, known))
    noted = replace(selection, notes=(*selection.notes, _LIMITS if known else _UNKNOWN))
    return answer(
        "cache",
        "Page cache",
        store,
        asked,
        table,
        _RANGES if by_range else _COLUMNS,
        noted,
        keys=("file", "offset_bytes") if by_range else ("file",),
    )


def _chosen(table: str, columns: str, selection: Selection) -> str:
    return f"""SELECT e.ts, e.utid, e.file_id, e.offset_bytes, {columns}
FROM {table} e {selection.joins} {selection.where}"""


def _to_read() -> str:
    return f"(SELECT * FROM {_BROUGHT} WHERE {pages.READ})"


def _range_rows() -> str:
    return f"""SELECT n.name AS file, r.lower_bytes AS offset_bytes, r.upper_bytes AS end_bytes, r.bytes,
  r.brought_bytes, r.first_ts, r.last_ts
FROM ({pages.ranges(_to_read())}) r JOIN files n ON n.file_id = r.file_id ORDER BY 1, 2"""


def _file_rows(selection: Selection, known: bool) -> str:
    reads = selection.and_where("e.direction = 1", "e.bytes > 0", "e.file_id IS NOT NULL", str(known))
    return f"""WITH pieces AS (SELECT file_id, CAST(sum(bytes) AS BIGINT) AS bytes, count(*) AS ranges
  FROM ({pages.ranges(_to_read())}) GROUP BY 1),
brought AS (SELECT b.file_id, count(DISTINCT p.upid) FILTER ({pages.READ}) AS processes,
    CAST(coalesce(sum(b.bytes) FILTER ({pages.READ}), 0) AS BIGINT) AS bytes,
    CAST(coalesce(sum(b.bytes) FILTER (is_written), 0) AS BIGINT) AS written,
    CAST(coalesce(sum(b.bytes) FILTER (is_written IS NULL), 0) AS BIGINT) AS unclear,
    min(b.ts) FILTER ({pages.READ}) AS first_ts, max(b.end_ts) FILTER ({pages.READ}) AS last_ts
  FROM {_BROUGHT} b LEFT JOIN processes p ON p.utid = b.utid GROUP BY 1),
touched AS (SELECT file_id, CAST(sum(bytes) AS BIGINT) AS bytes
  FROM ({faults.ranges(_TOUCHED)}) GROUP BY 1),
reads AS (SELECT e.file_id, CAST(sum(e.bytes - coalesce(e.any_read_bytes, 0)) AS BIGINT) AS bytes
  FROM events e {selection.joins} {reads} GROUP BY 1)
SELECT n.name AS file, coalesce(b.processes, 0) AS processes,
  coalesce(b.bytes, 0) // {faults.PAGE_BYTES} AS pages, coalesce(b.bytes, 0) AS brought_bytes,
  coalesce(p.bytes, 0) AS different_bytes, coalesce(p.ranges, 0) AS ranges, r.bytes AS read_bytes,
  t.bytes AS touched_bytes,
  CASE WHEN coalesce(r.bytes, 0) + coalesce(t.bytes, 0) > 0
    THEN coalesce(b.bytes, 0) / (coalesce(r.bytes, 0) + coalesce(t.bytes, 0)) END AS amplification,
  coalesce(b.written, 0) AS written_bytes, coalesce(b.unclear, 0) AS unclear_bytes, b.first_ts, b.last_ts
FROM files n LEFT JOIN brought b ON b.file_id = n.file_id LEFT JOIN pieces p ON p.file_id = n.file_id
  LEFT JOIN reads r ON r.file_id = n.file_id LEFT JOIN touched t ON t.file_id = n.file_id
WHERE b.file_id IS NOT NULL OR (r.file_id IS NOT NULL AND n.kind IN ('file', 'regular'))
ORDER BY brought_bytes DESC, r.bytes DESC NULLS LAST, n.name"""


ANALYSIS = Analysis(
    name="cache",
    title="Page cache",
    doc="""Pages that the program loaded into the page cache, by calls and through mapped files: how many
pages of which files, including read-ahead, compared with the bytes that it requested (read amplification). A
file that was already in memory has no pages. `--ranges` lists the loaded ranges of each file. The analysis
needs a recording with `--backend bpf`. Filters by call, direction, outcome and duration do not apply; `--kind
all` also shows files whose names are unknown.""",
    columns=_COLUMNS,
    run=run,
    options=(Option("ranges", "flag", False, "list the loaded ranges of the files"),),
    examples=("iodock show cache run.iodock", "iodock show cache run.iodock --ranges --file /data/index.bin"),
)
