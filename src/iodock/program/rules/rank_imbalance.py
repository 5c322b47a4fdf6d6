"""Some ranks do far more I/O than the others, who wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median, median_high

from iodock.program.rules import costs, serial_phases, workers
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.workers import Team, Worker
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `rank-imbalance`."""

    least_ratio: float = 1.6
    """Time of the busiest rank over the mean of all."""
    least_work_ratio: float = 1.5
    """Bytes or calls of the busiest rank over the mean: less is no imbalance, but a slow rank
    (`straggler`)."""
    least_seconds: float = 0.02
    """Time beyond the mean; less says nothing."""
    least_late_share: float = 0.15
    """Of the run, by which a process or rank that has more goes on after the others, where so little of the
    time lies inside calls that these tell nothing: it takes apart what it reads, or puts together what it
    writes."""
    least_late_seconds: float = 0.05
    """The same in seconds."""
    most_worked_ns: float = 500.0
    """Of its time, for each byte that it reads or writes: more is another work."""
    most_rate_ratio: float = 3.0
    """Of that time a byte, over the others' and under: they do the same work."""
    least_busy_ratio: float = 1.4
    """Computing and I/O of the busiest thread over the mean of all: threads of one process may share the work
    by its kind, so that the others compute while one does the I/O."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for each team whose busiest worker has far more than the mean."""
    alone = facts.settings.of_rule("serial-phases", serial_phases.Settings)
    for team in (*workers.teams(facts), *workers.thread_teams(facts)):
        for busiest, excess, text in _busiest(facts, team, settings):
            if not _is_own_kind(facts, team, busiest, settings, alone):
                yield _candidate(team, busiest, excess, text)


def _busiest(facts: Facts, team: Team, settings: Settings) -> Iterator[tuple[Worker, float, str]]:
    """The one that has far more than the others, if there is one: with how many seconds longer it takes, and
    the text that says so."""
    busiest = team.most(_time)
    excess = (busiest.time_ns - team.mean(_time)) / 1e9
    if excess >= settings.least_seconds and _is_unequal(team, busiest, settings):
        yield busiest, excess, _text(team)
    elif not team.are_threads:
        most = team.most(_bytes)
        late = _late_seconds(facts, team, most, settings)
        if late:
            yield most, late, _LATE_RANKS if team.are_ranks else _LATE_PROCESSES


def _candidate(team: Team, busiest: Worker, excess: float, text: str) -> Candidate:
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
        message=Message(text, values),
        count=busiest.calls,
        time_ns=busiest.time_ns,
        evidence={"count": busiest.calls, "time_ns": busiest.time_ns, **values},
        query=_QUERY,
        confidence=0.75,
        wall_seconds=excess,
        gain=(0.35, 1.0),
        title=None if team.are_ranks else _TITLE_THREADS if team.are_threads else _TITLE_PROCESSES,
    )


def _is_unequal(team: Team, busiest: Worker, settings: Settings) -> bool:
    if len(team.workers) < 3:
        return False
    if busiest.time_ns < settings.least_ratio * team.mean(_time):
        return False
    ratio = settings.least_work_ratio
    if team.mean(_bytes) > 0:
        return busiest.bytes >= ratio * team.mean(_bytes)
    return busiest.calls >= ratio * team.mean(_calls)


def _late_seconds(facts: Facts, team: Team, most: Worker, settings: Settings) -> float:
    """How much longer than the others the one with most bytes works on them, which is no time inside calls; 0
    where it does not, or has hardly more than they, or does another work."""
    others = [one for one in team.workers if one is not most and one.last_ts is not None]
    if len(others) < 2 or most.last_ts is None:
        return 0.0
    late = most.last_ts - max(one.last_ts or 0 for one in others)
    least = max(settings.least_late_share * (facts.wall_ns or 0), settings.least_late_seconds * 1e9)
    has_more = most.bytes >= settings.least_work_ratio * team.mean(_bytes)
    works_more = _worked(most) >= settings.least_work_ratio * median_high(map(_worked, others))
    is_text = costs.TEXT_NS <= _ns_per_byte(most) <= settings.most_worked_ns
    if late < least or not (has_more and works_more and is_text):
        return 0.0
    usual = median(map(_ns_per_byte, others))
    is_alike = usual / settings.most_rate_ratio <= _ns_per_byte(most) <= usual * settings.most_rate_ratio
    return late / 1e9 if is_alike else 0.0


def _worked(one: Worker) -> int:
    """From its first call to its last, ns."""
    return (one.last_ts or 0) - (one.first_ts or 0)


def _ns_per_byte(one: Worker) -> float:
    return _worked(one) / max(1, one.bytes)


def _is_own_kind(
    facts: Facts, team: Team, busiest: Worker, settings: Settings, alone: serial_phases.Settings
) -> bool:
    """Whether the busiest has other work than the others, not more of the same."""
    if not team.are_threads:
        return serial_phases.works_alone(facts, team, busiest, alone)
    busy = [one.busy_ns for one in team.workers if one.busy_ns is not None]
    if busiest.busy_ns is None or len(busy) < len(team.workers) or not _is_last(team, busiest):
        return True
    return busiest.busy_ns < settings.least_busy_ratio * sum(busy) / len(busy)


def _is_last(team: Team, busiest: Worker) -> bool:
    """Whether it goes on with I/O when the others have none left. A runtime that lets one task wander from
    thread to thread spreads its I/O unevenly, but over all the time."""
    ends = sorted(one.last_ts or 0 for one in team.workers if one is not busiest)
    beyond = busiest.time_ns - team.mean(_time)
    return (busiest.last_ts or 0) - ends[len(ends) // 2] >= beyond / 2


def _text(team: Team) -> str:
    return _THREADS if team.are_threads else _RANKS if team.are_ranks else _PROCESSES


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
    "Rank {worker} spent {longest_ns} in I/O and moved {most_bytes}; the mean of {workers} ranks is "
    "{mean_ns} and {mean_bytes}. The others wait for it at the next barrier."
)
_PROCESSES = N_(
    "One process spent {longest_ns} in I/O and moved {most_bytes}; the mean of {workers} processes side by "
    "side is {mean_ns} and {mean_bytes}."
)
_THREADS = N_(
    "One thread spent {longest_ns} in I/O and moved {most_bytes}; the mean of {workers} threads side by "
    "side is {mean_ns} and {mean_bytes}."
)
_LATE_RANKS = N_(
    "Rank {worker} moved {most_bytes}, the mean of {workers} ranks is {mean_bytes}; it was at work on them "
    "for {excess_s} after all others had ended theirs."
)
_LATE_PROCESSES = N_(
    "One process moved {most_bytes}, the mean of {workers} processes side by side is {mean_bytes}; it was at "
    "work on them for {excess_s} after all others had ended theirs."
)
_TITLE_PROCESSES = N_("Unequal I/O among the processes")
_TITLE_THREADS = N_("Unequal I/O among the threads")

RULE = Rule(
    name="rank-imbalance",
    title=N_("Unequal I/O among the ranks"),
    looks_for=N_(
        "A rank, or one of several processes or threads side by side, that has far more I/O than the mean."
    ),
    why=N_("A parallel program is as fast as its slowest rank: while one writes, all others wait."),
    advice=advise(
        any=N_("Give each rank an equal share of the data, or let the busiest one hand over a part of it."),
        python=N_("Hand out small pieces (chunksize=1, or sorted by falling size) in place of fixed shares."),
        mpi_io=N_(
            "On a parallel file system use collective calls (MPI_File_write_all): they spread the bytes over "
            "aggregators (cb_nodes)."
        ),
        hdf5=N_("Use collective transfers (H5FD_MPIO_COLLECTIVE), so that all ranks share the work."),
    ),
    fine_when=N_("The busiest rank's I/O overlaps with the others' computing, and nobody waits for it."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS, Need.RANKS_OWN),
    views=("worker_io", "thread_io", "crew_files"),
)
