"""Some ranks do far more I/O than the others, who wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.findings import Message, Scalar
from iodock.language import N_
from iodock.rules import serial_phases, workers
from iodock.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.rules.workers import Team, Worker


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


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for each team whose busiest worker has far more than the mean."""
    alone = facts.settings.of_rule("serial-phases", serial_phases.Settings)
    for team in workers.teams(facts):
        busiest, mean = team.most(_time), team.mean(_time)
        excess = (busiest.time_ns - mean) / 1e9
        if excess < settings.least_seconds or not _is_unequal(team, busiest, settings):
            continue
        if serial_phases.works_alone(facts, team, busiest, alone):
            continue
        values: dict[str, Scalar] = {
            "worker": busiest.number,
            "workers": len(team.workers),
            "longest_ns": busiest.time_ns,
            "mean_ns": round(mean),
            "most_bytes": busiest.bytes,
            "mean_bytes": team.mean(_bytes),
        }
        yield Candidate(
            message=Message(_RANKS if team.are_ranks else _PROCESSES, values),
            count=busiest.calls,
            time_ns=busiest.time_ns,
            evidence={"count": busiest.calls, "time_ns": busiest.time_ns, **values},
            query=_QUERY,
            confidence=0.75,
            wall_seconds=excess,
            gain=(0.35, 1.0),
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


def _time(one: Worker) -> int:
    return one.time_ns


def _bytes(one: Worker) -> int:
    return one.bytes


def _calls(one: Worker) -> int:
    return one.calls


_QUERY = """SELECT rank, pid, count(*) AS count, sum(bytes) AS bytes, sum(dur) AS time_ns FROM calls_seen
WHERE kind IN ('file', 'regular') GROUP BY rank, pid ORDER BY time_ns DESC"""
_RANKS = N_(
    "Rank {worker} spent {longest_ns} in I/O and moved {most_bytes}; the mean of {workers} ranks is "
    "{mean_ns} and {mean_bytes}. The others wait for it at the next barrier."
)
_PROCESSES = N_(
    "One process spent {longest_ns} in I/O and moved {most_bytes}; the mean of {workers} processes side by "
    "side is {mean_ns} and {mean_bytes}."
)

RULE = Rule(
    name="rank-imbalance",
    title=N_("Unequal I/O among the ranks"),
    looks_for=N_("A rank, or one of several processes side by side, that has far more I/O than the mean."),
    why=N_("A parallel program is as fast as its slowest rank: while one writes, all others wait."),
    advice=advise(
        any=N_("Give each rank an equal share of the data, or let the busiest one hand over a part of it."),
        python=N_("Hand out small pieces (chunksize=1, or sorted by falling size) in place of fixed shares."),
        mpi_io=N_(
            "Use collective calls (MPI_File_write_all): they spread the bytes over aggregators (cb_nodes)."
        ),
        hdf5=N_("Use collective transfers (H5FD_MPIO_COLLECTIVE), so that all ranks share the work."),
    ),
    fine_when=N_("The busiest rank's I/O overlaps with the others' computing, and nobody waits for it."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS,),
    tables=("worker_io", "workers", "file_work"),
)
