"""Finds a rank or process that is far slower than the others, or ends far later, although its work is the
same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from iodock.program.rules import workers
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.workers import Team, Worker
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `straggler`."""

    least_ratio: float = 2.0
    """Time of the slowest worker divided by the median of all; or the delay of the last one, divided by
    the spread of the others."""
    most_difference: float = 0.3
    "Maximum relative difference of bytes from the median at which the work is considered equal."
    least_share: float = 0.1
    """Share of the run by which the rank must be behind: a rank that once had to wait for a processor or
    the disk is a little behind, and next time it is another rank."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for each team in which one worker is slower, or ends later, than all others."""
    least_ns = settings.least_share * (facts.wall_ns or 0)
    for team in workers.teams(facts):
        if len(team.workers) < 3 or team.median(_bytes) <= 0:
            continue
        yield from _slower(team, least_ns, settings) or _later(team, least_ns, settings)


def _slower(team: Team, least_ns: float, settings: Settings) -> list[Candidate]:
    slowest, usual = team.most(_time), team.median(_time)
    spent = slowest.time_ns - _hung_ns(slowest)
    if spent - usual < least_ns or spent < settings.least_ratio * usual:
        return []
    if not _did_the_same(slowest, team, settings):
        return []
    values: dict[str, Scalar] = {
        "worker": slowest.number,
        "workers": len(team.workers),
        "longest_ns": slowest.time_ns,
        "usual_ns": round(usual),
        "moved_bytes": slowest.bytes,
    }
    text = _SLOW_RANK if team.are_ranks else _SLOW_PROCESS
    return [_candidate(text, values, slowest, (slowest.time_ns - usual) / 1e9)]


def _hung_ns(one: Worker) -> int:
    """Returns the time in ns by which the worker's longest call exceeds the mean of its other calls. A
    single call that hung does not make a rank slow, because another rank may be affected in the next run.
    `slow-call` reports it."""
    others = max(1, one.calls - 1)
    return max(0, one.longest_ns - (one.time_ns - one.longest_ns) // others) if one.calls > 1 else 0


def _later(team: Team, least_ns: float, settings: Settings) -> list[Candidate]:
    ordered = sorted(
        (one for one in team.workers if one.last_ts is not None), key=lambda one: one.last_ts or 0
    )
    if len(ordered) < len(team.workers):
        return []
    last = ordered[-1]
    ends = [one.last_ts or 0 for one in ordered[:-1]]
    late, spread = (last.last_ts or 0) - ends[-1], ends[-1] - median(ends)
    if late - _hung_ns(last) < least_ns or late < settings.least_ratio * spread:
        return []
    if not _did_the_same(last, team, settings):
        return []
    values: dict[str, Scalar] = {"worker": last.number, "workers": len(team.workers), "late_s": late / 1e9}
    return [_candidate(_LATE_RANK if team.are_ranks else _LATE_PROCESS, values, last, late / 1e9)]


def _did_the_same(one: Worker, team: Team, settings: Settings) -> bool:
    usual = team.median(_bytes)
    return abs(one.bytes - usual) <= settings.most_difference * usual


def _candidate(text: str, values: dict[str, Scalar], worker: Worker, seconds: float) -> Candidate:
    return Candidate(
        message=Message(text, values),
        count=worker.calls,
        time_ns=worker.time_ns,
        evidence={"count": worker.calls, "time_ns": worker.time_ns, **values},
        query=_QUERY,
        confidence=0.7,
        wall_seconds=seconds,
        gain=(0.35, 1.0),
        title=None if text in (_SLOW_RANK, _LATE_RANK) else _TITLE_PROCESS,
    )


def _time(one: Worker) -> int:
    return one.time_ns


def _bytes(one: Worker) -> int:
    return one.bytes


_QUERY = """SELECT rank, pid, count(*) AS count, sum(bytes) AS bytes, sum(dur) AS time_ns,
  min(ts) AS first_ts, max(end_ts) AS last_ts
FROM calls_seen WHERE kind IN ('file', 'regular') OR other_kind IN ('file', 'regular')
GROUP BY rank, pid ORDER BY time_ns DESC"""
_SLOW_RANK = N_(
    "Rank {worker} needed {longest_ns} to transfer {moved_bytes}; the median of {workers} ranks, with as "
    "many bytes, is {usual_ns}."
)
_SLOW_PROCESS = N_(
    "One process needed {longest_ns} to transfer {moved_bytes}; the median of {workers} parallel "
    "processes, with as many bytes, is {usual_ns}."
)
_LATE_RANK = N_(
    "Rank {worker} ended its I/O {late_s} after all others of {workers} ranks, with as many bytes."
)
_LATE_PROCESS = N_(
    "One process ended its I/O {late_s} after all others of {workers} parallel processes, with as many bytes."
)
_TITLE_PROCESS = N_("One process far behind")

RULE = Rule(
    name="straggler",
    title=N_("One rank far behind"),
    looks_for=N_(
        "A rank or process that is far slower, or finishes far later, than the others with the same number"
        " of bytes."
    ),
    why=N_(
        "All others wait for it. The reason is often its node, its storage server or its place in the file."
    ),
    advice=advise(
        any=N_(
            "Run again and check whether it is the same rank, node or file; compare its calls with those "
            "of another rank."
        ),
        mpi_io=N_("Use collective calls, or spread the files over the storage servers (striping)."),
        administrator=N_(
            "Check whether that node, or the server that holds the rank's files, is full, degraded or "
            "overloaded."
        ),
    ),
    fine_when=N_("That rank has other work by design, and no other rank waits for it."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS, Need.TIMES, Need.EVERY_RANK, Need.RANKS_OWN),
    views=("worker_io",),
    yields_to=("slow-call", "shared-file-contention", "unaligned-shared-file"),
    is_of_waiting=True,
)
