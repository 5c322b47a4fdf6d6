"""One process does the I/O while all others wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.findings import Message, Scalar, Severity
from iodock.language import N_
from iodock.rules import costs, workers
from iodock.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.rules.workers import Team, Worker


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `serial-phases`."""

    least_alone: float = 0.85
    """Share of all workers' bytes that one of them must have."""
    least_alone_time: float = 0.6
    """The same of their time in I/O: the others may spend theirs on files that hold little."""
    least_bytes: int = 1048576
    """It must have moved at least so much: a log of one rank is no phase."""
    most_part: float = 0.01
    """Of the mean of all workers' bytes: from so much on in the same files, another worker has a part of its
    own there. Where half of the others have, the parts are uneven (`rank-imbalance`)."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for each team of which one worker does nearly all I/O."""
    for team in workers.teams(facts):
        busiest, many = team.most(_time), len(team.workers)
        if many < 3 or busiest.bytes < settings.least_bytes:
            continue
        if not works_alone(facts, team, busiest, settings):
            continue
        values: dict[str, Scalar] = {
            "worker": busiest.number,
            "workers": many,
            "alone_ns": busiest.time_ns,
            "alone_share": busiest.bytes / (team.mean(_bytes) * many),
            "moved_bytes": busiest.bytes,
        }
        yield Candidate(
            message=Message(_RANKS if team.are_ranks else _PROCESSES, values),
            count=busiest.calls,
            time_ns=busiest.time_ns,
            evidence={"count": busiest.calls, "time_ns": busiest.time_ns, **values},
            query=_QUERY,
            confidence=0.6,
            wall_seconds=busiest.time_ns * (1 - 1 / many) / 1e9,
            gain=(0.3, 0.9),
            at_most=Severity.NOTE if team.are_ranks and _collects(facts) else Severity.HIGH,
        )


def works_alone(facts: Facts, team: Team, one: Worker, settings: Settings) -> bool:
    """Whether ONE moves the team's data, and the others hardly any. Needs the derived tables `workers` and
    `file_work`."""
    many = len(team.workers)
    in_time = one.time_ns >= settings.least_alone_time * team.mean(_time) * many
    if not in_time or one.bytes < settings.least_alone * team.mean(_bytes) * many:
        return False
    sql = _partners_sql(team, one, settings.most_part * team.mean(_bytes))
    return 2 * int(facts.one(sql)["partners"]) < many - 1


def _partners_sql(team: Team, one: Worker, least_bytes: float) -> str:
    """How many others have moved so much of the files that hold what ONE has moved."""
    numbers = ", ".join(str(other.number) for other in team.workers)
    return f"""WITH members AS (SELECT DISTINCT worker, upid FROM workers
  WHERE (team = -1) = {team.are_ranks} AND worker IN ({numbers})),
parts AS (SELECT m.worker, w.file_id, sum(w.read_bytes + w.written_bytes) AS bytes
  FROM members m JOIN file_work w ON w.upid = m.upid JOIN files f ON f.file_id = w.file_id
  WHERE {costs.data_files("f")} GROUP BY m.worker, w.file_id),
mine AS (SELECT file_id, bytes, sum(bytes) OVER () AS whole FROM parts WHERE worker = {one.number}),
others AS (SELECT worker FROM parts WHERE worker <> {one.number}
    AND file_id IN (SELECT file_id FROM mine WHERE bytes > 0 AND bytes >= 0.1 * whole)
  GROUP BY worker HAVING sum(bytes) > 0 AND sum(bytes) >= {least_bytes})
SELECT count(*) AS partners FROM others"""


def _collects(facts: Facts) -> bool:
    """Whether one rank may have moved the others' data for them, as MPI-IO's collective calls do with the
    ranks of a node: then all of them have its files open."""
    return bool(facts.one(_COLLECTS_SQL)["collects"])


def _time(one: Worker) -> int:
    return one.time_ns


def _bytes(one: Worker) -> int:
    return one.bytes


# MPI-IO asks for the type of the file system when it opens a file (fstype of ROMIO and of OMPIO), which other
# programs hardly do; MPI itself asks for that of /dev/shm, so that a source without any such call can't see
# them.
_COLLECTS_SQL = f"""WITH asked AS (SELECT DISTINCT f.name FROM uses u JOIN calls c ON c.id = u.call_id
    JOIN files f ON f.file_id = u.file_id WHERE c.family = 'statfs'),
used AS (SELECT w.file_id, count(DISTINCT k.worker) = any_value(k.size) AS by_all,
    any_value(f.name) IN (SELECT name FROM asked) OR any_value(f.folder) IN (SELECT name FROM asked)
      OR (SELECT count(*) FROM asked) = 0 AS by_mpi_io,
    sum(w.read_bytes + w.written_bytes) AS bytes
  FROM workers k JOIN file_work w ON w.upid = k.upid JOIN files f ON f.file_id = w.file_id
  WHERE k.team = -1 AND w.opens > 0 AND {costs.data_files("f")} GROUP BY w.file_id)
SELECT coalesce(sum(bytes) FILTER (WHERE by_all AND by_mpi_io), 0) > 0.5 * coalesce(sum(bytes), 0)
  AND (SELECT count(DISTINCT host) FROM processes) <= 1 AS collects FROM used"""
_QUERY = """SELECT rank, pid, direction, count(*) AS count, sum(bytes) AS bytes, sum(dur) AS time_ns
FROM calls_seen WHERE kind IN ('file', 'regular') AND direction IS NOT NULL GROUP BY rank, pid, direction
ORDER BY time_ns DESC"""
_RANKS = N_(
    "Rank {worker} alone moved {alone_share} of the bytes of {workers} ranks: {moved_bytes}; it spent "
    "{alone_ns} in I/O."
)
_PROCESSES = N_(
    "One of {workers} processes side by side moved {alone_share} of their bytes: {moved_bytes}; it spent "
    "{alone_ns} in I/O."
)

RULE = Rule(
    name="serial-phases",
    title=N_("One rank does all the I/O"),
    looks_for=N_("Parallel programs in which one rank reads or writes nearly everything."),
    why=N_(
        "While one rank works, all others wait, and the job's nodes are paid for nothing; one process "
        "reaches only a part of a parallel file system's rate."
    ),
    advice=advise(
        any=N_("Let each rank read and write its own part, in the same file or by a few ranks for all."),
        fortran=N_(
            "Replace the gather to rank 0 before WRITE by MPI-IO or a library (NetCDF, HDF5) in parallel."
        ),
        python=N_(
            "Let the workers read their own part of the file; with mpi4py use MPI.File and Write_at_all."
        ),
        mpi_io=N_("Use MPI_File_read_all and MPI_File_write_all with one file view per rank."),
        hdf5=N_("Open with H5Pset_fapl_mpio, and let each rank write its hyperslab collectively."),
    ),
    fine_when=N_("The amount is small, or the others compute meanwhile."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS,),
    tables=("worker_io", "workers", "file_work", "uses"),
    yields_to=("pipe-bound",),
)
