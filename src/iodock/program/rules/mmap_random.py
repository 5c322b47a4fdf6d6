"""Finds memory-mapped files that a process accesses at random, so that it waits for the disk or server at
each access."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.relations import faults
from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message

LONGEST_WAIT_NS = 20_000_000
"""If two page faults are further apart than this, the time between them is computing, not waiting for one
page."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `mmap-random`."""

    most_near: float = 0.3
    """Maximum share of a file's page faults directly after the previous one: with more the file is read
    sequentially."""
    least_returns: float = 4
    """Minimum number of times that the backward steps together span the whole file: a process that
    accesses it in rising order returns to its beginning from time to time."""
    least_touched: float = 0.5
    """Minimum share of the file that must be accessed for the advice to read all of it: reading in order
    is faster, but not by a large factor."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all mapped files that a process accesses at random, if it waits for their
    pages."""
    found = Faults(facts.rows(_sql(settings)))
    count, cost = found.total("count"), found.time_ns
    if not count or not costs.worth_a_word(facts, cost, count):
        return
    touched = found.total("touched_bytes") / max(1, found.total("extent"))
    yield Candidate(
        message=Message(
            _MESSAGE,
            {
                "count": count,
                "touched_bytes": found.total("touched_bytes"),
                "touched_share": min(1.0, touched),
                "back_share": found.total("back") / max(1, found.total("steps")),
                "files": found.file_count,
            },
        ),
        count=count,
        time_ns=cost,
        # Page faults are not calls, so their time counts as time outside of calls.
        work_ns=cost or 0,
        evidence={
            "count": count,
            "faults": found.total("faults"),
            "back": found.total("back"),
            "touched_bytes": found.total("touched_bytes"),
            "size_bytes": found.total("size_bytes"),
            "waited_ns": cost,
        },
        query=_QUERY,
        files=found.files,
        file_count=found.file_count,
        confidence=0.5,
        gain=(0.3, 0.9),
        advice=None if touched >= settings.least_touched else _FEW_TOUCHED,
    )


# The kernel reports a page fault when its page is available. The time since the task's previous page fault
# therefore contains both waiting and computing. CPU time and time in calls are subtracted, because they are
# not spent waiting for pages.
def _sql(settings: Settings) -> str:
    stepped = faults.steps(where="WHERE is_major IS NOT NULL AND file_id IN (FROM data_files)")
    return f"""WITH stepped AS (SELECT *,
    least({LONGEST_WAIT_NS}, ts - lag(ts, 1, ts) OVER (PARTITION BY utid ORDER BY ts)) AS pause
  FROM ({stepped})),
tasks AS (SELECT s.utid, any_value(p.end_ts - p.start_ts - p.cpu_user_ns - p.cpu_system_ns
    - coalesce(p.io_ns, 0) - coalesce(p.waiting_ns, 0)) AS idle_ns, CASE WHEN idle_ns IS NULL THEN 1
    ELSE least(1.0, greatest(0, idle_ns) / greatest(1, sum(s.pause))) END AS part
  FROM stepped s JOIN processes p ON p.utid = s.utid WHERE s.is_major GROUP BY s.utid)
SELECT f.name, 1 AS file_count, count(*) FILTER (WHERE s.is_major) AS count, count(*) AS faults,
  count(s.step) AS steps, count(*) FILTER (WHERE s.step < 0) AS back,
  count(DISTINCT s.offset_bytes) * {faults.PAGE_BYTES} AS touched_bytes, f.size_bytes,
  coalesce(f.size_bytes, max(s.offset_bytes)) AS extent,
  CAST(sum(s.pause * t.part) FILTER (WHERE s.is_major) AS BIGINT) AS time_ns
FROM stepped s JOIN files f ON f.file_id = s.file_id LEFT JOIN tasks t ON t.utid = s.utid
GROUP BY f.file_id, f.name, f.size_bytes
HAVING count(*) FILTER (WHERE {faults.NEAR}) <= {settings.most_near} * count(s.step)
  AND -sum(s.step) FILTER (WHERE s.step < 0) >= {settings.least_returns} * extent
ORDER BY time_ns DESC NULLS LAST, f.name"""


_MESSAGE = N_(
    "{count} page faults in mapped files had to wait for their page, and {back_share} of the faults step "
    "back in the file; pages touched: {touched_bytes}, {touched_share} of the files; files: {files}"
)
_FEW_TOUCHED = advise(
    any=N_(
        "Access the file in rising order, or announce the next accesses. Reading all of it is worthwhile "
        "only if the program needs most of it; here it can take longer than the accesses do."
    ),
    c=N_(
        "Call madvise(MADV_WILLNEED) for the ranges that are touched next, or pread the records from "
        "several threads; MADV_RANDOM keeps the kernel from reading the pages around each touch."
    ),
    cpp=N_(
        "Call madvise(MADV_WILLNEED) for the ranges that are touched next, or pread the records from "
        "several threads; MADV_RANDOM keeps the kernel from reading the pages around each touch."
    ),
    python=N_("Sort the indices before they are taken from numpy.memmap: array[np.sort(chosen)]."),
)
_QUERY = """SELECT f.name AS file, count(*) AS faults, count(*) FILTER (WHERE x.is_major) AS waited,
  count(DISTINCT x.offset_bytes) AS pages, min(x.ts) AS first_ts, max(x.ts) AS last_ts
FROM faults x JOIN files f ON f.file_id = x.file_id GROUP BY f.name ORDER BY waited DESC"""

RULE = Rule(
    name="mmap-random",
    title=N_("Random access through a memory map"),
    looks_for=N_(
        "Files that are mapped into memory and accessed in random order, with a page fault for each access."
    ),
    why=N_(
        "Each page fault reads 4 KiB or a little more from the disk or server while the program waits, and "
        "no system call shows it."
    ),
    advice=advise(
        any=N_("Read the file into memory once with large reads if it fits, or touch it in rising order."),
        c=N_(
            "Tell the kernel how the map is used: madvise(MADV_WILLNEED), or map with MAP_POPULATE if all "
            "of it is needed and fits into memory."
        ),
        python=N_("Use numpy.fromfile in place of numpy.memmap where the array fits into memory."),
    ),
    fine_when=N_("The file stays in memory between the accesses, or only a few pages of it are needed."),
    settings=Settings,
    find=find,
    views=("data_files",),
    needs=(Need.PAGE_FAULTS,),
    case="mmap-viewer",
)
