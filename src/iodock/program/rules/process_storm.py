"""Finds many short processes that do the same small task one after the other. An example is a shell loop
that starts a command per record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iodock.program.findings import MOST_FILES
from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `process-storm`."""

    least_alike: int = 20
    """Number of processes that run the same program for one loop, from which on they are a process storm;
    the storm must also last this many times longer than the processes' mean lifetime, because workers that
    live in parallel are not a storm."""
    least_start: float = 0.5
    """Minimum share of the processes' lifetimes that their start takes: with less, each does work that takes
    longer."""
    most_start_seconds: float = 0.1
    "Maximum duration of a program start, unless the program is still loading its own files."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all processes that did little more than start. Compilers are left out."""
    facts.keep("storm", _storm_sql(settings))
    (row,) = facts.rows(_SQL)
    if not row["processes"]:
        return
    lived, around = row["starting_ns"] / 1e9, min(row["starting_ns"], row["between_ns"]) / 1e9
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
        goes_seconds=lived + around,
        gain=costs.CALLS_GO,
        authors=_STARTED_BY,
        # No line of the source code stands for the start of a process. Python and popen make a pipe for each
        # process, so the finding shows the line that calls pipe2.
        placed_by="pipe2",
    )


def _names(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(str(row["name"]) for row in rows[:MOST_FILES])


# The start of a process ends when the process accesses its data, but not before the files of its program are
# loaded. If a start takes more than twice the process's computing time and time in calls, the process sleeps
# or waits for others. Such waiting is not saved, so it is not counted.
def _storm_sql(settings: Settings) -> str:
    return f"""WITH lives AS (SELECT *, end_ts - start_ts AS life, least(end_ts, greatest(loaded_ts, least(
    coalesce(data_ts, end_ts), start_ts + {settings.most_start_seconds * 1e9}))) - start_ts AS start
  FROM starts WHERE NOT builds AND end_ts > start_ts),
kinds AS (SELECT *, sum(start) OVER w / sum(life) OVER w AS of_life, count(*) OVER w AS alike,
    (max(end_ts) OVER w - min(start_ts) OVER w) / avg(life) OVER w AS turns
  FROM lives WINDOW w AS (PARTITION BY owner, program))
SELECT upid, owner, program, start_ts, end_ts,
  least(start, 2 * active_ns) / greatest(1, alike / turns) AS ns FROM kinds
WHERE least(alike, turns) >= {settings.least_alike} AND of_life >= {settings.least_start}"""


# Between these processes, a shell forks, waits and reads their output, so the time from the first to the last
# process counts.
_SQL = """WITH lived AS (SELECT count(*) AS processes, sum(ns) AS ns, sum(end_ts - start_ts) AS life,
    max(end_ts) - min(start_ts) AS span FROM storm),
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
SELECT processes, least(ns, span) AS starting_ns, greatest(0, span - life) AS between_ns, work.*,
  (SELECT string_agg(name, ', ' ORDER BY n DESC, name) FROM kinds) AS programs
FROM lived, work"""
_USED_SQL = f"""SELECT f.name, count(DISTINCT p.upid) AS users FROM uses u
  JOIN processes p ON p.utid = u.utid JOIN storm s ON s.upid = p.upid JOIN files f ON f.file_id = u.file_id
WHERE f.kind IN ('file', 'regular') GROUP BY f.name ORDER BY users DESC, sum(u.count) DESC, f.name
LIMIT {MOST_FILES}"""
_STARTED_BY = "SELECT owner AS upid, count(*) AS count FROM storm GROUP BY owner"
_QUERY = """SELECT c.path, count(*) AS processes, median(p.end_ts - p.start_ts) AS lifetime_ns
FROM processes p JOIN commands c ON c.utid = p.utid GROUP BY c.path ORDER BY processes DESC"""
_MESSAGE = N_(
    "{processes} short processes were started one after the other to run {programs}. Each made "
    "{calls_each} calls, nearly all of them to start: together {opens} opens, and {missed} look-ups of "
    "missing files."
)

RULE = Rule(
    name="process-storm",
    title=N_("A process for each record"),
    looks_for=N_(
        "Many similar short processes, started by the same process: cat, awk or sed in a shell's loop."
    ),
    why=N_(
        "To start a program the system opens its libraries and settings again: dozens of calls and a few "
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
    needs=(Need.PROCESS_TIMES,),
    views=("starts", "programs", "uses"),
    case="shell-loop",
)
