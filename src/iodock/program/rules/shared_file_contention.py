"""Finds files that several processes write in small interleaved pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from iodock.program.findings import Severity
from iodock.program.rules import costs, counted
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar

APPEND = 0o2000


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `shared-file-contention`."""

    least_each: int = 20
    """Number of writes of one process to the file from which on it counts as a writer."""
    least_together: float = 1.2
    """Minimum mean number of simultaneous writers of the file while it is written: their writes overlap."""
    least_lock_times: float = 10.0
    "Factor by which a lock must exceed the fastest quarter of the calls to count as waited for."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for files that several processes wrote at the same time in interleaved pieces,
    and one for files on whose locks they waited."""
    known: set[str] = set()
    for sql, call in ((_written_sql(settings), "write"), (_locked_sql(settings), "fcntl")):
        faults = Faults([row for row in facts.rows(sql) if row["name"] not in known])
        known |= set(faults.files)
        if faults and costs.worth_a_word(facts, faults.time_ns, faults.total("count")):
            yield _candidate(facts, faults, call)


def _candidate(facts: Facts, faults: Faults, call: str) -> Candidate:
    count, spent = faults.total("count"), faults.sum_of("time_ns" if call == "write" else "all_ns")
    values: dict[str, Scalar] = {
        "count": count,
        "writers": max(int(row["writers"]) for row in faults.rows),
        "mean_bytes": faults.total("bytes") / count,
        "mean_ns": None if spent is None else spent // count,
        "files": faults.file_count,
    }
    message = _MESSAGE if facts.durations else _MESSAGE_UNTIMED
    return Candidate(
        message=Message(message if call == "write" else _LOCKS, values),
        count=count,
        time_ns=faults.time_ns,
        evidence={"time_ns": faults.time_ns, "bytes": faults.total("bytes"), **values},
        query=_QUERY if call == "write" else _LOCKS_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call=call,
        confidence=0.75,
        gain=(0.4, 1.0),
        advice=None if call == "write" else _LOCKS_ADVICE,
    )


# If workers take turns on few processors, each writes a group of pieces while the others do not write; such
# files are left out. The cost includes locks on the file, because processes that share a file in small pieces
# use them. A piece is small if it is less than one large request.
def _written_sql(settings: Settings) -> str:
    return f"""WITH writers AS (SELECT *, write_ns + coalesce(metadata_ns, 0) - coalesce(open_ns, 0) AS ns,
    last_ts - greatest(first_ts, coalesce(max(last_ts) OVER (PARTITION BY file_id ORDER BY first_ts, last_ts
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), first_ts)) AS later
  FROM file_work WHERE writes >= {settings.least_each} AND file_id IN (FROM plain_files)),
shared AS (SELECT file_id, count(*) AS writers, sum(writes) AS count, sum(written_bytes) AS bytes,
    sum(ns) AS time_ns FROM writers GROUP BY file_id
  HAVING count(*) >= 2 AND sum(written_bytes) < {costs.PIECE_BYTES} * sum(writes) AND max(later) > 0
    AND sum(last_ts - first_ts) >= {settings.least_together} * sum(greatest(0, later))),
mixed AS (SELECT place FROM transfers WHERE direction = 2 AND pattern > 1 GROUP BY place
  HAVING 2 * coalesce(sum(count) FILTER (WHERE pattern >= 3), 0) >= sum(count)
UNION SELECT p.place FROM opens o JOIN places p ON p.file_id = o.file_id
  WHERE o.flags & {APPEND} <> 0 AND o.errno_id IS NULL)
SELECT p.name, count(*) AS file_count, max(s.writers) AS writers, CAST(sum(s.count) AS BIGINT) AS count,
  CAST(sum(s.bytes) AS BIGINT) AS bytes, CAST(sum(s.time_ns) AS BIGINT) AS time_ns
FROM shared s JOIN places p ON p.file_id = s.file_id WHERE p.place IN (FROM mixed)
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


# Taking a free lock is immediate, and so is releasing a lock, and half of the calls release one. The fastest
# quarter of the calls therefore shows how long a call takes without waiting.
def _locked_sql(settings: Settings) -> str:
    return f"""WITH lockers AS (SELECT u.file_id FROM uses u JOIN calls c ON c.id = u.call_id
    JOIN processes q ON q.utid = u.utid
  WHERE c.family IN ('fcntl', 'flock') AND u.file_id IN (FROM plain_files)
  GROUP BY u.file_id HAVING count(DISTINCT q.upid) >= 2 AND sum(u.count) >= 2 * {settings.least_each}),
asked AS (SELECT e.file_id, q.upid, e.dur, greatest({costs.LEAST_CALL_NS}, quantile_cont(e.dur, 0.25)
      OVER (PARTITION BY e.file_id)) AS free_ns
  FROM events e JOIN processes q ON q.utid = e.utid JOIN calls c ON c.id = e.call_id
  WHERE c.family IN ('fcntl', 'flock') AND e.dur IS NOT NULL AND e.file_id IN (FROM lockers))
SELECT p.name, count(DISTINCT a.file_id) AS file_count, count(DISTINCT a.upid) AS writers, count(*) AS count,
  CAST(0 AS BIGINT) AS bytes, CAST(sum(a.dur) AS BIGINT) AS all_ns,
  CAST(sum(a.dur - a.free_ns) FILTER (WHERE a.dur >= {settings.least_lock_times} * a.free_ns) AS BIGINT)
    AS time_ns
FROM asked a JOIN places p ON p.file_id = a.file_id GROUP BY p.place, p.name HAVING time_ns > 0
ORDER BY time_ns DESC, count DESC, p.name"""


_QUERY = """SELECT file, pid, rank, count(*) AS writes, sum(bytes) AS bytes, avg(dur) AS mean_ns
FROM call_ends WHERE direction = 'write' AND kind IN ('file', 'regular') GROUP BY file, pid, rank
ORDER BY file, writes DESC"""
_LOCKS_QUERY = """SELECT file, pid, rank, call, count(*) AS locks, sum(dur) AS time_ns, max(dur) AS longest_ns
FROM call_ends WHERE family IN ('fcntl', 'flock') GROUP BY file, pid, rank, call ORDER BY time_ns DESC"""
_LOCKS = N_(
    "Up to {writers} processes at a time waited for each other's locks of the same file: {count} calls of "
    "{mean_ns} on average; files: {files}"
)
_LOCKS_ADVICE = advise(
    any=N_(
        "Let each process write a file or a region of its own, so that no lock is needed, or collect many "
        "records and lock once for all of them."
    ),
    c=N_("Lock only the bytes that are written (fcntl with l_start and l_len), and not while computing."),
    python=N_("Send the records to one process that writes, through a queue, in place of a lock for each."),
    shell=N_("Let each job write its own file in place of flock, and join them with cat at the end."),
    mpi_io=N_("Write collectively, and leave MPI_File_set_atomicity off."),
    hdf5=N_("Set HDF5_USE_FILE_LOCKING=FALSE where each process has its own file."),
)
_MESSAGE = N_(
    "Up to {writers} processes at a time wrote the same file in interleaved pieces of {mean_bytes}: "
    "{count} writes of {mean_ns} on average; files: {files}"
)
_MESSAGE_UNTIMED = N_(
    "Up to {writers} processes at a time wrote the same file in interleaved pieces of {mean_bytes}: "
    "{count} writes; files: {files}"
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields files that several processes use. Counters do not show whether the processes wait for each
    other. If several of them write small pieces, this is likely; otherwise the candidate is a note."""
    faults = counted.transfers(facts, _COUNTED_SQL)
    count, moved = faults.total("count"), faults.total("bytes")
    if not faults or not counted.is_much(facts, moved):
        return
    written = [row for row in faults.rows if row["direction"] == 2]
    small = [
        row
        for row in written
        if row["count"] >= settings.least_each * row["movers"] and counted.mean_bytes(row) < costs.PIECE_BYTES
    ]
    values: dict[str, Scalar] = {
        "count": count, "writers": counted.processes(faults),
        "mean_bytes": moved / count, "files": len(set(faults.files)),
    }  # fmt: skip
    found = counted.candidate(
        facts, Faults(small) if small else faults, _COUNTED, values, count=count, bytes=moved,
        cost_ns=Faults(small).time_ns if small else None,
        at_most=Severity.HIGH if small else Severity.NOTE,
    )  # fmt: skip
    yield found if small else replace(found, title=_TITLE_SHARED)


# SQL condition that leaves out files of MPI-IO, in which a few ranks may move the data that all of them
# requested.
_COUNTED_SQL = """t.interface <> 'mpi-io' AND t.bytes > 0
  AND t.file_id IN (SELECT file_id FROM counted_transfers WHERE movers > 1)"""
_TITLE_SHARED = N_("Several processes share a file")
_COUNTED = N_(
    "{writers} processes share a file: {count} reads and writes of {mean_bytes} on average; files: {files}"
)


RULE = Rule(
    name="shared-file-contention",
    title=N_("Many writers, small pieces, one file"),
    looks_for=N_(
        "Files that several processes write at the same time, in small interleaved pieces, or whose "
        "locks they wait for."
    ),
    why=N_(
        "The file system allows one writer at a time in a block or stripe, and passes the lock on for each"
        " request: more writers make it slower."
    ),
    advice=advise(
        any=N_(
            "Give each writer one large region of the file, or collect the pieces in one process that "
            "writes them."
        ),
        c=N_(
            "Collect pieces of 1 MiB or more, and write them at offsets that are multiples of the stripe "
            "size."
        ),
        fortran=N_(
            "Gather the records in some ranks that write long contiguous ranges, or use MPI-IO or HDF5."
        ),
        python=N_("Let one process write what the others send through a queue; for logs use a QueueHandler."),
        shell=N_("Let each process write its own file, and join them with cat at the end."),
        mpi_io=N_(
            "On a parallel file system write collectively (MPI_File_write_all) with a file view: "
            "aggregators combine the pieces. On a local disk this costs more than it saves."
        ),
        hdf5=N_("Use collective transfers (H5FD_MPIO_COLLECTIVE), and chunks that belong to one rank each."),
        administrator=N_("For such files set the stripe size to the size of one process's part."),
    ),
    fine_when=N_("A log of a few lines, or a database that keeps its own locks."),
    settings=Settings,
    find=find,
    counters=in_counters,
    counters_need=(Need.RANKS,),
    needs=(
        Need.EVERY_RANK,
        Need.RANKS_OWN,
    ),
    views=(
        "file_work",
        "places",
        "transfers",
        "opens",
        "uses",
        "plain_files",
        "counted_transfers",
        "counted_files",
    ),
    yields_to=("independent-io-where-collective-would-do",),
    case="shared-file",
)
