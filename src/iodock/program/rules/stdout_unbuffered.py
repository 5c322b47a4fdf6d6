"""Finds programs that write lines one by one to standard output or standard error, if these are redirected
to a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `stdout-unbuffered`."""

    below_bytes: int = 512
    "Size below which writes count as line by line."
    least_count: int = 1000
    "Number of such writes below which nothing is reported."
    least_share: float = 0.5
    "Minimum share of a stream's writes that are this small."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all files to which standard output or standard error is redirected and that
    are written line by line."""
    faults = Faults(facts.rows(_sql(settings, _duplicates(facts))))
    count, moved = faults.total("count"), faults.total("bytes")
    cost = costs.beyond_large(facts.typical(faults.sum_of("typical_ns"), faults.time_ns), count, moved, 2)
    if not faults or not costs.worth_a_word(facts, cost, count):
        return
    certain = all(row["kind"] != "standard" for row in faults.rows)
    values = {"count": count, "mean_bytes": moved / count, "files": faults.file_count}
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=cost,
        evidence={"count": count, "bytes": moved, "time_ns": faults.time_ns},
        query=_query(settings),
        **faults.where,
        confidence=0.9 if certain else 0.6,
        gain=costs.CALLS_GO,
        pieces=Pieces.CALLS,
    )


def _duplicates(facts: Facts) -> list[int]:
    """Returns the files to which copies of descriptors 1 and 2 lead (dup). This reads all events, which is
    expensive, so it is done only if the run duplicated any descriptor."""
    calls = "(SELECT id FROM calls WHERE family = 'dup')"
    if not facts.rows(f"SELECT 1 FROM uses WHERE call_id IN {calls} AND file_id IS NOT NULL LIMIT 1"):
        return []
    rows = facts.rows(
        f"""SELECT DISTINCT file_id FROM events
WHERE call_id IN {calls} AND fd IN (1, 2) AND file_id IS NOT NULL ORDER BY file_id"""
    )
    return [int(row["file_id"]) for row in rows]


# The SQL leaves out dd, which also writes to descriptor 1, but in sizes that the user chose. The target of a
# stream is not always known (kind "standard"). It may be a terminal, to which lines must be written one by
# one, but then there are few.
def _sql(settings: Settings, duplicates: Sequence[int]) -> str:
    small = f"e.bytes > 0 AND e.bytes < {settings.below_bytes}"
    time = "coalesce(e.dur, e.sys_cpu_ns)"
    leads_there = f"OR e.file_id IN ({', '.join(map(str, duplicates))})" if duplicates else ""
    return f"""SELECT f.name, f.kind, arg_max(c.name, e.bytes) AS call,
  count(*) FILTER (WHERE {small}) AS count,
  CAST(sum({time}) FILTER (WHERE {small}) AS BIGINT) AS time_ns,
  CAST(count(*) FILTER (WHERE {small}) * exp(avg(ln({time} + 1)) FILTER (WHERE {small})) AS BIGINT)
    AS typical_ns,
  CAST(sum(e.bytes) FILTER (WHERE {small}) AS BIGINT) AS bytes
FROM events e JOIN files f ON f.file_id = e.file_id JOIN calls c ON c.id = e.call_id
  JOIN processes q ON q.utid = e.utid LEFT JOIN programs g ON g.upid = q.upid
WHERE e.direction = 2 AND (e.fd IN (1, 2) {leads_there})
  AND NOT coalesce(suffix(g.program, '/dd'), false) AND (
  f.file_id IN (FROM plain_files) OR f.kind = 'standard')
GROUP BY f.file_id, f.name, f.kind
HAVING count(*) FILTER (WHERE {small}) >= greatest({settings.least_count}, {settings.least_share} * count(*))
ORDER BY typical_ns DESC NULLS LAST, count DESC, f.name"""


def _query(settings: Settings) -> str:
    return f"""SELECT file, pid, fd, count(*) AS writes, avg(bytes) AS mean_bytes, sum(dur) AS time_ns
FROM call_ends WHERE direction = 'write' AND fd IN (1, 2) AND bytes < {settings.below_bytes}
GROUP BY file, pid, fd ORDER BY writes DESC"""


_MESSAGE = N_(
    "{count} writes of {mean_bytes} on average to standard output or error, which are redirected to a "
    "file; files: {files}"
)

RULE = Rule(
    name="stdout-unbuffered",
    title=N_("Output is written line by line"),
    looks_for=N_(
        "Standard output or error that is redirected to a file and written in pieces of a line or less."
    ),
    why=N_("Each line costs a system call, where a buffer would write thousands of lines with one."),
    advice=advise(
        any=N_("Let the output be buffered; `stdbuf -o64K PROGRAM` does it from outside for C programs."),
        c=N_(
            "Call setvbuf(stdout, NULL, _IOFBF, 1 << 20) first, and leave out fflush(stdout) after each "
            "line; don't write much to stderr, which has no buffer."
        ),
        cpp=N_(
            "Write '\\n' in place of std::endl, leave std::unitbuf out, and use std::clog in place of "
            "std::cerr."
        ),
        fortran=N_("Leave out FLUSH(6) in the loop, and unset GFORTRAN_UNBUFFERED_ALL."),
        python=N_(
            "Leave out python -u, PYTHONUNBUFFERED and print(..., flush=True); join lines before printing."
        ),
        shell=N_("Replace the loop of echo or printf by one awk or printf command that writes all lines."),
    ),
    fine_when=N_("A user watches the output while it grows, or the lines must survive a crash."),
    settings=Settings,
    find=find,
    one_direction=True,
    views=("programs", "uses", "plain_files"),
    yields_to=("synchronous-flags",),
    case="printf-lines",
)
