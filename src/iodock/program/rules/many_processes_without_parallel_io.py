"""Finds jobs in which several ranks move their data without MPI-IO."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules import counted
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise, not_of_calls
from iodock.shared.language import N_
from iodock.shared.message import Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `many-processes-without-parallel-io`."""

    least_share: float = 0.5
    "Minimum share of the job's bytes that several ranks transfer without MPI-IO."


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate, which is only a note, because other rules report the cost if there is any.
    Files that one rank moves for all others are left out, because this is not parallel work."""
    faults = counted.transfers(facts, _WHERE, together=True)
    movers = counted.processes(faults)
    moved = faults.total("bytes")
    is_most = moved >= settings.least_share * counted.totals(facts, "interface <> 'mpi-io'")["bytes"]
    if not faults or movers < 2 or not is_most or not counted.is_much(facts, moved):
        return
    count = faults.total("count")
    main = counted.main(faults)
    values: dict[str, Scalar] = {
        "processes": movers, "moved_bytes": moved, "files": len(set(main.files)), "mean_bytes": moved / count,
    }  # fmt: skip
    yield counted.candidate(
        facts, main, _MESSAGE, values, cost_ns=faults.time_ns, count=count, at_most=Severity.NOTE
    )


_WHERE = """t.interface <> 'mpi-io' AND (t.movers > 1 OR t.rank IS NOT NULL)
  AND t.file_id NOT IN (SELECT file_id FROM counted_transfers WHERE interface = 'mpi-io')"""
_MESSAGE = N_(
    "{processes} processes move {moved_bytes} without MPI-IO, in pieces of {mean_bytes} on average; "
    "files: {files}"
)

RULE = Rule(
    name="many-processes-without-parallel-io",
    title=N_("Many processes without parallel I/O"),
    looks_for=N_("Jobs whose ranks read and write most of their data with POSIX calls or streams."),
    why=N_(
        "The file system sees each rank separately. MPI-IO knows the requests of all ranks, and can "
        "combine them, choose which rank contacts which server, and write one file instead of many."
    ),
    advice=advise(
        any=N_(
            "If the ranks' requests are small, out of order or to one file, use MPI-IO, or a library above "
            "it (HDF5, PnetCDF, ADIOS)."
        ),
        mpi_io=N_("Open the file with MPI_File_open on all ranks, and use MPI_File_write_at_all."),
        hdf5=N_("Build on parallel HDF5: H5Pset_fapl_mpio, and H5FD_MPIO_COLLECTIVE for transfers."),
    ),
    fine_when=N_("Each rank has its own file with large requests, and there are not too many files."),
    settings=Settings,
    find=not_of_calls,
    needs=(Need.COUNTERS,),
    counters=in_counters,
    counters_need=(Need.MPI_IO, Need.RANKS),
    views=("counted_transfers", "counted_files"),
)
