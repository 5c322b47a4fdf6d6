"""Lists files that were mapped into memory, and the parts of them that were accessed."""

from __future__ import annotations

from dataclasses import replace

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.relations import faults, pages
from iodock.program.relations.keys import KEYS
from iodock.program.relations.selection import SHARED_LIBRARY, Selection, as_events
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column
from iodock.shared.engine.sql import quoted

_SEEN = "seen_faults"
_FILE = KEYS["file"].column
_COUNTS = (
    Column(
        "faults",
        "int",
        "faults",
        "measure",
        "page faults: first accesses that the kernel had to handle",
        importance="first",
    ),
    Column(
        "major_faults",
        "int",
        "faults",
        "measure",
        "faults that had to wait for their page",
        importance="last",
    ),
)
_TIMES = (
    Column("first_ts", "int", "ns", "time", "time of the first fault"),
    Column("last_ts", "int", "ns", "time", "time of the last fault"),
)
_COLUMNS = (
    _FILE,
    Column("maps", "int", "calls", "measure", "successful calls of mmap on it"),
    Column("processes", "int", "processes", "measure", "processes that had page faults in the file"),
    *_COUNTS,
    Column(
        "pages",
        "int",
        "pages",
        "measure",
        "different pages of 4 KiB with a fault, or present when recording began",
        importance="last",
    ),
    Column(
        "touched_bytes",
        "int",
        "bytes",
        "measure",
        "pages and, between rising addresses, the gaps between them",
        importance="first",
    ),
    Column(
        "brought_bytes",
        "int",
        "bytes",
        "measure",
        "bytes loaded into the page cache to be read, also by calls; empty if not recorded",
        importance="first",
    ),
    Column("touched_share", "float", None, "measure", "share of the file's size"),
    Column("ranges", "int", "ranges", "measure", "pieces of the file that this forms"),
    Column(
        "rising_share",
        "float",
        None,
        "measure",
        "share of the faults at a higher offset than the task's previous fault",
        importance="last",
    ),
    Column("pattern", "str", None, "detail", "order of the faults: sequential, rising or random"),
    *_TIMES,
)
_RANGES = (
    _FILE,
    Column("offset_bytes", "int", "bytes", "key", "offset in the file at which it begins"),
    Column("end_bytes", "int", "bytes", "detail", "offset at which it ends"),
    Column("bytes", "int", "bytes", "measure", "its length", importance="first"),
    *_COUNTS,
    *_TIMES,
)
_LIMITS = (
    "only a process's first access to a page is a fault: later accesses, and neighbouring pages that the "
    "kernel maps with it (64 KiB, in large folios up to 2 MiB), are not visible; between rising addresses "
    "the gaps count as accessed"
)
_UNKNOWN = "page faults were not recorded, so the reads and writes in these maps are unknown"


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per mapped file. With `--ranges` there is one row per part of a file
    that was accessed."""
    selection = select(store, asked.filters.without_calls())
    store.keep(_SEEN, faults.steps(f"({_chosen(selection)})"))
    by_range = bool(asked.options["ranges"])
    table = store.table(_range_rows() if by_range else _file_rows(selection, pages.are_known(store)))
    known = faults.are_known(store)
    noted = replace(selection, notes=(*selection.notes, _LIMITS if known else _UNKNOWN))
    return answer(
        "maps",
        "Mapped files",
        store,
        asked,
        table,
        _RANGES if by_range else _COLUMNS,
        noted,
        keys=("file", "offset_bytes") if by_range else ("file",),
    )


def _chosen(selection: Selection) -> str:
    return f"""SELECT e.ts, e.utid, e.file_id, e.offset_bytes, e.is_major
FROM {as_events("faults", "end_ts", "other_file_id")} e {selection.joins} {selection.where}"""


def _range_rows() -> str:
    return f"""SELECT n.name AS file, r.lower_bytes AS offset_bytes, r.upper_bytes AS end_bytes, r.bytes,
  r.faults, r.major_faults, r.first_ts, r.last_ts
FROM ({faults.ranges(_SEEN)}) r JOIN files n ON n.file_id = r.file_id ORDER BY 1, 2"""


def _file_rows(selection: Selection, known: bool) -> str:
    mapped = selection.and_where(
        "e.call_id IN (SELECT id FROM calls WHERE family = 'mmap')",
        "e.errno_id IS NULL AND e.result IS NOT NULL AND e.file_id IS NOT NULL",
    )
    return f"""WITH touched AS (SELECT file_id, sum(bytes) AS bytes, count(*) AS ranges
  FROM ({faults.ranges(_SEEN)}) GROUP BY 1),
counted AS (SELECT s.file_id, count(DISTINCT p.upid) AS processes, count(s.is_major) AS faults,
    count(*) FILTER (WHERE s.is_major) AS major_faults, count(DISTINCT s.offset_bytes) AS pages,
    count(s.step) AS steps, count(*) FILTER (WHERE s.step > 0) AS rising,
    count(*) FILTER (WHERE {faults.NEAR}) AS near,
    min(s.ts) AS first_ts, max(s.ts) AS last_ts
  FROM {_SEEN} s LEFT JOIN processes p ON p.utid = s.utid GROUP BY 1),
brought AS (SELECT e.file_id, CAST(sum(e.bytes) AS BIGINT) AS bytes
  FROM {as_events("pages", "other_file_id")} e {selection.joins}
  {selection.and_where(pages.READ)} GROUP BY 1),
mapped AS (SELECT e.file_id, count(*) AS maps FROM events e {selection.joins} {mapped} GROUP BY 1)
SELECT n.name AS file, CAST(coalesce(m.maps, 0) AS BIGINT) AS maps, c.processes, c.faults,
  c.major_faults, c.pages, CAST(t.bytes AS BIGINT) AS touched_bytes,
  CASE WHEN {known} THEN coalesce(b.bytes, 0) END AS brought_bytes,
  CASE WHEN n.size_bytes > 0 AND t.bytes IS NOT NULL
    THEN least(t.bytes / n.size_bytes, 1.0) END AS touched_share, t.ranges,
  CASE WHEN c.steps > 0 THEN c.rising / c.steps END AS rising_share,
  CASE WHEN c.steps > 0 AND c.near >= 0.9 * c.steps THEN 'sequential'
    WHEN c.steps > 0 AND c.rising >= 0.9 * c.steps THEN 'rising'
    WHEN c.steps > 0 THEN 'random' END AS pattern, c.first_ts, c.last_ts
FROM files n LEFT JOIN counted c ON c.file_id = n.file_id LEFT JOIN touched t ON t.file_id = n.file_id
  LEFT JOIN mapped m ON m.file_id = n.file_id LEFT JOIN brought b ON b.file_id = n.file_id
WHERE c.file_id IS NOT NULL
  OR (m.file_id IS NOT NULL AND NOT regexp_full_match(n.name, {quoted(SHARED_LIBRARY)}))
ORDER BY c.faults DESC NULLS LAST, n.name"""


ANALYSIS = Analysis(
    name="maps",
    title="Mapped files",
    doc="""Accesses of programs to files that they mapped into memory (mmap), which no call shows: the number
of page faults, how many of them waited for the disk or server, the accessed share of the file, and the order.
`--ranges` lists the accessed ranges of each file. The analysis needs a live recording with page faults
(`iodock record --page-faults`). Filters by call, direction, outcome and duration do not apply.""",
    columns=_COLUMNS,
    run=run,
    options=(Option("ranges", "flag", False, "list the accessed ranges of the files"),),
    examples=("iodock show maps run.iodock", "iodock show maps run.iodock --ranges --file /data/index.bin"),
)
