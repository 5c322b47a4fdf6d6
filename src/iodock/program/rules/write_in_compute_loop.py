"""Finds small writes throughout a long computation, such as debug output that was not removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.relations.run_facts import MOMENTS
from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar

COARSE = 8
"""Number of the profile's moments that are combined into one interval here."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `write-in-compute-loop`."""

    most_bytes: int = 2048
    "Maximum mean size of a write: a buffer that is full when it is written holds 4 KiB or more."
    least_spread: float = 0.7
    """Share of the intervals from the first write to the last in which the process must have written. On a
    busy machine it sometimes pauses: an interval is 1/30 of the run."""
    least_compute: float = 0.7
    """Minimum share of computing in the time that the process spends on computing and I/O in that period.
    With less, the calls are the problem."""
    least_named_compute: float = 0.15
    "The same threshold for a file whose name suggests a program's log or trace."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all files into which processes that mainly compute write small pieces
    throughout their run."""
    faults = Faults(facts.rows(_sql(facts, settings)))
    count = faults.total("count")
    if not faults or not costs.worth_a_word(facts, faults.time_ns, count):
        return
    values: dict[str, Scalar] = {
        "count": count,
        "mean_bytes": faults.total("bytes") / count,
        "pause_ns": faults.total("pause_ns") // count,
        "files": faults.file_count,
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=faults.time_ns,
        evidence={"count": count, "time_ns": faults.time_ns, "bytes": faults.total("bytes"), **values},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="write",
        confidence=0.6,
        gain=costs.CALLS_GO,
        pieces=Pieces.CALLS,
    )


# The cost is based on the typical time, so that a few writes that waited or were interrupted do not make all
# of them look expensive. Other calls count only if they happen while the file is written, because other steps
# of the run are separate. A pause that is not longer than the time that tracing adds to a call does not count
# as computing.
def _sql(facts: Facts, settings: Settings) -> str:
    first, step = facts.store.manifest.first_ts or 0, max(1, (facts.wall_ns or 0) // MOMENTS)
    return f"""WITH chosen AS (SELECT w.*, (w.first_ts - {first}) // {step} AS since,
    (w.last_ts - {first}) // {step} AS until FROM file_work w
  WHERE w.written_bytes BETWEEN 1 AND {settings.most_bytes} * w.writes AND w.file_id IN (FROM plain_files)),
busy AS (SELECT w.upid, w.file_id, sum(m.time_ns) AS io_ns, {facts.added_ns} * sum(m.count) AS tracing_ns,
    count(DISTINCT m.moment // {COARSE}) FILTER (WHERE m.direction = 2)
      / (any_value(w.until // {COARSE} - w.since // {COARSE}) + 1) AS spread
  FROM chosen w JOIN moments m ON m.actor = w.upid + 1 AND m.moment BETWEEN w.since AND w.until
  GROUP BY w.upid, w.file_id),
seen AS (SELECT w.*, b.spread, b.tracing_ns, greatest(0, b.io_ns - b.tracing_ns) AS untraced_ns, least((SELECT
      sum(cpu_user_ns) FROM processes p WHERE p.upid = w.upid),
    greatest(0, w.last_ts - w.first_ts - b.io_ns - b.tracing_ns)) AS pause_ns
  FROM chosen w JOIN busy b ON b.upid = w.upid AND b.file_id = w.file_id),
typical AS (SELECT place, coalesce(sum(typical_ns) / nullif(sum(time_ns), 0), 1) AS typical FROM transfers
  WHERE direction = 2 GROUP BY place)
SELECT p.name, count(DISTINCT w.file_id) AS file_count, CAST(sum(w.writes) AS BIGINT) AS count,
  CAST(sum(w.written_bytes) AS BIGINT) AS bytes, CAST(sum(w.pause_ns) AS BIGINT) AS pause_ns,
  CAST(sum(w.write_ns) * least(1, {facts.stretch} * any_value(y.typical)) AS BIGINT) AS time_ns
FROM seen w JOIN places p ON p.file_id = w.file_id JOIN typical y ON y.place = p.place
WHERE w.spread >= {settings.least_spread} AND w.pause_ns >= w.tracing_ns
  AND w.pause_ns >= (w.pause_ns + w.untraced_ns) * CASE WHEN regexp_matches(lower(p.name), '{_DEBUG}')
    THEN {settings.least_named_compute} ELSE {settings.least_compute} END
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


_DEBUG = r"(debug|dbg|verbose|residual|(^|[^a-z])(log|trace|diag|progress|monitor)s?([^a-z/]|$))[^/]*$"
_QUERY = """SELECT file, pid, count(*) AS writes, avg(bytes) AS mean_bytes, sum(dur) AS time_ns,
  min(ts) AS first_ts, max(ts) AS last_ts
FROM call_ends WHERE direction = 'write' AND kind IN ('file', 'regular') GROUP BY file, pid
ORDER BY writes DESC"""
_MESSAGE = N_(
    "{count} writes of {mean_bytes} on average throughout the computation, one after each {pause_ns} of "
    "computing; files: {files}"
)

RULE = Rule(
    name="write-in-compute-loop",
    title=N_("Small writes throughout the computation"),
    looks_for=N_("Processes that mainly compute, and write a little again and again from beginning to end."),
    why=N_(
        "This is often debug output that was left in. Each write stops the computation, and on a busy "
        "network file system for much longer than here."
    ),
    advice=advise(
        any=N_(
            "Results: collect them and write them in large requests, after the inner loop. Debug "
            "output only: leave it out, or write every thousandth step."
        ),
        c=N_(
            "Remove the fflush after each line and let a buffer of 1 MiB (setvbuf) collect them; put debug "
            "output into #ifdef DEBUG."
        ),
        cpp=N_("Write '\\n' in place of std::endl; debug output only in a debug build."),
        fortran=N_(
            "Remove WRITE and FLUSH from the inner loop, or collect the values in an array and write it once."
        ),
        python=N_(
            "Collect rows in a list and write them once; drop flush=True. For debug output raise the logging "
            "level."
        ),
        shell=N_("Redirect the loop as a whole, and print only what is needed."),
    ),
    fine_when=N_("Someone watches the progress, and the cost is small."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS, Need.TIMES),
    one_direction=True,
    views=("file_work", "places", "transfers", "moments", "plain_files"),
    yields_to=(
        *("open-close-loop", "sync-heavy", "synchronous-flags", "shared-file-contention"),
        "stdout-unbuffered",  # the same writes, with advice that keeps the lines but buffers them
    ),
    case="debug-output",
)
