"""Processes hand data to each other through pipes in small pieces, and wait for each piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.findings import Message, Scalar
from iodock.language import N_
from iodock.rules.base import Candidate, Facts, Need, Rule, advise


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `pipe-bound`."""

    least_count: int = 500
    """Fewer reads and writes of pipes than this are not worth a word."""
    most_bytes: int = 2048
    """Their size on average; tools that use a buffer pass 4 KiB and more."""
    least_share: float = 0.3
    """Of the wall time in which something waited for a pipe and nothing did other I/O."""
    least_per_second: float = 100.0
    """Reads and writes a second: fewer mean that someone computes, and the pipe only shows it."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: all pipes between processes of the run that are used in small pieces."""
    row = facts.one(_SQL)
    waited = facts.overview.get("waiting_time_ns")
    if not row or row["count"] is None or not waited or not facts.wall_ns:
        return
    count, moved = int(row["count"]), int(row["bytes"] or 0)
    if count < settings.least_count or count < settings.least_per_second * facts.wall_ns / 1e9:
        return
    if moved > settings.most_bytes * count or waited < settings.least_share * facts.wall_ns:
        return
    values: dict[str, Scalar] = {
        "count": count,
        "mean_bytes": moved / count,
        "processes": int(row["processes"]),
        "waiting_share": waited / facts.wall_ns,
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=row["time_ns"],
        evidence={"count": count, "bytes": moved, "time_ns": row["time_ns"], "waiting_ns": waited, **values},
        query=_QUERY,
        call="read",
        confidence=0.5,
        wall_seconds=waited / 1e9,
        gain=(0.25, 0.75),
    )


# A pipe of which only one end is seen leads out of the run: whoever is there is not ours to judge.
_SQL = """WITH used AS (SELECT u.file_id, p.upid, u.direction, sum(u.count) AS count,
    sum(u.bytes) AS bytes, sum(u.time_ns) AS time_ns
  FROM uses u JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid
  WHERE f.kind IN ('pipe', 'fifo') AND u.direction IN (1, 2) GROUP BY ALL)
SELECT CAST(sum(count) AS BIGINT) AS count, CAST(sum(bytes) AS BIGINT) AS bytes,
  CAST(sum(time_ns) AS BIGINT) AS time_ns, count(DISTINCT upid) AS processes
FROM used WHERE file_id IN (SELECT file_id FROM used GROUP BY file_id HAVING count(DISTINCT direction) = 2)"""


_QUERY = """SELECT pid, file, direction, count(*) AS count, avg(bytes) AS mean_bytes, sum(dur) AS time_ns
FROM calls_seen WHERE kind IN ('pipe', 'fifo') AND direction IS NOT NULL GROUP BY pid, file, direction
ORDER BY time_ns DESC"""
_MESSAGE = N_(
    "{processes} processes passed {count} pieces of {mean_bytes} on average through pipes; for "
    "{waiting_share} of the run something waited for a pipe, and no file was touched."
)

RULE = Rule(
    name="pipe-bound",
    title=N_("Small pieces through pipes"),
    looks_for=N_("Runs in which waiting for pipes dominates, while small pieces pass through them."),
    why=N_(
        "Each small piece costs two calls and often two changes between processes, who wait for each other."
    ),
    advice=advise(
        any=N_("Pass large pieces, many records at a time, or put both steps into one process."),
        c=N_("Buffer with setvbuf(stdout, NULL, _IOFBF, 1 << 16), and don't flush after each line."),
        cpp=N_("Write '\\n' in place of std::endl, and call std::ios::sync_with_stdio(false)."),
        python=N_(
            "Give Popen bufsize=1 << 16, don't flush after each record, and send many records per message."
        ),
        shell=N_("Put the steps into one awk; keep stdbuf -o0 and grep --line-buffered out of pipelines."),
    ),
    fine_when=N_("A conversation in which each answer decides the next question."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS, Need.TIMES),
    tables=("uses",),
    yields_to=("bytewise-read", "process-storm"),
)
