"""Finds files opened with O_SYNC or O_DSYNC, in which each write waits for the disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message

O_DSYNC = 0o10000
"""Value of the flag on Linux. O_SYNC contains its bit."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `synchronous-flags`."""

    least_count: int = 20
    "Number of writes, in all such files together, below which nothing is reported."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all files that were written and had been opened with such a flag."""
    faults = Faults(facts.rows(_sql(bool(facts.rows(_HAS_FLAGGED)))))
    count, moved = faults.total("count"), faults.total("bytes")
    cost = costs.beyond_large(faults.time_ns, count, moved, 2)
    if count < settings.least_count or not costs.worth_a_word(facts, cost, count):
        return
    values = {"count": count, "written_bytes": moved, "files": faults.file_count}
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=cost,
        evidence={"count": count, "bytes": moved, "time_ns": faults.time_ns},
        query=_QUERY,
        **faults.where,
        placed_by="open",
        confidence=0.9,
        gain=(0.4, 1.0),
    )


# pwritev2 takes flags for each write, so only runs with such calls are searched for these flags.
_HAS_FLAGGED = """SELECT 1 FROM uses WHERE direction = 2 AND call_id IN
  (SELECT id FROM calls WHERE name IN ('pwritev2', 'pwritev64v2')) LIMIT 1"""


# If the file of a write is a folder, the write goes into a file without a name that was created in that
# folder (O_TMPFILE).
def _sql(has_flagged: bool) -> str:
    flagged = f"""UNION ALL SELECT file_id, call_id, count(*), sum(coalesce(dur, sys_cpu_ns)), sum(bytes)
    FROM events WHERE direction = 2 AND errno_id IS NULL AND flags & {O_DSYNC} <> 0
      AND file_id NOT IN (FROM opened)
    GROUP BY ALL"""
    return f"""WITH opened AS (SELECT file_id FROM opens
  WHERE errno_id IS NULL AND file_id IS NOT NULL AND flags & {O_DSYNC} <> 0),
synced AS (SELECT file_id, call_id, count, time_ns, bytes FROM uses
    WHERE direction = 2 AND file_id IN (FROM opened)
  {flagged if has_flagged else ""})
SELECT p.name, any_value(p.file_count) AS file_count, arg_max(c.name, u.count) AS call,
  CAST(sum(u.count) AS BIGINT) AS count, CAST(sum(u.time_ns) AS BIGINT) AS time_ns,
  CAST(coalesce(sum(u.bytes), 0) AS BIGINT) AS bytes
FROM synced u JOIN places l ON l.file_id = u.file_id JOIN place_names p ON p.place = l.place
  JOIN calls c ON c.id = u.call_id
WHERE p.place IN (FROM plain_places) OR {costs.descriptors("p")} OR p.kind = 'directory'
GROUP BY p.place, p.name
ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


_QUERY = f"""SELECT f.name AS file, count(*) AS writes, avg(e.bytes) AS mean_bytes, sum(e.dur) AS time_ns
FROM events e JOIN files f ON f.file_id = e.file_id WHERE e.direction = 2 AND (e.flags & {O_DSYNC} <> 0
  OR e.file_id IN (SELECT file_id FROM events WHERE direction = 0 AND flags & {O_DSYNC} <> 0))
GROUP BY f.name ORDER BY time_ns DESC"""
_MESSAGE = N_(
    "{count} writes ({written_bytes}) with O_SYNC or O_DSYNC, where each waits for the disk; files: {files}"
)

RULE = Rule(
    name="synchronous-flags",
    title=N_("Every write waits for the disk"),
    looks_for=N_(
        "Files that are opened with O_SYNC or O_DSYNC, or written with RWF_SYNC or RWF_DSYNC, in many calls."
    ),
    why=N_(
        "Each write returns only when the disk or server has the data: milliseconds in place of microseconds."
    ),
    advice=advise(
        any=N_("Open without O_SYNC and O_DSYNC, and call fsync once where the data must be safe."),
        c=N_("Take O_SYNC or O_DSYNC out of open(), write through a buffer, and call fsync(fd) at the end."),
        python=N_("Take os.O_SYNC out of os.open, and call f.flush() and os.fsync(f.fileno()) at the end."),
        shell=N_("Use `dd conv=fsync`, which waits once, in place of `dd oflag=sync` or `oflag=dsync`."),
        administrator=N_("Check whether the file system is mounted or exported with the option `sync`."),
    ),
    fine_when=N_("Each record must survive a crash by itself, as in the log of a database."),
    settings=Settings,
    find=find,
    needs=(Need.FLAGS,),
    views=("uses", "opens", "places", "place_names", "plain_places"),
    case="sync",
)
