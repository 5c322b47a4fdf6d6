"""Processes hand data to each other through pipes in small pieces, or only pass it on, and wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `pipe-bound`."""

    least_count: int = 500
    """Fewer reads and writes of pipes than this are not worth a word."""
    most_bytes: int = 3072
    """Size of the writes, or of what the reads ask for, on average; tools that use a buffer pass 4 KiB and
    more. A read that found less had no say in it."""
    least_share: float = 0.3
    """Of the wall time in which something waited for a pipe and nothing did other I/O; or that writing what
    is only passed on takes by itself: a slow file may be waited for at the same time."""
    least_written_share: float = 0.01
    """Of the wall time that writing small pieces must take by itself, where less of the run was waiting: who
    waits may wait for a computation, but who writes small pieces only hands them over."""
    least_per_second: float = 100.0
    """Reads and writes a second: fewer mean that someone computes, and the pipe only shows it."""
    most_lost: float = 0.1
    """How far what is sent through sockets and what is taken from them may differ, of what is sent, where the
    run's processes speak to each other only."""
    least_moved_bytes: int = 67108864
    """So much must pass through pipes in pieces that are not small."""
    most_computing: float = 0.15
    """Of the wall time that the processes at such pipes may compute together: they only pass data on."""
    most_look_ns: float = 0.4
    """Or for each byte, which is less than looking at it takes: in a short run, that is what programs start
    with."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: all pipes between processes of the run, if they are used in small pieces, or if nobody
    at them does anything but pass data on."""
    kinds = _kinds(facts, settings)
    row = facts.one(_sql(kinds))
    waited = facts.overview.get("waiting_time_ns")
    if not row or row["count"] is None or not waited or not facts.wall_ns:
        return
    count, moved = int(row["count"]), int(row["bytes"] or 0)
    writing = _writing_ns(facts, kinds)
    dominates = waited >= settings.least_share * facts.wall_ns
    if not dominates and writing < settings.least_written_share * facts.wall_ns:
        return
    # Reads of single bytes are told by `bytewise-read`.
    if int(row["read_bytes"] or 0) < 2 * int(row["reads"] or 0):
        return
    in_pieces = _is_in_pieces(facts, row, kinds, settings)
    is_dear = dominates or writing >= settings.least_share * facts.wall_ns
    if not in_pieces and not (is_dear and _is_passed_on(row, facts.wall_ns, settings)):
        return
    values: dict[str, Scalar] = {
        "count": count,
        "mean_bytes": moved / count,
        "processes": int(row["processes"]),
        "waiting_share": waited / facts.wall_ns,
    }
    yield Candidate(
        message=Message(_MESSAGE if in_pieces else _PASSED_ON, values),
        count=count,
        time_ns=row["time_ns"],
        evidence={"count": count, "bytes": moved, "time_ns": row["time_ns"], "waiting_ns": waited, **values},
        query=_QUERY,
        call="read",
        confidence=0.5,
        wall_seconds=(waited if dominates else min(waited, writing)) / 1e9,
        goes_seconds=min(waited, _handing_ns(facts, row, writing) if in_pieces else waited) / 1e9,
        gain=(0.35, 1.0),
        advice=None if in_pieces else _ADVICE_PASSED_ON,
    )


def _kinds(facts: Facts, settings: Settings) -> str:
    """SQL condition: `f` is a pipe; or a socket, where those of the run lead to each other: what is sent
    arrives in other processes of it."""
    row = facts.one(_SOCKETS_SQL)
    sent, taken = int(row["sent"] or 0), int(row["taken"] or 0)
    inside = sent > 0 and int(row["processes"]) > 1 and abs(sent - taken) <= settings.most_lost * sent
    return "f.kind IN ('pipe', 'fifo', 'socket')" if inside else "f.kind IN ('pipe', 'fifo')"


def _writing_ns(facts: Facts, kinds: str) -> int:
    """What writing into the run's own pipes takes: their typical time, in which waiting for room in the pipe
    hardly counts."""
    return int(facts.one(_writing_sql(kinds))["time_ns"] or 0)


_TURN_NS = 5000
"""What a piece takes beside its calls: the one at the other end is woken and gets a processor."""


def _handing_ns(facts: Facts, row: Mapping[str, Any], writing: int) -> float:
    """What handing the pieces over takes: who waits longer waits for what the other one computes."""
    return facts.stretch * (writing + _TURN_NS * int(row["writes"] or 0))


def _is_in_pieces(facts: Facts, row: Mapping[str, Any], kinds: str, settings: Settings) -> bool:
    if int(row["count"]) < max(settings.least_count, settings.least_per_second * (facts.wall_seconds or 0)):
        return False
    asked = facts.one(_asked_sql(kinds))
    most = settings.most_bytes
    small_writes = int(row["written_bytes"] or 0) <= most * int(row["writes"] or 0)
    # A buffer that is filled up asks for what it has room for: for each write, hardly more than twice.
    are_split = int(row["reads"] or 0) >= 2 * int(row["writes"] or 0)
    return small_writes or (are_split and int(asked["bytes"] or 0) <= most * int(asked["reads"] or 0))


def _is_passed_on(row: Mapping[str, Any], wall_ns: int, settings: Settings) -> bool:
    if row["cpu_ns"] is None or int(row["bytes"] or 0) < settings.least_moved_bytes:
        return False
    looking = settings.most_look_ns * int(row["read_bytes"] or 0)
    return int(row["cpu_ns"]) <= max(settings.most_computing * wall_ns, looking)


# A pipe of which only one end is seen leads out of the run: whoever is there is not ours to judge.
def _sql(kinds: str) -> str:
    return f"""WITH used AS (SELECT u.file_id, p.upid, u.direction, sum(u.count) AS count,
    sum(u.bytes) AS bytes, sum(u.time_ns) AS time_ns
  FROM uses u JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid
  WHERE {kinds} AND u.direction IN (1, 2) GROUP BY ALL),
ours AS (SELECT * FROM used
  WHERE file_id IN (SELECT file_id FROM used GROUP BY file_id HAVING count(DISTINCT direction) = 2))
SELECT CAST(sum(count) AS BIGINT) AS count, CAST(sum(bytes) AS BIGINT) AS bytes,
  CAST(sum(time_ns) AS BIGINT) AS time_ns, count(DISTINCT upid) AS processes,
  CAST(sum(count) FILTER (WHERE direction = 1) AS BIGINT) AS reads,
  CAST(sum(bytes) FILTER (WHERE direction = 1) AS BIGINT) AS read_bytes,
  CAST(sum(count) FILTER (WHERE direction = 2) AS BIGINT) AS writes,
  CAST(sum(bytes) FILTER (WHERE direction = 2) AS BIGINT) AS written_bytes,
  (SELECT CAST(sum(cpu_user_ns) AS BIGINT) FROM processes WHERE upid IN (SELECT upid FROM ours)) AS cpu_ns
FROM ours"""


# All sockets of a run may go by one name.
_SOCKETS_SQL = """SELECT CAST(sum(u.bytes) FILTER (WHERE u.direction = 2) AS BIGINT) AS sent,
  CAST(sum(u.bytes) FILTER (WHERE u.direction = 1) AS BIGINT) AS taken, count(DISTINCT p.upid) AS processes
FROM uses u JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid
WHERE f.kind = 'socket' AND u.bytes > 0"""


def _writing_sql(kinds: str) -> str:
    return f"""SELECT CAST(sum(t.typical_ns) AS BIGINT) AS time_ns
FROM transfers t JOIN place_names f ON f.place = t.place
WHERE {kinds} AND t.direction = 2 AND f.place IN (SELECT l.place FROM uses u
  JOIN places l ON l.file_id = u.file_id WHERE u.direction = 1 AND u.bytes > 0)"""


# Where a source does not tell what was asked for, what came stands in.
def _asked_sql(kinds: str) -> str:
    return f"""SELECT CAST(sum(t.count) AS BIGINT) AS reads,
  CAST(sum(coalesce(t.requested_bytes, t.bytes)) AS BIGINT) AS bytes
FROM transfers t JOIN place_names f ON f.place = t.place
WHERE {kinds} AND t.direction = 1 AND f.place IN (SELECT l.place FROM uses u
  JOIN places l ON l.file_id = u.file_id WHERE u.direction = 2 AND u.bytes > 0)"""


_QUERY = """SELECT pid, file, direction, count(*) AS count, avg(bytes) AS mean_bytes, sum(dur) AS time_ns
FROM call_ends WHERE kind IN ('pipe', 'fifo', 'socket') AND direction IS NOT NULL
GROUP BY pid, file, direction
ORDER BY time_ns DESC"""
_MESSAGE = N_(
    "{processes} processes passed {count} pieces of {mean_bytes} on average through pipes; for "
    "{waiting_share} of the run something waited for a pipe, and no file was touched."
)
_PASSED_ON = N_(
    "{processes} processes passed {count} pieces of {mean_bytes} on average through pipes and computed "
    "hardly anything; for {waiting_share} of the run something waited for a pipe, and no file was touched."
)
_ADVICE_PASSED_ON = advise(
    any=N_("Let the program that needs the data read the file itself, and leave out what only passes it on."),
    python=N_("Give Popen stdin=open(file) in place of writing the file's content into its pipe."),
    shell=N_("Write `command < file` in place of `cat file | command`; drop cat, dd and tee in between."),
)

RULE = Rule(
    name="pipe-bound",
    title=N_("Waiting for pipes"),
    looks_for=N_(
        "Runs in which waiting for pipes dominates, while small pieces pass through them, or much data that "
        "nobody computes on."
    ),
    why=N_(
        "Each piece is copied twice, costs two calls and often two changes between processes, who wait for "
        "each other."
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
    views=("uses", "transfers", "places", "place_names"),
    yields_to=("bytewise-read", "process-storm"),
)
