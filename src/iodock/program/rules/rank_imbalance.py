"""Finds ranks that do far more I/O than the others, so that the others wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from iodock.program.findings import Severity
from iodock.program.rules import counted, workers
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.workers import Team, Worker
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `rank-imbalance`."""

    least_ratio: float = 1.6
    """I/O time of the busiest rank divided by the mean of all ranks, and the same ratio for its bytes, or
    for calls if no bytes are transferred: a rank that needs longer for the same amount is a slow rank
    (`straggler`)."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for each team whose busiest worker has far more I/O than the team's mean."""
    for team in (*workers.teams(facts), *workers.thread_teams(facts)):
        busiest = team.most(_time)
        is_unequal = len(team.workers) >= 3 and _is_unequal(team, busiest, settings.least_ratio)
        if is_unequal and (not team.are_threads or _is_waited_for(team, busiest, settings.least_ratio)):
            yield _candidate(team, busiest)


def _is_unequal(team: Team, busiest: Worker, ratio: float) -> bool:
    work = _bytes if team.mean(_bytes) > 0 else _calls
    return all(measure(busiest) > ratio * team.mean(measure) for measure in (_time, work))


def _is_waited_for(team: Team, busiest: Worker, ratio: float) -> bool:
    """Returns whether the other threads are idle while the busiest one does I/O. Threads may divide the
    work by kind, so that the others compute during that time. A runtime that moves one task from thread to
    thread also distributes its I/O unevenly, but then no thread does I/O long after the others."""
    busy = [one.busy_ns for one in team.workers if one.busy_ns is not None]
    if busiest.busy_ns is None or len(busy) < len(team.workers):
        return False
    beyond = busiest.time_ns - team.mean(_time)
    is_last = (busiest.last_ts or 0) - median(one.last_ts or 0 for one in team.workers) >= beyond / 2
    return is_last and busiest.busy_ns > ratio * sum(busy) / len(busy)


def _candidate(team: Team, busiest: Worker) -> Candidate:
    excess = (busiest.time_ns - team.mean(_time)) / 1e9
    values: dict[str, Scalar] = {
        "worker": busiest.number,
        "workers": len(team.workers),
        "longest_ns": busiest.time_ns,
        "mean_ns": round(team.mean(_time)),
        "most_bytes": busiest.bytes,
        "mean_bytes": team.mean(_bytes),
        "excess_s": excess,
    }
    return Candidate(
        message=Message(_THREADS if team.are_threads else _RANKS if team.are_ranks else _PROCESSES, values),
        count=busiest.calls,
        time_ns=busiest.time_ns,
        evidence={"count": busiest.calls, "time_ns": busiest.time_ns, **values},
        query=_QUERY,
        confidence=0.75,
        wall_seconds=excess,
        gain=(0.35, 1.0),
        title=None if team.are_ranks else _TITLE_THREADS if team.are_threads else _TITLE_PROCESSES,
    )


def _time(one: Worker) -> int:
    return one.time_ns


def _bytes(one: Worker) -> int:
    return one.bytes


def _calls(one: Worker) -> int:
    return one.calls


_QUERY = """SELECT rank, pid, count(*) AS count, sum(bytes) AS bytes, sum(dur) AS time_ns FROM calls_seen
WHERE kind IN ('file', 'regular') OR other_kind IN ('file', 'regular')
GROUP BY rank, pid ORDER BY time_ns DESC"""
_RANKS = N_(
    "Rank {worker} spent {longest_ns} in I/O and transferred {most_bytes}; the mean of {workers} ranks is "
    "{mean_ns} and {mean_bytes}. The others wait for it at the next barrier."
)
_PROCESSES = N_(
    "One process spent {longest_ns} in I/O and transferred {most_bytes}; the mean of {workers} "
    "parallel processes is {mean_ns} and {mean_bytes}."
)
_THREADS = N_(
    "One thread spent {longest_ns} in I/O and transferred {most_bytes}; the mean of {workers} "
    "parallel threads is {mean_ns} and {mean_bytes}."
)
_TITLE_PROCESSES = N_("Unequal I/O among the processes")
_TITLE_THREADS = N_("Unequal I/O among the threads")


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate if a rank transfers far more bytes than the mean of all. If it does not need
    longer for them, the candidate is only a note."""
    rows, ranks = facts.rows("FROM counted_work"), facts.ranks
    shared = next((row for row in rows if row["worker"] is None), {"bytes": 0, "time_ns": 0})
    own = [row for row in rows if row["worker"] is not None]
    if ranks < 3 or not own:
        return
    busiest = max(own, key=lambda row: (row["bytes"], row["time_ns"]))
    mean, most, mean_ns, most_ns = (
        value
        for name in ("bytes", "time_ns")
        for value in (
            shared[name] + sum(row[name] for row in own) / ranks, shared[name] + busiest[name],
        )
    )  # fmt: skip
    if mean < counted.LEAST_BYTES or most <= settings.least_ratio * mean:
        return
    is_late = most_ns > settings.least_ratio * mean_ns
    is_timed = is_late and busiest["worker"] not in counted.threaded(facts)
    excess = max(0.0, most_ns - mean_ns) / 1e9
    values: dict[str, Scalar] = {
        "worker": busiest["worker"], "workers": ranks, "longest_ns": most_ns, "mean_ns": round(mean_ns),
        "most_bytes": most, "mean_bytes": mean, "excess_s": excess,
    }  # fmt: skip
    yield Candidate(
        message=Message(_RANKS, values), count=0, time_ns=most_ns, evidence=values, query=_COUNTED_QUERY,
        confidence=0.6, wall_seconds=excess, gain=(0.35, 1.0) if is_timed else None,
        at_most=Severity.HIGH if is_late else Severity.NOTE,
    )  # fmt: skip


_COUNTED_QUERY = """SELECT interface, rank, ranks, sum(read_bytes + written_bytes) AS bytes,
  sum(read_time_ns + write_time_ns + meta_time_ns) AS time_ns
FROM profiles GROUP BY ALL ORDER BY bytes DESC"""


RULE = Rule(
    name="rank-imbalance",
    title=N_("Unequal I/O among the ranks"),
    looks_for=N_(
        "A rank, or one of several parallel processes or threads, that does far more I/O than the mean."
    ),
    why=N_("A parallel program is as fast as its slowest rank: while one writes, all others wait."),
    advice=advise(
        any=N_(
            "Give each rank an equal share of the data, or let the busiest rank give a part to the others."
        ),
        python=N_("Hand out small pieces (chunksize=1, or sorted by falling size) in place of fixed shares."),
        mpi_io=N_(
            "On a parallel file system use collective calls (MPI_File_write_all): they spread the bytes over "
            "aggregators (cb_nodes)."
        ),
        hdf5=N_("Use collective transfers (H5FD_MPIO_COLLECTIVE), so that all ranks share the work."),
    ),
    fine_when=N_("The busiest rank's I/O overlaps with the others' computing, and no rank waits for it."),
    settings=Settings,
    find=find,
    counters=in_counters,
    counters_need=(Need.RANKS,),
    needs=(Need.DURATIONS, Need.EVERY_RANK, Need.RANKS_OWN),
    views=("worker_io", "thread_io", "counted_work"),
    yields_to=("serial-phases",),
)
