"""Small writes all through a long computation: debug output left in."""

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
"""Moments of the profile that are one here."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `write-in-compute-loop`."""

    least_count: int = 200
    """Fewer writes to a file than this are not worth a word."""
    most_bytes: int = 2048
    """A write's size on average: a buffer that is full when it is written holds 4 KiB or more."""
    least_span: float = 0.15
    """Of the process's life over which the writes must be spread: the computation may be one of several
    steps."""
    least_spread: float = 0.7
    """Share of the moments in that span in which the process must have written. On a busy machine it stands
    still now and then: a moment is 1/30 of the run."""
    least_pause_ns: int = 50000
    """Computing between two writes on average: with less, the program only writes."""
    least_source_pause_ns: int = 3000
    """The same if the process reads less than it writes there: it is no filter, it computes what it
    writes."""
    least_named_pause_ns: int = 400
    """The same for files whose names say that they hold a program's log or trace, if it reads less than it
    writes there: what it takes to format a line in C, and little more than that."""
    least_compute: float = 0.5
    """Computing as a share of computing and I/O of the process, while it writes so."""
    least_named_compute: float = 0.15
    """The same for files with such names: a slow disk makes the share small, but the lines no more needed."""
    least_debug_pause_ns: int = 200
    """`least_named_pause_ns` where the name says debug output in so many words: there, any pause is
    enough."""
    least_debug_compute: float = 0.1
    """`least_compute` for files with such names."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: all files that are written so, by processes that mainly compute."""
    faults = _faults(facts, settings)
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


def _faults(facts: Facts, settings: Settings) -> Faults:
    # Going through all calls for the moments is dear: only where there are such writes at all.
    if not facts.rows(f"SELECT 1 FROM file_work w WHERE {_small_writes(settings)} LIMIT 1"):
        return Faults([])
    return Faults(facts.rows(_sql(facts, settings)))


def _small_writes(settings: Settings) -> str:
    return f"""w.writes >= {settings.least_count} AND w.written_bytes <= {settings.most_bytes} * w.writes
    AND w.opens * 10 <= w.writes"""


# Charged is typical time: a few writes that waited, or were interrupted, don't make all of them dear.
# Of other calls those count that fell into the time of the writes: another step of the run is no part of it.
# What tracing adds to a call is no computing: it varies tenfold with where recorder and program run, which
# CPU time does not; as much as between two calls is in their durations. Without CPU times, computing must at
# least outweigh all that tracing adds between the calls.
def _sql(facts: Facts, settings: Settings) -> str:
    wall = facts.wall_ns or 0
    first = facts.store.manifest.first_ts or 0
    step = max(1, wall // MOMENTS)
    return f"""WITH lives AS (SELECT upid, min(start_ts) AS start_ts, max(end_ts) AS end_ts,
  CAST(sum(cpu_user_ns) AS BIGINT) AS cpu_ns FROM processes GROUP BY upid),
chosen AS (SELECT w.* FROM file_work w JOIN files f ON f.file_id = w.file_id
  WHERE {_small_writes(settings)} AND f.file_id IN (FROM plain_files)),
busy AS (SELECT w.upid, w.file_id, sum(m.time_ns) AS io_ns, {facts.added_ns} * sum(m.count) AS tracing_ns,
    coalesce(sum(m.bytes) FILTER (WHERE m.direction = 1), 0) AS read_bytes,
    count(DISTINCT m.moment // {COARSE}) FILTER (WHERE m.direction = 2) AS moments
  FROM chosen w JOIN moments m ON m.actor = w.upid + 1
  WHERE m.moment BETWEEN (w.first_ts - {first}) // {step} AND (w.last_ts - {first}) // {step}
  GROUP BY w.upid, w.file_id),
seen AS (SELECT w.*, coalesce(l.end_ts, {first + wall}) - coalesce(l.start_ts, {first}) AS life,
    b.io_ns + b.tracing_ns AS stopped_ns, b.io_ns - least(b.io_ns, b.tracing_ns) AS untraced_ns,
    b.tracing_ns, b.moments, w.last_ts - w.first_ts AS span, l.cpu_ns,
    b.read_bytes <= w.written_bytes AS is_source,
    regexp_matches(lower(f.name), '{_DEBUG}') AND is_source AS is_named,
    regexp_matches(lower(f.name), '{_SAYS_DEBUG}') AS is_debug,
    CASE WHEN is_debug THEN {settings.least_debug_pause_ns} WHEN is_named THEN {settings.least_named_pause_ns}
      WHEN is_source THEN {settings.least_source_pause_ns} ELSE {settings.least_pause_ns} END AS least_pause,
    CASE WHEN is_debug THEN {settings.least_debug_compute} WHEN is_named THEN {settings.least_named_compute}
      ELSE {settings.least_compute} END AS least_compute
  FROM chosen w JOIN files f ON f.file_id = w.file_id JOIN lives l ON l.upid = w.upid
    JOIN busy b ON b.upid = w.upid AND b.file_id = w.file_id),
typical AS (SELECT place, coalesce(sum(typical_ns) / nullif(sum(time_ns), 0), 1) AS typical FROM transfers
  WHERE direction = 2 GROUP BY place),
found AS (SELECT *, least(span - least(span, stopped_ns), cpu_ns) AS between_ns FROM seen)
SELECT p.name, count(DISTINCT w.file_id) AS file_count, CAST(sum(w.writes) AS BIGINT) AS count,
  CAST(sum(w.written_bytes) AS BIGINT) AS bytes,
  CAST(sum(w.write_ns) * least(1, {facts.stretch} * any_value(y.typical)) AS BIGINT) AS time_ns,
  CAST(sum(w.between_ns) AS BIGINT) AS pause_ns
FROM found w JOIN places p ON p.file_id = w.file_id JOIN typical y ON y.place = p.place
WHERE w.span >= {settings.least_span} * w.life
  AND w.between_ns >= w.least_compute * (w.between_ns + w.untraced_ns)
  AND w.between_ns >= w.writes * w.least_pause AND (w.cpu_ns > 0 OR w.between_ns >= w.tracing_ns)
  AND w.moments >= {settings.least_spread} * least(w.writes, {MOMENTS // COARSE} * w.span / {max(1, wall)})
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


_DEBUG = r"(debug|dbg|verbose|residual|(^|[^a-z])(log|trace|diag|progress|monitor)s?([^a-z/]|$))[^/]*$"
_SAYS_DEBUG = r"(debug|dbg|verbose)[^/]*$"
_QUERY = """SELECT file, pid, count(*) AS writes, avg(bytes) AS mean_bytes, sum(dur) AS time_ns,
  min(ts) AS first_ts, max(ts) AS last_ts
FROM call_ends WHERE direction = 'write' AND kind IN ('file', 'regular') GROUP BY file, pid
ORDER BY writes DESC"""
_MESSAGE = N_(
    "{count} writes of {mean_bytes} on average went on all through the computation, one after each "
    "{pause_ns} of computing; files: {files}"
)

RULE = Rule(
    name="write-in-compute-loop",
    title=N_("Small writes all through the computation"),
    looks_for=N_("Processes that mainly compute, and write a little again and again from beginning to end."),
    why=N_(
        "It is often debug output that was left in. Each write stops the computation, and on a busy "
        "network file system for much longer than here."
    ),
    advice=advise(
        any=N_(
            "Results: collect them and write them in large pieces, after the inner loop. Debug output only: "
            "leave it out, or write each thousandth step."
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
    views=("file_work", "places", "transfers", "moments", "plain_files"),
    yields_to=(
        *("open-close-loop", "sync-heavy", "synchronous-flags", "shared-file-contention"),
        "stdout-unbuffered",  # the same writes, and how to keep the lines at no cost
    ),
    case="debug-output",
)
