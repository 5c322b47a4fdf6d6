"""Finds processes that wait for each other because they pass data through pipes in small pieces, or only
forward it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `pipe-bound`."""

    most_bytes: int = 3072
    """Largest mean size of the writes; tools with a buffer write 4 KiB and more."""
    least_share: float = 0.3
    """Minimum share of the run in which a process waits for a pipe while no other I/O is done, and minimum
    share of that time that the transfer must take for all of it to count as the cost: longer waits are for
    a computation. Otherwise only the writes count as the cost. It is also the minimum cost of large pieces
    that are only passed on."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all pipes between processes of the run, if the pieces are small, or if the
    processes only forward data."""
    row = facts.one(_PIPES_SQL)
    waited = facts.overview.get("waiting_time_ns")
    if not row or not row["writes"] or not waited or not facts.wall_ns:
        return
    writing = int(facts.one(_WRITING_SQL)["time_ns"] or 0)
    # Reading a piece takes as long as writing it, apart from the waiting.
    handing = 2 * writing
    count, moved = int(row["count"]), int(row["bytes"])
    in_pieces = int(row["written_bytes"]) <= settings.most_bytes * int(row["writes"])
    waits = waited >= settings.least_share * facts.wall_ns
    if in_pieces:
        waits = waits and facts.stretch * handing >= settings.least_share * waited
    cost = waited if waits else min(waited, writing)
    is_dear = waits or writing >= settings.least_share * facts.wall_ns
    is_passed_on = row["cpu_ns"] is not None and int(row["cpu_ns"]) <= handing
    if not costs.worth_a_word(facts, cost, count) or (not in_pieces and not (is_dear and is_passed_on)):
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
        wall_seconds=cost / 1e9,
        goes_seconds=min(cost, facts.stretch * handing if in_pieces else waited) / 1e9,
        gain=(0.35, 1.0),
        advice=None if in_pieces else _ADVICE_PASSED_ON,
    )


_PIPES_SQL = """SELECT CAST(sum(u.count) AS BIGINT) AS count, CAST(sum(u.bytes) AS BIGINT) AS bytes,
  CAST(sum(u.time_ns) AS BIGINT) AS time_ns, count(DISTINCT p.upid) AS processes,
  CAST(sum(u.count) FILTER (WHERE u.direction = 2) AS BIGINT) AS writes,
  CAST(sum(u.bytes) FILTER (WHERE u.direction = 2) AS BIGINT) AS written_bytes,
  (SELECT CAST(sum(cpu_user_ns) AS BIGINT) FROM processes WHERE utid IN (SELECT utid FROM uses
    WHERE file_id IN (FROM own_pipes))) AS cpu_ns
FROM uses u JOIN processes p ON p.utid = u.utid
WHERE u.file_id IN (FROM own_pipes) AND u.direction IN (1, 2)"""
# The query uses typical times, because a process that waits for space in the pipe hardly affects them.
_WRITING_SQL = """SELECT CAST(sum(typical_ns) AS BIGINT) AS time_ns FROM transfers
WHERE direction = 2 AND place IN (SELECT place FROM places WHERE file_id IN (FROM own_pipes))"""
_QUERY = """SELECT pid, file, direction, count(*) AS count, avg(bytes) AS mean_bytes, sum(dur) AS time_ns
FROM call_ends WHERE kind IN ('pipe', 'fifo', 'socket') AND direction IS NOT NULL
GROUP BY pid, file, direction
ORDER BY time_ns DESC"""
_MESSAGE = N_(
    "{processes} processes passed {count} pieces of {mean_bytes} on average through pipes; for "
    "{waiting_share} of the run at least one process waited for a pipe, and no file was accessed."
)
_PASSED_ON = N_(
    "{processes} processes passed {count} pieces of {mean_bytes} on average through pipes and computed "
    "hardly anything; for {waiting_share} of the run at least one process waited for a pipe, and no "
    "file was accessed."
)
_ADVICE_PASSED_ON = advise(
    any=N_(
        "Let the program that needs the data read the file itself, and remove programs that only pass it on."
    ),
    python=N_("Give Popen stdin=open(file) in place of writing the file's content into its pipe."),
    shell=N_("Write `command < file` in place of `cat file | command`; drop cat, dd and tee in between."),
)

RULE = Rule(
    name="pipe-bound",
    title=N_("Waiting for pipes"),
    looks_for=N_(
        "Runs in which waiting for pipes dominates, while small pieces pass through them, or much data "
        "on which no process computes."
    ),
    why=N_(
        "Each piece is copied twice, and costs two calls and often two switches between processes that "
        "wait for each other."
    ),
    advice=advise(
        any=N_("Transfer large pieces, many records at a time, or combine both steps in one process."),
        c=N_("Buffer with setvbuf(stdout, NULL, _IOFBF, 1 << 16), and don't flush after each line."),
        cpp=N_("Write '\\n' in place of std::endl, and call std::ios::sync_with_stdio(false)."),
        python=N_(
            "Give Popen bufsize=1 << 16, don't flush after each record, and send many records per message."
        ),
        shell=N_(
            "Combine the steps in one awk; do not use stdbuf -o0 and grep --line-buffered in pipelines."
        ),
    ),
    fine_when=N_("Each reply determines the next request."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS, Need.TIMES),
    views=("own_pipes", "uses", "transfers", "places"),
    yields_to=("bytewise-read", "process-storm"),
)
