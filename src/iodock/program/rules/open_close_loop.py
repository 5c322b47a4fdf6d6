"""Finds files that a process repeatedly opens, uses a little and closes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, counted
from iodock.program.rules.base import Candidate, Facts, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `open-close-loop`."""

    least_count: int = 200
    "Number of unnecessary opens below which nothing is reported."
    least_opens: int = 20
    "Number of opens of one file by one process, from which on the file should have stayed open."
    most_bytes: int = 262144
    "Maximum mean number of bytes for each open: with more, the cost of the open hardly matters."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all files that a process opened too often. One open and one close of each file
    are not counted."""
    faults = Faults(facts.rows(_sql(settings)))
    count = faults.total("count")
    if count < settings.least_count or not costs.worth_a_word(facts, faults.time_ns, count):
        return
    opens = faults.total("opens")
    values = {
        "opens": opens,
        "files": faults.file_count,
        "mean_bytes": faults.total("bytes") / opens,
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=faults.total("calls"),
        time_ns=faults.time_ns,
        evidence={"count": count, "opens": opens, "time_ns": faults.time_ns, "bytes": faults.total("bytes")},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="open",
        confidence=0.9,
        gain=costs.CALLS_GO,
        pieces=Pieces.OPENS,
    )


_MOST_REST = 4
"""Number of metadata calls of other kinds that are allowed for each open. Go's runtime makes four fcntl
calls."""


# The cost includes the calls that a program saves with each open: the close, and the fstat, ioctl, fcntl and
# seeks that libraries make before an access. If the file stays open, its buffer also combines the small
# accesses.
def _sql(settings: Settings) -> str:
    spared = "(w.opens - 1) / w.opens"
    with_it = " + ".join(
        f"coalesce(w.{name}_ns, 0) * least(1, {most} * w.opens / w.{name}s)"
        for name, most in (("stat", 1), ("seek", 2), ("other", 1))
    )
    opening = costs.repeated_ns("w.open_ns", "w.opens", "w.longest_open_ns")
    closing = costs.repeated_ns("w.close_ns", "w.opens", "w.longest_close_ns")
    rest = "nullif(greatest(w.metadata - w.opens - w.stats - w.closes, 0), 0)"
    rest_ns = "(w.metadata_ns - w.open_ns - coalesce(w.stat_ns, 0) - coalesce(w.close_ns, 0))"
    with_it += f" + coalesce({rest_ns} * least(1, {_MOST_REST} * w.opens / {rest}), 0)"
    return f"""SELECT p.name, count(DISTINCT w.file_id) AS file_count, CAST(sum(w.opens) AS BIGINT) AS opens,
  CAST(sum(w.opens - 1) AS BIGINT) AS count, CAST(sum(w.read_bytes + w.written_bytes) AS BIGINT) AS bytes,
  CAST(sum((w.opens + w.closes + least(w.stats, w.opens) + least(w.seeks, 2 * w.opens)
    + least(w.others, w.opens) + least(coalesce({rest}, 0), {_MOST_REST} * w.opens) + w.reads + w.writes)
    * {spared}) AS BIGINT) AS calls,
  CAST(sum({opening} + coalesce({closing}, 0) + ({with_it} + {_BUFFERED}) * {spared}) AS BIGINT) AS time_ns
FROM file_work w JOIN places p ON p.file_id = w.file_id JOIN files f ON f.file_id = w.file_id
WHERE w.opens >= {settings.least_opens} AND (f.file_id IN (FROM plain_files) OR {_CONNECTED} OR {_KERNEL})
  AND w.reads + w.writes > 0
  AND w.read_bytes + w.written_bytes <= {settings.most_bytes} * w.opens
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


# SQL for the time that is saved if the file's buffer stays allocated and moves the data in large pieces.
_BUFFERED = f"""greatest(0, coalesce(w.read_ns, 0) + coalesce(w.write_ns, 0)
  - 1e9 * (w.read_bytes + w.written_bytes) / {costs.WRITE_BYTES_PER_S})"""
# SQL condition: the file is a database, which is opened once for each connection. Its journal does not count,
# because it is opened for each transaction.
_CONNECTED = """(f.file_id IN (FROM database_files) AND NOT regexp_matches(f.name, '-(journal|wal|shm)$'))"""
# SQL condition: the file shows the kernel's information on a process or the machine. A process must read it
# from its beginning to get current values.
_KERNEL = "(f.kind IN ('file', 'regular', 'unknown') AND regexp_matches(f.name, '^/proc/'))"
_QUERY = """SELECT file, pid, count(*) FILTER (WHERE family = 'open') AS opens,
  count(*) FILTER (WHERE direction IS NOT NULL) AS transfers, sum(bytes) AS bytes, sum(dur) AS time_ns
FROM call_ends WHERE kind IN ('file', 'regular') GROUP BY file, pid ORDER BY opens DESC"""
_MESSAGE = N_(
    "{opens} opens of files that the same process had opened before; files: {files}. Each time "
    "{mean_bytes} were read or written."
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for repeated opens in counters. The cost is the part of a file's metadata time
    for all opens except the first of each rank."""
    moved = "t.read_bytes + t.written_bytes"
    faults = counted.files(
        facts,
        f"t.opens >= {settings.least_opens} * t.ranks AND {moved} < {settings.most_bytes} * t.opens",
    )
    opens = faults.total("opens")
    spared = [(int(row["opens"]) - int(row["ranks"])) / int(row["opens"]) for row in faults.rows]
    count = opens - sum(int(row["ranks"]) for row in faults.rows)
    cost = round(sum(int(row["meta_ns"]) * one for row, one in zip(faults.rows, spared, strict=True)))
    if count < settings.least_count or not counted.matters(facts, cost, count):
        return
    size = faults.total("read_bytes") + faults.total("written_bytes")
    values: dict[str, Scalar] = {"opens": opens, "files": faults.file_count, "mean_bytes": size / opens}
    yield counted.candidate(
        facts, faults, _MESSAGE, values, cost_ns=cost, count=count, call="open", gain=costs.CALLS_GO
    )


RULE = Rule(
    name="open-close-loop",
    title=N_("Opened and closed again and again"),
    looks_for=N_("Files that one process opens, reads or writes a little, and closes, many times over."),
    why=N_(
        "An open and a close cost more than a small write. On a network file system each close sends the "
        "data to the server and waits, and each open asks whether the file has changed."
    ),
    advice=advise(
        any=N_(
            "Open the file once before the loop and close it after; flush where others must see the lines."
        ),
        c=N_("Keep the FILE* or descriptor open; use fflush where the line must be seen at once."),
        cpp=N_("Keep the stream as a member or outside of the loop; use std::flush where needed."),
        fortran=N_(
            "OPEN once before the time loop and use FLUSH(unit) in place of CLOSE and OPEN with APPEND."
        ),
        python=N_("Put the with open(...) around the loop; logging handlers keep their file open, too."),
        numpy=N_("Give numpy.save or numpy.savetxt a file that was opened before the loop, not its name."),
        pandas=N_(
            "Collect the tables in a list and call pandas.concat(tables).to_csv(...) once, in place of "
            "to_csv(mode='a') in the loop; or hand to_csv a file that is open."
        ),
        zarr=N_("Call zarr.open_array once before the loop, and keep the array."),
        shell=N_("Redirect the whole loop (done >> file) in place of each command in it."),
        mpi_io=N_("MPI_File_open once; MPI_File_sync where the others must see the data."),
        hdf5=N_("Keep the file open with H5Fflush, or SWMR for readers, in place of H5Fopen in each step."),
    ),
    fine_when=N_(
        "The file is reopened rarely (a checkpoint every few minutes), or other programs must access it in"
        " between."
    ),
    settings=Settings,
    find=find,
    counters=in_counters,
    views=("file_work", "places", "database_files", "plain_files", "counted_files"),
    # A program that rewrites a file each time must also truncate it, so the opens are a consequence of the
    # rewriting.
    yields_to=("shared-file-contention", "slow-call", "redundant-writes"),
    case="open-close",
)
