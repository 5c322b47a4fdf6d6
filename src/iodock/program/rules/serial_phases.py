"""Finds phases in which one process does the I/O while all others wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from iodock.program.findings import Severity
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `serial-phases`."""

    least_workers: int = 3
    "Number of ranks, or parallel processes: if two alternate, each waits half of the time at most."
    least_alone: float = 0.95
    """Minimum share that one process has of the bytes read or written in one kind of file: if others have
    parts of their own, the parts are uneven (`rank-imbalance`)."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for each group of ranks or parallel processes in which a single process
    accesses some kinds of files, or all of them."""
    for row in facts.rows(_alone_sql(settings)):
        if int(row["crew"]) < 0 and facts.collects and _is_aggregator(facts, row):
            continue
        alone = _alone_ns(facts, row)
        if alone > 0:
            yield _candidate(facts, row, alone, settings)


def _candidate(facts: Facts, row: Mapping[str, Any], alone: int, settings: Settings) -> Candidate:
    are_ranks, leads = int(row["crew"]) < 0, bool(row["leads"])
    many = int(row["size"]) + leads
    values: dict[str, Scalar] = {
        "worker": int(row["worker"]),
        "workers": many,
        "alone_ns": alone,
        "alone_share": int(row["bytes"]) / max(1, int(row["crew_bytes"])),
        "moved_bytes": int(row["bytes"]),
    }
    text = _RANK_PART if are_ranks else _PROCESS_PART
    if leads:
        text = _PARENT
    elif int(row["bytes"]) >= settings.least_alone * int(row["crew_bytes"]):
        text = _RANKS if are_ranks else _PROCESSES
    return Candidate(
        message=Message(text, values),
        count=int(row["calls"]),
        time_ns=int(row["time_ns"]),
        evidence={"count": int(row["calls"]), "time_ns": int(row["time_ns"]), **values},
        query=_QUERY,
        confidence=0.5,
        wall_seconds=alone * (1 - 1 / many) / 1e9,
        gain=(0.3, 0.9),
        at_most=Severity.NOTE if are_ranks and _collects(facts) else Severity.HIGH,
        title=_TITLES.get(text),
    )


def _alone_ns(facts: Facts, row: Mapping[str, Any]) -> int:
    """Returns the time in ns that one process was in I/O longer than all others. For a leader, which
    starts the others, it is the time when none of the others existed. If they mostly waited for their
    pipes, it is the leader's whole time in I/O."""
    time_ns, alone = int(row["time_ns"]), int(facts.one(_beside_sql(row))["time_ns"] or 0)
    if row["leads"] and 2 * int(facts.one(_waits_sql(row))["time_ns"] or 0) > time_ns - alone:
        return time_ns
    return min(time_ns, alone)


def _collects(facts: Facts) -> bool:
    """Returns whether one rank may have moved the data of others, as collective calls of MPI-IO let it do
    for the ranks of a node. All of these ranks then have the files open. If the source lacks queries of
    the file system's type, MPI-IO may have been used unseen. If MPI-IO calls were recorded, there is
    nothing to guess, so it returns false."""
    if facts.collects is not None:
        return False
    can_be = facts.mpi_io or not facts.one(_ASKED_SQL)["asked"]
    return can_be and (facts.nodes or 1) == 1 and bool(facts.one(_SHARED_SQL)["are_shared"])


def _is_aggregator(facts: Facts, row: Mapping[str, Any]) -> bool:
    """Returns whether the rank moved most of its bytes in collective calls. If so, `two-phase` reports
    this."""
    moved = facts.one(f"SELECT sum(moved_bytes) AS n FROM collective_io WHERE rank = {row['worker']}")["n"]
    return 2 * int(moved or 0) >= int(row["bytes"])


def _is_alone(settings: Settings) -> str:
    """Returns an SQL condition on `crew_files`: one process has nearly all of the bytes."""
    return f"bytes > 0 AND bytes >= {settings.least_alone} * kind_bytes"


def _alone_sql(settings: Settings) -> str:
    return f"""SELECT crew, worker, leads, size, crew_bytes, sum(calls) AS calls, sum(bytes) AS bytes,
  sum(time_ns) AS time_ns, min(first_ts) AS first_ts, max(last_ts) AS last_ts
FROM crew_files WHERE size >= {settings.least_workers} AND {_is_alone(settings)}
GROUP BY crew, worker, leads, size, crew_bytes
QUALIFY row_number() OVER (PARTITION BY crew ORDER BY sum(time_ns) DESC, worker) = 1"""


def _beside_sql(row: Mapping[str, Any]) -> str:
    return f"""SELECT CAST(sum(greatest(0, time_ns - others_ns)) AS BIGINT) AS time_ns FROM crew_moments
WHERE crew = {row["crew"]} AND worker = {row["worker"]} AND NOT is_followed
  AND end_ts > {row["first_ts"]} AND ts <= {row["last_ts"]}"""


def _waits_sql(row: Mapping[str, Any]) -> str:
    """Returns SQL for the mean time that each of the other processes waited for pipes."""
    return f"""SELECT CAST(sum(u.time_ns) / {row["size"]} AS BIGINT) AS time_ns FROM crews c
  JOIN processes p ON p.upid = c.upid JOIN uses u ON u.utid = p.utid JOIN files f ON f.file_id = u.file_id
WHERE c.crew = {row["crew"]} AND NOT c.leads AND u.direction = 1 AND f.kind IN ('pipe', 'fifo', 'socket')"""


_ASKED_SQL = """SELECT count(*) AS asked FROM uses u JOIN calls c ON c.id = u.call_id
WHERE c.family = 'statfs'"""
_SHARED_SQL = """WITH used AS (SELECT w.file_id, count(DISTINCT k.worker) = any_value(k.size) AS by_all,
    sum(w.read_bytes + w.written_bytes) AS bytes
  FROM workers k JOIN file_work w ON w.upid = k.upid
  WHERE k.team = -1 AND w.opens > 0 AND w.file_id IN (FROM data_files) GROUP BY w.file_id)
SELECT sum(bytes) FILTER (WHERE by_all) > 0.5 * sum(bytes) AS are_shared FROM used"""
_QUERY = """SELECT rank, pid, direction, count(*) AS count, sum(bytes) AS bytes, sum(dur) AS time_ns
FROM call_ends WHERE kind IN ('file', 'regular') AND direction IS NOT NULL GROUP BY rank, pid, direction
ORDER BY time_ns DESC"""
_RANKS = N_(
    "Rank {worker} alone transferred {alone_share} of the bytes of {workers} ranks: {moved_bytes}; it "
    "spent {alone_ns} in I/O."
)
_PROCESSES = N_(
    "One of {workers} processes side by side moved {alone_share} of their bytes: {moved_bytes}; it spent "
    "{alone_ns} in I/O."
)
_RANK_PART = N_(
    "Rank {worker} alone reads or writes some kinds of files, {moved_bytes} in total; during {alone_ns} of"
    " it no other of {workers} ranks does any I/O."
)
_PROCESS_PART = N_(
    "One of {workers} processes side by side reads or writes some kinds of files alone, {moved_bytes} in "
    "all; during {alone_ns} of it no other does any I/O."
)
_PARENT = N_(
    "One process transferred {alone_share} of the bytes that it and its workers read and wrote: "
    "{moved_bytes}; of {workers} processes, the others waited for it for {alone_ns}."
)
_TITLES = {
    _PROCESSES: N_("One process does all the I/O"),
    _PROCESS_PART: N_("One process does some of the I/O alone"),
    _RANK_PART: N_("One rank does some of the I/O alone"),
    _PARENT: N_("One process does the I/O of its workers"),
}

RULE = Rule(
    name="serial-phases",
    title=N_("One rank does all the I/O"),
    looks_for=N_(
        "Parallel programs in which one rank, or the process that started the workers, reads or writes "
        "nearly everything, or all files of some kind, while the others wait."
    ),
    why=N_(
        "While one rank works, all others wait, and the job pays for idle nodes; one process reaches "
        "only a part of a parallel file system's rate."
    ),
    advice=advise(
        any=N_("Let each rank read and write its own part, in the same file or by a few ranks for all."),
        fortran=N_(
            "Replace the gather to rank 0 before WRITE by MPI-IO or a library (NetCDF, HDF5) in parallel."
        ),
        python=N_(
            "Let each worker read and write its own part of the file; with mpi4py use MPI.File with "
            "Read_at_all and Write_at_all."
        ),
        mpi_io=N_("Use MPI_File_read_all and MPI_File_write_all with one file view per rank."),
        hdf5=N_("Open with H5Pset_fapl_mpio, and let each rank write its hyperslab collectively."),
    ),
    fine_when=N_("The amount is small, or the others compute at the same time."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS, Need.EVERY_RANK),
    views=(
        *("crew_files", "crew_moments", "crews", "workers", "file_work", "uses", "data_files"),
        "collective_io",
    ),
    yields_to=("pipe-bound",),
)
