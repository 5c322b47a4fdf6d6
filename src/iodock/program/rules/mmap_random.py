"""Maps of files that are gone through at random: a wait for each touch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.relations import faults
from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `mmap-random`."""

    least_faults: int = 50
    """Fewer page faults that waited than this, in all such files together, are not worth a word."""
    most_near: float = 0.3
    """Share of a file's faults that may lie just behind the one before: with more it is read in order."""
    least_back: float = 0.2
    """Share of a file's faults that must step back, or so many fewer (`least_returns`)."""
    least_returns: float = 4
    """How often the steps back together lead over the whole file, where fewer do: pieces that are touched in
    rising order begin anywhere."""
    least_touched: float = 0.5
    """Share of the files that must be touched for reading all of it to be advised: in order it comes faster,
    but not many times as fast."""
    least_bytes: int = 67108864
    """Smaller files, all such together, are in memory after a moment, whatever the order."""


FEW = 8
"""Fewer page faults of a file that waited show no order."""
LONGEST_WAIT_NS = 20_000_000
"""What lies further apart was computing, not waiting for one page."""
FEW_BACK = 0.03
"""With fewer steps back than this share the file is gone through in order, if often."""
BYTES_PER_S = 1_000_000_000
"""At which the file could be read in order."""
AHEAD = 4
"""So much faster, at least, go touches that are announced or made side by side."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: all files whose maps are touched at random, with waits."""
    found = Faults(facts.rows(_sql(settings)))
    touched = found.total("touched_bytes") / max(1, found.total("extent"))
    is_most = touched >= settings.least_touched
    count, cost = found.total("count"), _cost(found, is_most)
    if (
        count < settings.least_faults
        or found.total("extent") < settings.least_bytes
        or not costs.worth_a_word(facts, cost, count)
    ):
        return
    back = found.total("back") / max(1, found.total("steps"))
    yield Candidate(
        message=Message(
            _MESSAGE,
            {
                "count": count,
                "touched_bytes": found.total("touched_bytes"),
                "touched_share": min(1.0, touched),
                "back_share": back,
                "files": found.file_count,
            },
        ),
        count=count,
        time_ns=cost,
        # Page faults are no calls.
        work_ns=cost,
        evidence={
            "count": count,
            "faults": found.total("faults"),
            "back": found.total("back"),
            "touched_bytes": found.total("touched_bytes"),
            "size_bytes": found.total("size_bytes"),
            "waited_ns": found.total("waited_ns"),
        },
        query=_QUERY,
        files=found.files,
        file_count=found.file_count,
        confidence=0.5,
        gain=(0.3, 0.9),
        advice=None if is_most else _FEW_TOUCHED,
    )


def _cost(found: Faults, is_most: bool) -> int:
    """What announcing the touches, or where most is touched reading in order, would save; ns, summed over
    tasks."""
    saved = 0.0
    for row in found.rows:
        waited = int(row["waited_ns"] or 0)
        in_order = int(row["extent"]) / BYTES_PER_S * 1e9 if is_most else waited
        needed = min(in_order, waited / AHEAD)
        saved += max(0.0, waited - needed)
    return round(saved)


def _sql(settings: Settings) -> str:
    # A fault is noted when its page is there, so up to the task's fault before lies the wait for it, and what
    # the task computed. What it can't have waited: its CPU time, and the time in calls.
    near = f"count(*) FILTER (WHERE {faults.NEAR})"
    back = "count(*) FILTER (WHERE step < 0)"
    returned = "-sum(step) FILTER (WHERE step < 0)"
    return f"""WITH stepped AS (SELECT *, ts - lag(ts) OVER (PARTITION BY utid ORDER BY ts) AS pause
  FROM ({faults.steps(where="WHERE is_major IS NOT NULL")})),
chosen AS (SELECT s.file_id FROM stepped s JOIN files f ON f.file_id = s.file_id
  WHERE f.file_id IN (FROM data_files)
  GROUP BY s.file_id, f.size_bytes HAVING count(*) FILTER (WHERE is_major) >= {FEW}
    AND {near} <= {settings.most_near} * count(step)
    AND ({back} >= {settings.least_back} * count(step) OR {back} >= {FEW_BACK} * count(step)
      AND {returned} >= {settings.least_returns} * coalesce(f.size_bytes, max(s.offset_bytes)))),
waits AS (SELECT s.file_id, s.utid, sum(least(s.pause, {LONGEST_WAIT_NS})) AS ns FROM stepped s
  WHERE s.is_major AND s.file_id IN (SELECT file_id FROM chosen) GROUP BY ALL),
idle AS (SELECT w.utid, sum(w.ns) AS ns, any_value(p.end_ts - p.start_ts - p.cpu_user_ns - p.cpu_system_ns
    - coalesce(p.io_ns, 0) - coalesce(p.waiting_ns, 0)) AS most
  FROM waits w JOIN processes p ON p.utid = w.utid GROUP BY 1),
waited AS (SELECT w.file_id,
    sum(w.ns * least(1.0, greatest(0, coalesce(i.most, i.ns)) / greatest(i.ns, 1))) AS ns
  FROM waits w JOIN idle i ON i.utid = w.utid GROUP BY 1)
SELECT f.name, 1 AS file_count, count(*) FILTER (WHERE s.is_major) AS count, count(*) AS faults,
  count(s.step) AS steps, count(*) FILTER (WHERE s.step < 0) AS back,
  count(DISTINCT s.offset_bytes) * {faults.PAGE_BYTES} AS touched_bytes, f.size_bytes,
  coalesce(f.size_bytes, max(s.offset_bytes)) AS extent,
  CAST(any_value(w.ns) AS BIGINT) AS waited_ns
FROM stepped s JOIN files f ON f.file_id = s.file_id JOIN waited w ON w.file_id = s.file_id
GROUP BY f.file_id, f.name, f.size_bytes ORDER BY waited_ns DESC, f.name"""


_MESSAGE = N_(
    "{count} page faults in mapped files had to wait for their page, and {back_share} of the faults step "
    "back in the file; pages touched: {touched_bytes}, {touched_share} of the files; files: {files}"
)
_FEW_TOUCHED = advise(
    any=N_(
        "Touch the file in rising order, or announce the next touches. Reading all of it pays only if the "
        "program needs most of it; here it can take longer than the touches do."
    ),
    c=N_(
        "Call madvise(MADV_WILLNEED) for the ranges that are touched next, or pread the records from several "
        "threads; MADV_RANDOM keeps the kernel from reading what lies around each touch."
    ),
    cpp=N_(
        "Call madvise(MADV_WILLNEED) for the ranges that are touched next, or pread the records from several "
        "threads; MADV_RANDOM keeps the kernel from reading what lies around each touch."
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
        "Files that are mapped into memory and touched to and fro, with a page fault for each touch."
    ),
    why=N_(
        "Each page fault reads 4 KiB or a little more from the disk or server while the program waits, and "
        "no system call shows it."
    ),
    advice=advise(
        any=N_("Read the file into memory once with large reads if it fits, or touch it in rising order."),
        c=N_(
            "Say how the map is used: madvise(MADV_WILLNEED), or map with MAP_POPULATE where all of it is "
            "needed and fits into memory."
        ),
        python=N_("Use numpy.fromfile in place of numpy.memmap where the array fits into memory."),
    ),
    fine_when=N_("The file stays in memory between the touches, or only a few pages of it are needed."),
    settings=Settings,
    find=find,
    views=("data_files",),
    needs=(Need.PAGE_FAULTS,),
    case="mmap-viewer",
)
