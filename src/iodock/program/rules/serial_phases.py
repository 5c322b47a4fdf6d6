"""One process does the I/O while all others wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from iodock.program.findings import Severity
from iodock.program.rules import alone, io_not_overlapped, prepared, thread_turns, workers
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.phases import Settings
from iodock.program.rules.workers import Team, Worker
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for each team of which one worker does nearly all I/O, or all that is done to some kinds
    of files while the others wait; and for each process that does so for the workers that it started."""
    found = False
    for team in workers.teams(facts):
        busiest, many = team.most(_time), len(team.workers)
        if many < 3:
            continue
        if busiest.bytes >= settings.least_bytes and works_alone(facts, team, busiest, settings):
            found = True
            yield _of_all(facts, team, busiest)
        elif busiest.time_ns < settings.least_wall * (facts.wall_ns or 0):
            continue
        elif (part := alone.of_worker(facts, team, settings)) and _is_long(facts, part, settings):
            found = True
            at_most = Severity.NOTE if team.are_ranks and _collects(facts) else Severity.HIGH
            yield _of_part(part, _RANK_PART if team.are_ranks else _PROCESS_PART, at_most)
    if not found:
        for part in alone.of_parents(facts, settings):
            if _is_long(facts, part, settings):
                found = True
                yield _of_part(part, _PARENT)
        for candidate in _of_threads(facts, settings):
            found = True
            yield candidate
    if not found:
        yield from map(_of_prepared, prepared.of_helpers(facts, settings))


def _of_all(facts: Facts, team: Team, busiest: Worker) -> Candidate:
    many = len(team.workers)
    values: dict[str, Scalar] = {
        "worker": busiest.number,
        "workers": many,
        "alone_ns": busiest.time_ns,
        "alone_share": busiest.bytes / (team.mean(_bytes) * many),
        "moved_bytes": busiest.bytes,
    }
    text, at_most = _PROCESSES, Severity.HIGH
    if team.are_ranks:
        text, at_most = _RANKS, Severity.NOTE if _collects(facts) else Severity.HIGH
    return _candidate(text, values, busiest, busiest.time_ns * (1 - 1 / many), 0.6, at_most)


def _of_threads(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Of few long stretches; many that are alike are told by `io-not-overlapped`."""
    found = [one for one in thread_turns.stretches(facts, settings) if _is_long(facts, one, settings)]
    if not found or any(io_not_overlapped.candidates(facts)):
        return
    for one in found:
        values: dict[str, Scalar] = {
            "threads": one.threads,
            "stretches": one.count,
            "alone_ns": one.alone_ns,
            "moved_bytes": one.bytes,
        }
        yield _candidate(_THREADS, values, one, one.alone_ns * (1 - 1 / one.threads), 0.4)


def _of_prepared(one: prepared.Prepared) -> Candidate:
    values: dict[str, Scalar] = {
        "worker": one.maker,
        "workers": one.helpers + 1,
        "alone_ns": one.alone_ns,
        "alone_share": one.share,
        "moved_bytes": one.bytes,
    }
    text = _PREPARES_THREAD if one.are_threads else _PREPARES_PROCESS
    return _candidate(text, values, one, one.alone_ns * (1 - 1 / one.helpers), 0.5)


def _is_long(facts: Facts, part: alone.Part | thread_turns.Stretches, settings: Settings) -> bool:
    is_long = part.alone_ns >= settings.least_wall * (facts.wall_ns or 0)
    return is_long and part.bytes >= settings.least_bytes


def _of_part(part: alone.Part, text: str, at_most: Severity = Severity.HIGH) -> Candidate:
    values: dict[str, Scalar] = {
        "worker": part.worker,
        "workers": part.workers,
        "alone_ns": part.alone_ns,
        "alone_share": part.share,
        "moved_bytes": part.bytes,
    }
    return _candidate(text, values, part, part.alone_ns * (1 - 1 / part.workers), 0.5, at_most)


def _candidate(
    text: str,
    values: Mapping[str, Scalar],
    of: Worker | alone.Part | thread_turns.Stretches | prepared.Prepared,
    waited_ns: float,
    confidence: float,
    at_most: Severity = Severity.HIGH,
) -> Candidate:
    """WAITED_NS is what the others could have done meanwhile."""
    return Candidate(
        message=Message(text, values),
        count=of.calls,
        time_ns=of.time_ns,
        evidence={"count": of.calls, "time_ns": of.time_ns, **values},
        query=_QUERY,
        confidence=confidence,
        wall_seconds=waited_ns / 1e9,
        gain=(0.3, 0.9),
        at_most=at_most,
        title=_TITLES.get(text),
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
    """How many others have moved so much of the kinds of files that hold what ONE has moved, the same way."""
    numbers = ", ".join(str(other.number) for other in team.workers)
    return f"""WITH members AS (SELECT DISTINCT worker, upid FROM workers
  WHERE (team = -1) = {team.are_ranks} AND worker IN ({numbers})),
parts AS (SELECT m.worker, coalesce(f.pattern, f.name) AS kind, w.written_bytes > w.read_bytes AS writes,
    sum(w.read_bytes + w.written_bytes) AS bytes
  FROM members m JOIN file_work w ON w.upid = m.upid JOIN files f ON f.file_id = w.file_id
  WHERE f.file_id IN (FROM data_files) GROUP BY ALL),
mine AS (SELECT kind, writes, bytes, sum(bytes) OVER () AS whole FROM parts WHERE worker = {one.number}),
others AS (SELECT p.worker FROM parts p JOIN mine m ON m.kind = p.kind AND m.writes = p.writes
  WHERE p.worker <> {one.number} AND m.bytes > 0 AND m.bytes >= 0.1 * m.whole
  GROUP BY p.worker HAVING sum(p.bytes) > 0 AND sum(p.bytes) >= {least_bytes})
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
_COLLECTS_SQL = """WITH asked AS (SELECT DISTINCT f.name FROM uses u JOIN calls c ON c.id = u.call_id
    JOIN files f ON f.file_id = u.file_id WHERE c.family = 'statfs'),
used AS (SELECT w.file_id, count(DISTINCT k.worker) = any_value(k.size) AS by_all,
    any_value(f.name) IN (SELECT name FROM asked) OR any_value(f.folder) IN (SELECT name FROM asked)
      OR (SELECT count(*) FROM asked) = 0 AS by_mpi_io,
    sum(w.read_bytes + w.written_bytes) AS bytes
  FROM workers k JOIN file_work w ON w.upid = k.upid JOIN files f ON f.file_id = w.file_id
  WHERE k.team = -1 AND w.opens > 0 AND f.file_id IN (FROM data_files) GROUP BY w.file_id)
SELECT coalesce(sum(bytes) FILTER (WHERE by_all AND by_mpi_io), 0) > 0.5 * coalesce(sum(bytes), 0)
  AND (SELECT count(DISTINCT host) FROM processes) <= 1 AS collects FROM used"""
_QUERY = """SELECT rank, pid, direction, count(*) AS count, sum(bytes) AS bytes, sum(dur) AS time_ns
FROM call_ends WHERE kind IN ('file', 'regular') AND direction IS NOT NULL GROUP BY rank, pid, direction
ORDER BY time_ns DESC"""
_RANKS = N_(
    "Rank {worker} alone moved {alone_share} of the bytes of {workers} ranks: {moved_bytes}; it spent "
    "{alone_ns} in I/O."
)
_PROCESSES = N_(
    "One of {workers} processes side by side moved {alone_share} of their bytes: {moved_bytes}; it spent "
    "{alone_ns} in I/O."
)
_RANK_PART = N_(
    "Rank {worker} alone reads or writes some kinds of files, {moved_bytes} in all; during {alone_ns} of it "
    "no other of {workers} ranks does any I/O."
)
_PROCESS_PART = N_(
    "One of {workers} processes side by side reads or writes some kinds of files alone, {moved_bytes} in "
    "all; during {alone_ns} of it no other does any I/O."
)
_PARENT = N_(
    "One process moved {alone_share} of the bytes that it and the workers it started read and wrote: "
    "{moved_bytes}; of {workers} processes, the others waited for it for {alone_ns}."
)
_THREADS = N_(
    "{stretches} times one thread did I/O alone, {moved_bytes} in {alone_ns}, and started {threads} threads "
    "that compute only when it had ended."
)
_PREPARES_PROCESS = N_(
    "One process alone read or wrote {moved_bytes}, {alone_share} of the bytes of it and its workers, and "
    "worked on them for {alone_ns} before these were at work, or after."
)
_PREPARES_THREAD = N_(
    "One thread alone read or wrote {moved_bytes}, {alone_share} of the bytes of its process, and worked on "
    "them for {alone_ns} before other threads were at work, or after."
)
_TITLES = {
    _PROCESSES: N_("One process does all the I/O"),
    _PROCESS_PART: N_("One process does some of the I/O alone"),
    _RANK_PART: N_("One rank does some of the I/O alone"),
    _PARENT: N_("One process does the I/O of its workers"),
    _THREADS: N_("One thread does the I/O while no other computes"),
    _PREPARES_PROCESS: N_("One process does the I/O of its workers"),
    _PREPARES_THREAD: N_("One thread does the I/O while no other computes"),
}

RULE = Rule(
    name="serial-phases",
    title=N_("One rank does all the I/O"),
    looks_for=N_(
        "Parallel programs in which one rank, or the process that started the workers, reads or writes "
        "nearly everything, or all files of some kind, while the others wait."
    ),
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
    views=(
        *("worker_io", "workers", "file_work", "uses", "siblings", "thread_io", "programs", "data_files"),
        *("moments", "plain_files"),
    ),
    yields_to=("pipe-bound",),
)
