"""One short process after the other for the same tiny work: a shell loop that starts a command per record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iodock.program.findings import MOST_FILES
from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Rule, advise
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `process-storm`."""

    least_alike: int = 50
    """Processes that one process started to run the same program, from which on it is a storm."""
    least_of_kind: int = 10
    """The same program so often, where a loop starts several: together they are `least_alike`."""
    least_few: int = 20
    """The same program so often, where most of these lives goes into the start: interpreters take as long to
    start as many small commands."""
    least_few_start: float = 0.5
    """Of their lives together, until 19 of 20 of these files have been used."""
    most_few_life_seconds: float = 1.0
    """Their median lifetime."""
    most_few_at_once: float = 2.0
    """So many of them may live at the same time on average: a loop starts its commands in turn."""
    least_few_calls: int = 60
    """Calls on the program's own files and the system's, which each of them makes on average: a command in C
    starts with a dozen."""
    least_few_share: float = 0.2
    """Of the run's wall time that such starts must take together."""
    most_life_seconds: float = 0.1
    """Their median lifetime; who lives longer does real work."""
    least_listings: int = 50
    """getdents calls of a process that goes through folders: no start of a program needs so many."""
    least_data_bytes: int = 262144
    """A process that reads so much of the user's data has it to look at, too."""
    look_ns: float = 2.0
    """Time for a byte that this takes at least, 500 MB/s."""
    least_share: float = 0.05
    """Of the run's wall time that they must live together."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: all short processes of which there are many alike. Compilers are left out."""
    facts.keep("storm", _members_sql(settings, facts.wall_ns or 0))
    (row,) = facts.rows(_sql(settings, facts.stretch))
    if not row["processes"]:
        return
    lived = _starting_ns(row) / 1e9 if row["union_ns"] else None
    if lived is not None and row["union_ns"] < settings.least_share * (facts.wall_ns or 0):
        return
    used = facts.rows(_USED_SQL)
    calls, opens, missed = (int(row[name] or 0) for name in ("calls", "opens", "missed"))
    values: dict[str, Scalar] = {
        "processes": int(row["processes"]),
        "programs": str(row["programs"]),
        "calls_each": calls / int(row["processes"]),
        "opens": opens,
        "missed": missed,
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=calls,
        time_ns=int(row["time_ns"]) if row["time_ns"] is not None else None,
        evidence={"count": calls, "time_ns": row["time_ns"], "lifetime_seconds": lived, **values},
        query=_QUERY,
        files=_names(used),
        file_count=int(row["files"] or 0),
        call="execve",
        confidence=0.85,
        wall_seconds=lived,
        goes_seconds=None if lived is None else _most(row, lived),
        gain=costs.CALLS_GO,
        authors=_STARTED_BY,
    )


_MOST_AROUND = 1.8
"""Of their lives, what a loop of such processes takes at most: the shell forks, waits and reads for them."""


def _most(row: dict[str, Any], lived: float) -> float:
    """Seconds that they take with the pauses in which none of them lives, where they follow each other that
    closely."""
    return min(_MOST_AROUND * lived, lived + int(row["between_ns"] or 0) / 1e9)


def _starting_ns(row: dict[str, Any]) -> float:
    """The processes' lives without what they did with the data: who starts one process for all of it still
    has that to do."""
    kept = 1 - min(1.0, int(row["data_ns"] or 0) / max(1, int(row["life_ns"])))
    return int(row["union_ns"]) * kept


def _names(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(str(row["name"]) for row in rows[:MOST_FILES])


# A pass of a loop may start several programs, or a shell that does: who started that shell has the loop.
def _members_sql(settings: Settings, wall_ns: int) -> str:
    life = settings.most_life_seconds * 1e9
    return f"""WITH listing AS (SELECT p.upid FROM uses u JOIN processes p ON p.utid = u.utid
  JOIN calls c ON c.id = u.call_id WHERE c.family = 'getdents' GROUP BY p.upid
  HAVING sum(u.count) >= {settings.least_listings}),
owned AS (SELECT s.upid, s.program, s.builds,
    CASE WHEN u.alike >= {settings.least_of_kind} AND u.median_ns <= {life} THEN u.parent ELSE s.parent END
      AS owner, s.end_ts - s.start_ts AS life
  FROM siblings s LEFT JOIN siblings u ON u.upid = s.parent WHERE s.program IS NOT NULL),
kinds AS (SELECT owner, program FROM owned WHERE NOT builds GROUP BY owner, program
  HAVING count(*) >= {settings.least_of_kind} AND median(life) <= {life}),
mixed AS (SELECT o.upid FROM owned o JOIN kinds k ON k.owner = o.owner AND k.program = o.program
    LEFT JOIN programs g ON g.upid = o.owner WHERE g.builds IS NOT TRUE
  QUALIFY count(*) OVER (PARTITION BY o.owner) >= {settings.least_alike}),
loaded AS (SELECT p.upid, quantile_disc(u.first_ts, 0.95) AS ts, sum(u.count) AS calls FROM uses u
    JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid
  WHERE f.file_id IN (FROM program_files) GROUP BY p.upid),
few AS (SELECT s.upid FROM siblings s LEFT JOIN loaded l ON l.upid = s.upid LEFT JOIN programs g
    ON g.upid = s.parent
  WHERE s.program IS NOT NULL AND s.alike >= {settings.least_few}
    AND s.is_tool IS NOT TRUE AND g.builds IS NOT TRUE
  WINDOW w AS (PARTITION BY s.parent, s.program)
  QUALIFY sum(coalesce(l.ts, s.start_ts) - s.start_ts) OVER w >= greatest(
    {settings.least_few_share * wall_ns}, {settings.least_few_start} * sum(s.end_ts - s.start_ts) OVER w)
    AND s.median_ns <= {settings.most_few_life_seconds * 1e9}
    AND sum(s.end_ts - s.start_ts) OVER w
      <= {settings.most_few_at_once} * (max(s.end_ts) OVER w - min(s.start_ts) OVER w)
    AND avg(coalesce(l.calls, 0)) OVER w >= {settings.least_few_calls})
SELECT upid, program, start_ts, end_ts FROM siblings
WHERE upid NOT IN (FROM listing) AND (upid IN (FROM mixed) OR upid IN (FROM few) OR (
  alike >= {settings.least_alike} AND NOT builds
  AND coalesce(median_ns <= {life}, alike >= 10 * {settings.least_alike})))"""


_IDLE, _MOST_IDLE = 2.0, 4.0
"""A process lives so many times longer than it computes and is in calls, at most; and on a busy machine. Who
lives longer sleeps, or waits for another process. One process for all of it still has to do that, so only the
time counts in which it computes and is in calls."""


# Processes of one pipeline run at the same time: their time counts once. Syncs, the reading of much data with
# the look at it, or passing it on through pipes, and waiting for what processes that are no part of the storm
# write into a pipe are not what the start takes.
def _sql(settings: Settings, stretch: float) -> str:
    idle, busy = min(_MOST_IDLE, _IDLE * stretch), min(_MOST_IDLE / _IDLE, stretch)
    passed = "coalesce(f.kind IN ('pipe', 'fifo') AND u.direction > 0 AND u.bytes > 0, false)"
    looked_at = f"(u.direction = 1 AND f.file_id IN (FROM data_files) OR {passed})"
    return f"""WITH active AS (SELECT upid, sum(cpu_user_ns + coalesce(cpu_system_ns, 0)) AS cpu_ns,
    sum(coalesce(io_ns, 0) + coalesce(waiting_ns, 0)) AS called_ns FROM processes GROUP BY upid),
lives AS (SELECT s.end_ts AS gone_ts, s.* REPLACE (CASE
    WHEN a.cpu_ns > 0 AND s.end_ts - s.start_ts > {idle} * (a.cpu_ns + a.called_ns)
    THEN s.start_ts + CAST({busy} * (a.cpu_ns + a.called_ns) AS BIGINT)
    ELSE s.end_ts END AS end_ts) FROM storm s LEFT JOIN active a ON a.upid = s.upid),
ends AS (SELECT *, max(end_ts) OVER w AS before, max(gone_ts) OVER w AS gone FROM lives
  WHERE end_ts >= start_ts
  WINDOW w AS (ORDER BY start_ts, end_ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
lived AS (SELECT CAST(sum(greatest(0, end_ts - greatest(start_ts, coalesce(before, start_ts)))) AS BIGINT)
  AS union_ns, CAST(sum(end_ts - start_ts) AS BIGINT) AS life_ns,
  CAST(sum(greatest(0, start_ts - coalesce(gone, start_ts))) AS BIGINT) AS between_ns FROM ends),
fed AS (SELECT u.file_id FROM uses u JOIN files f ON f.file_id = u.file_id
    JOIN processes p ON p.utid = u.utid
  WHERE f.kind IN ('pipe', 'fifo') AND u.direction = 2 AND u.bytes > 0
  GROUP BY u.file_id HAVING count(*) FILTER (WHERE p.upid IN (SELECT upid FROM storm)) = 0),
used AS (SELECT s.upid, any_value(s.end_ts - s.start_ts) AS life,
    coalesce(sum(u.time_ns) FILTER (WHERE NOT {passed} OR u.direction = 1 AND u.file_id IN (FROM fed)), 0)
      AS ns, coalesce(sum(u.bytes) FILTER (WHERE {looked_at}), 0) AS bytes,
    max(u.last_ts) FILTER (WHERE {looked_at}) - min(u.first_ts) FILTER (WHERE {looked_at}) AS reading_ns
  FROM uses u JOIN processes p ON p.utid = u.utid JOIN lives s ON s.upid = p.upid
    JOIN calls c ON c.id = u.call_id LEFT JOIN files f ON f.file_id = u.file_id
  WHERE s.end_ts >= s.start_ts AND (c.class = 'sync' OR u.direction > 0 AND f.file_id IN (FROM data_files)
    OR {passed})
  GROUP BY s.upid),
data AS (SELECT CAST(sum(least(life, CASE WHEN bytes >= {settings.least_data_bytes}
    THEN greatest(ns + {settings.look_ns} * bytes, coalesce(reading_ns, 0)) ELSE ns END)) AS BIGINT)
    AS data_ns FROM used),
work AS (SELECT CAST(sum(u.count) AS BIGINT) AS calls, CAST(sum(u.time_ns) AS BIGINT) AS time_ns,
    CAST(sum(u.count) FILTER (WHERE c.family = 'open' AND u.errno_id IS NULL) AS BIGINT) AS opens,
    CAST(sum(u.count) FILTER (WHERE x.name = 'ENOENT') AS BIGINT) AS missed,
    count(DISTINCT u.file_id) AS files
  FROM uses u JOIN processes p ON p.utid = u.utid JOIN storm s ON s.upid = p.upid
    JOIN calls c ON c.id = u.call_id LEFT JOIN errnos x ON x.id = u.errno_id
  WHERE u.side IN (0, 1, 3) AND u.file_id IS NOT NULL),
kinds AS (SELECT coalesce(regexp_extract(s.program, '[^/]*$'),
      concat(regexp_extract(g.program, '[^/]*$'), ' (fork)')) AS name, count(*) AS n
  FROM storm s LEFT JOIN programs g ON g.upid = s.upid GROUP BY 1 ORDER BY n DESC, name LIMIT 5)
SELECT (SELECT count(*) FROM storm) AS processes, lived.*, data.*, work.*,
  (SELECT string_agg(name, ', ' ORDER BY n DESC, name) FROM kinds) AS programs
FROM lived, data, work"""


_USED_SQL = f"""SELECT f.name, count(DISTINCT p.upid) AS users FROM uses u
  JOIN processes p ON p.utid = u.utid JOIN storm s ON s.upid = p.upid JOIN files f ON f.file_id = u.file_id
WHERE f.kind IN ('file', 'regular') GROUP BY f.name ORDER BY users DESC, sum(u.count) DESC, f.name
LIMIT {MOST_FILES}"""
_STARTED_BY = """SELECT s.owner AS upid, count(*) AS count FROM siblings s
WHERE s.upid IN (SELECT upid FROM storm) GROUP BY s.owner"""
_QUERY = """SELECT c.path, count(*) AS processes, median(p.end_ts - p.start_ts) AS lifetime_ns
FROM processes p JOIN commands c ON c.utid = p.utid GROUP BY c.path ORDER BY processes DESC"""
_MESSAGE = N_(
    "{processes} short processes were started one after the other to run {programs}. Each made "
    "{calls_each} calls, nearly all of them to start: together {opens} opens, and {missed} look-ups of "
    "files that are not there."
)

RULE = Rule(
    name="process-storm",
    title=N_("A process for each record"),
    looks_for=N_(
        "Many short processes alike, started by the same process: cat, awk or sed in a shell's loop."
    ),
    why=N_(
        "To start a program the system opens its libraries and settings anew: dozens of calls and some "
        "milliseconds for work that takes microseconds."
    ),
    advice=advise(
        any=N_("Let one process handle all records: read the whole input once, and loop inside the program."),
        c=N_("Call the library's function in place of system() or popen() in a loop."),
        cpp=N_("Call the library's function in place of system() or popen() in a loop."),
        fortran=N_(
            "Use the language's own statements in place of CALL SYSTEM or EXECUTE_COMMAND_LINE in a loop."
        ),
        python=N_(
            "Use Python's own functions (pathlib, shutil, re) in place of subprocess or os.system in a loop."
        ),
        shell=N_(
            "Replace the loop by one awk, sed or join over the whole file; use ${variable%pattern} and "
            "read in place of $(echo ... | cut ...), and find -exec ... {} + or xargs in place of one "
            "command per file."
        ),
    ),
    fine_when=N_(
        "Each process does work that takes far longer than its start, or a build or test runs many tools."
    ),
    settings=Settings,
    find=find,
    views=("siblings", "programs", "uses", "data_files", "program_files"),
    case="shell-loop",
)
