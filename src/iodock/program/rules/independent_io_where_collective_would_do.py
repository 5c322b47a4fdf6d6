"""Each rank requests its pieces of a file separately, although collective calls could combine them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules import costs, counted
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise, not_of_calls
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `independent-io-where-collective-would-do`."""

    least_share: float = 0.9
    """Share of a file's reads or writes by MPI-IO that each rank must make alone: a library above it makes a
    few such calls, for example for its header, among collective ones."""
    least_each: int = 16
    """Reads or writes of each process to a file that is shared without MPI-IO: a few are no pattern."""


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for reads and one for writes: files of MPI-IO, and files that ranks share without it in
    interleaved pieces. Large pieces in order gain little, and are a note."""
    if facts.ranks < 2:
        return
    for direction, verb in counted.DIRECTIONS:
        faults = counted.transfers(facts, f"t.direction = {direction} AND ({_where(settings)})")
        count, moved = faults.total("count"), faults.total("bytes")
        if not faults or not counted.is_much(facts, moved):
            continue
        pieces = Faults([row for row in faults.rows if counted.mean_bytes(row) < costs.PIECE_BYTES])
        values: dict[str, Scalar] = {
            "count": count, "processes": counted.processes(faults), "mean_bytes": moved / count,
            "files": faults.file_count,
        }  # fmt: skip
        yield counted.candidate(
            facts, faults, _MESSAGES[verb], values, count=count, call=verb, bytes=moved,
            cost_ns=pieces.time_ns if pieces else faults.time_ns,
            at_most=Severity.HIGH if pieces else Severity.NOTE,
        )  # fmt: skip


def _where(settings: Settings) -> str:
    return f"""t.interface = 'mpi-io' AND t.count - t.collective >= {settings.least_share} * t.count
  OR t.interface = 'posix' AND t.movers > 1 AND t.rank IS NULL AND 2 * (t.count - t.consecutive) >= t.count
    AND t.count >= {settings.least_each} * t.movers
    AND t.file_id NOT IN (SELECT file_id FROM counted_transfers WHERE interface = 'mpi-io')"""


_MESSAGES = {
    "read": N_(
        "{processes} processes read independently, {mean_bytes} at a time on average: {count} reads that are "
        "not collective; files: {files}"
    ),
    "write": N_(
        "{processes} processes write independently, {mean_bytes} at a time on average: {count} writes that "
        "are not collective; files: {files}"
    ),
}

RULE = Rule(
    name="independent-io-where-collective-would-do",
    title=N_("Independent I/O where collective calls would do"),
    looks_for=N_(
        "Files of MPI-IO that are read or written by independent calls, and files that ranks share in "
        "interleaved pieces."
    ),
    why=N_(
        "In a collective call a few ranks gather the pieces of all ranks, and request large, ordered "
        "ranges from the servers. In independent calls each piece is a separate request, and neighbours "
        "wait for the same locks."
    ),
    advice=advise(
        any=N_("Read and write shared files by collective calls of MPI-IO or of a library above it."),
        mpi_io=N_(
            "Use MPI_File_read_at_all and MPI_File_write_at_all, with a file view for scattered pieces; "
            "romio_cb_write=enable makes ROMIO gather them."
        ),
        hdf5=N_("Set H5FD_MPIO_COLLECTIVE by H5Pset_dxpl_mpio for each transfer."),
    ),
    fine_when=N_("The ranks do I/O at different times, or each moves large ranges in order."),
    settings=Settings,
    find=not_of_calls,
    needs=(Need.COUNTERS,),
    counters=in_counters,
    counters_need=(Need.MPI_IO, Need.RANKS),
    views=("counted_transfers", "counted_files"),
)
