"""Finds reads and writes that are far smaller than the units that a file system handles at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, counted, mpi_io, transfers
from iodock.program.rules.base import Candidate, Facts, Need, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `small-requests`."""

    below_bytes: int = 4096
    "Size below which requests are small on a local file system; powers of two are counted."
    below_bytes_remote: int = 65536
    "The same threshold on a network or parallel file system."
    least_share: float = 0.5
    """Minimum share of the transfers of a file (or file pattern) that are small and continue the previous
    access: if more of them step back, the order is the problem."""
    least_counted: int = 100
    """Minimum number of requests in counters, which do not show how long each request waited: fewer requests
    are not a pattern."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for reads and one for writes: all places where most requests are small and
    sequential."""
    for direction, verb in ((1, "read"), (2, "write")):
        faults = Faults(facts.rows(_sql(direction, settings, facts)))
        count, moved = faults.total("count"), faults.total("bytes")
        spent = facts.typical(faults.sum_of("typical_ns"), faults.time_ns)
        cost = costs.beyond_large(spent, count, moved, direction)
        if not faults or not costs.worth_a_word(facts, cost, count):
            continue
        values = {"count": count, "mean_bytes": moved / count, "files": faults.file_count}
        yield Candidate(
            message=Message(_MESSAGES[verb], values),
            count=count,
            time_ns=cost,
            evidence={"count": count, "bytes": moved, "time_ns": faults.time_ns},
            query=_query(direction, settings),
            **faults.where,
            gain=costs.CALLS_GO,
            pieces=Pieces.CALLS,
        )


def _sql(direction: int, settings: Settings, facts: Facts) -> str:
    far, near = ((one - 1).bit_length() - 1 for one in (settings.below_bytes_remote, settings.below_bytes))
    largest = f"CASE WHEN p.place IN (FROM remote_places) THEN {far} ELSE {near} END"
    small = f"t.size_bin BETWEEN 0 AND {largest} AND t.pattern IN (0, 2, 3, 4)"
    shared = f" AND t.place NOT IN ({_MPI_IO_SQL})" if facts.mpi_io else ""
    summed = ("count", "time_ns", "typical_ns", "bytes")
    return transfers.by_place(
        {name: f"sum(t.{name}) FILTER (WHERE {small})" for name in summed},
        where=f"t.direction = {direction} AND t.size_bin >= 0 AND p.place IN (FROM plain_places){shared}",
        having=f"sum(t.count - t.back) FILTER (WHERE {small}) >= {settings.least_share} * sum(t.count)",
        first="typical_ns",
    )


# SQL for places of files that were opened with MPI-IO. The library may have split or combined the requests of
# the ranks, so the sizes are not the program's.
_MPI_IO_SQL = f"SELECT place FROM places WHERE file_id IN ({mpi_io.FILES})"


def _query(direction: int, settings: Settings) -> str:
    side = "read" if direction == 1 else "write"
    return f"""SELECT file, call, count(*) AS count, avg(bytes) AS mean_bytes, sum(dur) AS time_ns
FROM call_ends WHERE direction = '{side}' AND bytes BETWEEN 1 AND {settings.below_bytes - 1}
GROUP BY file, call ORDER BY time_ns DESC"""


_MESSAGES = {
    "read": N_("{count} reads of {mean_bytes} on average; files: {files}"),
    "write": N_("{count} writes of {mean_bytes} on average; files: {files}"),
}


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields files whose requests are mostly small according to counters. The requests may be in any
    order, because histograms show their sizes but not their order."""
    for direction, verb, faults in counted.in_each_direction(facts, _counted_sql(settings), together=True):
        count, moved = faults.total("count"), faults.total("bytes")
        if count < settings.least_counted:
            continue
        values: dict[str, Scalar] = {
            "count": count, "mean_bytes": moved / count, "files": faults.file_count,
        }  # fmt: skip
        yield counted.candidate(
            facts, faults, _MESSAGES[verb], values, count=count, call=verb, bytes=moved,
            gain=counted.gain_if_local(faults, costs.CALLS_GO),
            cost_ns=costs.beyond_large(faults.time_ns, count, moved, direction),
        )  # fmt: skip


# If the limit is inside a bin of the histogram, the requests of this bin count as small if the file's mean
# size is below the limit.
def _counted_sql(settings: Settings) -> str:
    limit = f"CASE WHEN t.is_remote THEN {settings.below_bytes_remote} ELSE {settings.below_bytes} END"
    return f"""t.interface = 'posix' AND NOT (t.direction = 2 AND coalesce(t.{counted.IS_SYNCED}, false))
  AND {settings.least_share} * t.count <= (SELECT sum(s.count)
  FROM counted_sizes s WHERE s.file_id = t.file_id AND s.interface = 'posix' AND s.direction = t.direction
    AND s.low < {limit} AND (s.high <= {limit} OR t.bytes < {limit} * t.count))"""


RULE = Rule(
    name="small-requests",
    title=N_("Small requests"),
    looks_for=N_(
        "Files that are read or written sequentially, mostly in requests far smaller than a file system "
        "handles at once."
    ),
    why=N_(
        "Each request costs a system call, and on a network or parallel file system perhaps a trip to the "
        "server, however few bytes it moves."
    ),
    advice=advise(
        any=N_("Read and write in pieces of 1 MiB or more, or let a buffer do it."),
        c=N_("Use fread/fwrite with setvbuf(file, NULL, _IOFBF, 1 << 20) in place of read/write."),
        cpp=N_(
            "End lines with '\\n' in place of std::endl, which flushes, and give the stream a large buffer "
            "before it opens its file: stream.rdbuf()->pubsetbuf(buffer, 1 << 20)."
        ),
        fortran=N_("Write whole arrays in one WRITE statement; raise the run-time library's buffer size."),
        python=N_("Open with buffering=1 << 20, don't flush each record, and don't use os.read/os.write."),
        numpy=N_("Use array.tofile(file) or numpy.save on whole arrays, not on one row or value at a time."),
        pandas=N_("Collect the pieces in a list, and write pandas.concat(pieces).to_csv(...) once."),
        shell=N_("Let one command handle the whole file: awk, sort or sed in place of a loop over lines."),
        mpi_io=N_(
            "On a parallel file system use collective calls (MPI_File_write_all): they combine the "
            "ranks' small pieces. On a local disk they cost more than they save."
        ),
        hdf5=N_(
            "Read and write whole hyperslabs (in h5py dataset[i:i + 1000]); choose chunks of 1 MiB or more."
        ),
    ),
    fine_when=N_("A program answers requests one by one (a database, a log that must be complete at once)."),
    settings=Settings,
    find=find,
    counters=in_counters,
    needs_for_some=(Need.RANKS_OWN,),
    one_direction=True,
    views=(
        *("transfers", "place_names", "places", "plain_places", "remote_places", "uses"),
        *("counted_transfers", "counted_sizes", "counted_files"),
    ),
    yields_to=(
        *("bytewise-read", "seek-storm", "stdout-unbuffered", "random-access"),
        *("synchronous-flags", "read-after-write", "open-close-loop", "shared-file-contention"),
        *("write-in-compute-loop", "chunks-against-access"),
    ),
    case="small-writes",
)
