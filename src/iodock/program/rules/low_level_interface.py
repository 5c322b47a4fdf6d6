"""Finds large amounts of data that are moved through the C library's streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, counted
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise, not_of_calls
from iodock.shared.language import N_
from iodock.shared.message import Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `low-level-interface`."""

    least_share: float = 0.25
    """Minimum share of the bytes read, or written, that go through streams: a smaller share is a job's
    settings and logs."""


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for reads through streams and one for writes."""
    for direction, verb in counted.DIRECTIONS:
        faults = counted.transfers(
            facts, f"t.interface = 'stdio' AND t.direction = {direction}", together=True
        )
        others = counted.totals(facts, f"interface = 'posix' AND direction = {direction}")
        moved = faults.total("bytes")
        share = moved / max(1, moved + others["bytes"])
        if not faults or share < settings.least_share or not counted.is_much(facts, moved):
            continue
        count = faults.total("count")
        values: dict[str, Scalar] = {
            "moved_bytes": moved, "stream_share": share, "mean_bytes": moved / count,
            "files": faults.file_count,
        }  # fmt: skip
        yield counted.candidate(
            facts, faults, _MESSAGES[verb], values, count=count, call=verb,
            cost_ns=costs.beyond_large(faults.time_ns, count, moved, direction),
        )  # fmt: skip


_MESSAGES = {
    "read": N_(
        "{moved_bytes} are read through streams of the C library (fread, fscanf), {stream_share} of all, in "
        "pieces of {mean_bytes} on average; files: {files}"
    ),
    "write": N_(
        "{moved_bytes} are written through streams of the C library (fwrite, fprintf), {stream_share} of "
        "all, in pieces of {mean_bytes} on average; files: {files}"
    ),
}

RULE = Rule(
    name="low-level-interface",
    title=N_("Large volumes through the C library's streams"),
    looks_for=N_("Jobs that transfer much of their data with fread, fwrite, fprintf and similar functions."),
    why=N_(
        "A stream splits all requests into pieces of its buffer size, mostly 4 KiB, copies each byte an "
        "extra time, and can't combine the requests of several ranks as MPI-IO can."
    ),
    advice=advise(
        any=N_(
            "Transfer large data with read and write in requests of 1 MiB or more; keep streams for texts."
        ),
        c=N_("If it must be a stream: setvbuf(file, NULL, _IOFBF, 1 << 20) before the first access."),
        mpi_io=N_("Let ranks that share a file use MPI_File_read_all and MPI_File_write_all."),
        hdf5=N_("Write arrays as data sets, which HDF5 moves in large pieces, in place of text."),
    ),
    fine_when=N_("The files are texts that people read, or the stream's buffer was made large."),
    settings=Settings,
    find=not_of_calls,
    needs=(Need.COUNTERS,),
    counters=in_counters,
    views=("counted_transfers", "counted_files"),
)
