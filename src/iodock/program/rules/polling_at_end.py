"""Finds reads that return no data, because a program repeatedly checks whether a file has grown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `polling-at-end`."""

    least_count: int = 1000
    """Number of empty reads below which nothing is reported: one per second does no harm."""
    least_share: float = 0.5
    """Minimum share of the reads of a file (or file pattern) that return nothing."""
    free_per_open: int = 2
    "Number of reads that return nothing for each open: one finds the end, and libraries often repeat it."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all places where most reads return no data."""
    faults = Faults(facts.rows(_sql(settings)))
    count, cost = faults.total("count"), faults.time_ns
    if count < settings.least_count or not costs.worth_a_word(facts, cost, count):
        return
    reads = faults.total("reads")
    yield Candidate(
        message=Message(_MESSAGE, {"count": count, "reads": reads, "files": faults.file_count}),
        count=count,
        time_ns=cost,
        evidence={"count": count, "reads": reads, "time_ns": cost},
        query=_QUERY,
        **faults.where,
        confidence=0.9,
        gain=_GAIN,
    )


_GAIN = (0.0, 1.0)
"""Gain of the change. There is none if the program must wait for its data anyway, but the CPU and the server
are relieved."""


# A stream of the C library can read at its end again only after a seek, so the cost includes one seek for
# each empty read.
def _sql(settings: Settings) -> str:
    return f"""WITH empty AS (SELECT t.place, sum(t.count) AS reads, arg_max(c.name, t.count) AS call,
    sum(t.count) FILTER (WHERE t.size_bin = -1) AS nothing,
    sum(t.time_ns) FILTER (WHERE t.size_bin = -1) AS time_ns
  FROM transfers t JOIN calls c ON c.id = t.call_id WHERE t.direction = 1 GROUP BY t.place),
opened AS (SELECT l.place, sum(u.count) AS opens FROM uses u JOIN places l ON l.file_id = u.file_id
    JOIN calls c ON c.id = u.call_id
  WHERE c.family = 'open' AND u.errno_id IS NULL GROUP BY l.place),
sought AS (SELECT l.place, sum(u.count) AS count, sum(u.time_ns) AS time_ns FROM uses u
    JOIN calls c ON c.id = u.call_id JOIN places l ON l.file_id = u.file_id
  WHERE c.class = 'seek' AND u.errno_id IS NULL GROUP BY l.place),
counted AS (SELECT e.*,
    coalesce(s.time_ns / s.count * least(s.count * e.nothing / e.reads, e.nothing), 0) AS seeking_ns,
    e.nothing - {settings.free_per_open} * greatest(coalesce(o.opens, 0), 1) AS needless
  FROM empty e LEFT JOIN opened o ON o.place = e.place LEFT JOIN sought s ON s.place = e.place)
SELECT p.name, p.file_count, n.call, CAST(n.reads AS BIGINT) AS reads, CAST(n.needless AS BIGINT) AS count,
  CAST((n.time_ns + n.seeking_ns) * (n.needless / n.nothing) AS BIGINT) AS time_ns
FROM counted n JOIN place_names p ON p.place = n.place
WHERE p.place IN (FROM plain_places) AND n.needless > 0 AND n.needless >= {settings.least_share} * n.reads
ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


_QUERY = """SELECT file, pid, count(*) AS reads, count(*) FILTER (WHERE bytes = 0) AS of_nothing,
  sum(dur) FILTER (WHERE bytes = 0) AS time_ns
FROM call_ends WHERE direction = 'read' GROUP BY file, pid HAVING of_nothing > 0 ORDER BY of_nothing DESC"""
_MESSAGE = N_("{count} of {reads} reads were at the end of a file and found nothing; files: {files}")

RULE = Rule(
    name="polling-at-end",
    title=N_("Reads at the end of a file, again and again"),
    looks_for=N_("Files that are mostly read at their end, to check whether they have grown."),
    why=N_(
        "Each such read is a system call without a result and uses CPU time. On a network or parallel file"
        " system it may also send a request to the server each time, which then has less time for others."
    ),
    advice=advise(
        any=N_(
            "Wait between the reads, a second or so; or let the writer hand its data over through a pipe or "
            "socket, where a read waits until there is something."
        ),
        c=N_(
            "On a local file system wait with inotify: a read of its descriptor returns when the file grows."
        ),
        python=N_("Call time.sleep(1) after a readline() that returned nothing."),
        shell=N_("Use `tail -f`, which waits with inotify, instead of a loop around `read`."),
    ),
    fine_when=N_("The program must see each new line within less than a millisecond."),
    settings=Settings,
    find=find,
    views=("transfers", "place_names", "places", "uses", "plain_places"),
)
