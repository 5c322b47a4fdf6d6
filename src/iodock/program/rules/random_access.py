"""Finds reads and writes that jump forward and backward in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Advice, Severity
from iodock.program.rules import costs, counted, transfers
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.program.rules.unaligned_requests import PAGE_BYTES
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `random-access`."""

    least_needed: float = 0.5
    """Minimum share of a file that is read, for the advice to read the whole file."""
    least_ahead: float = 0.25
    """Minimum share of the accesses to a file (or file pattern) that jump ahead: with fewer it is read
    sequentially or backward."""
    least_returns: int = 16
    "Minimum number of backward jumps in each file: a few are accesses to a table of contents."
    below_bytes: int = 262144
    "Mean size from which requests are worth the jump to their offset."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for reads and one for writes: all places that are accessed at random."""
    for direction, verb in ((1, "read"), (2, "write")):
        faults = faults_of(facts, direction, settings)
        count, moved = faults.total("count"), faults.total("bytes")
        cost = costs.beyond_large(faults.time_ns, count, moved - faults.total("again"), direction)
        if not faults or not costs.worth_a_word(facts, cost, count):
            continue
        share = faults.total("jumps") / count
        values = {
            "count": count, "mean_bytes": moved / count, "jump_share": share, "files": faults.file_count,
        }  # fmt: skip
        yield Candidate(
            message=Message(_MESSAGES[verb], values),
            count=count,
            time_ns=cost,
            evidence={
                "count": count,
                "jumps": faults.total("jumps"),
                "bytes": moved,
                "time_ns": faults.time_ns,
            },
            query=_query(direction),
            **faults.where,
            gain=(0.35, 1.0),
            advice=_advice(facts, faults, settings, direction),
        )


def _advice(facts: Facts, faults: Faults, settings: Settings, direction: int) -> tuple[Advice, ...]:
    """Returns the advice that fits the share of the files, and of each request, that the program needs."""
    # If requests have the size of a page or more, they may fill the buffer of a library, and the program may
    # use only a part of it.
    fills = direction == 1 and faults.total("bytes") >= PAGE_BYTES * faults.total("count")
    known = RULE.advice if _is_most_needed(facts, faults, settings) else _FEW_NEEDED
    return (*(_BUFFERED if fills else ()), *known)


def _is_most_needed(facts: Facts, faults: Faults, settings: Settings) -> bool:
    """Returns whether the requests cover most of the files. If the size of some files is unknown, it
    returns true."""
    places = ", ".join(str(row["place"]) for row in faults.rows)
    known = facts.one(
        f"""SELECT CAST(sum(size_bytes) AS BIGINT) AS bytes, sum(sized) = sum(file_count) AS are_known
FROM place_names WHERE place IN ({places})"""
    )
    needed = faults.total("bytes") - faults.total("again")
    return not known["are_known"] or needed >= settings.least_needed * int(known["bytes"])


def faults_of(facts: Facts, direction: int, settings: Settings) -> Faults:
    """Returns the places that are read (DIRECTION 1) or written (2) at random."""
    return Faults(facts.rows(_sql(direction, settings)))


# Places where at least half of the written bytes replace earlier ones are left out, such as headers that are
# updated between records. `redundant-writes` reports them.
def _sql(direction: int, settings: Settings) -> str:
    back = "sum(t.back) FILTER (WHERE t.pattern IN (4, 5, 6))"
    ahead = "sum(t.count - t.back) FILTER (WHERE t.pattern IN (3, 4))"
    jumps = "coalesce(sum(t.count) FILTER (WHERE t.pattern IN (3, 4, 5, 6)), 0)"
    rewrites = "t.direction = 2 AND 2 * coalesce(t.any_written_bytes, 0) >= t.bytes"
    return transfers.by_place(
        transfers.moved() | {"jumps": jumps},
        where=f"""t.direction = {direction} AND t.size_bin >= 0 AND NOT ({rewrites})
  AND p.place IN (FROM plain_places)""",
        having=f"""{ahead} >= {settings.least_ahead} * sum(t.count)
  AND {back} >= {settings.least_returns} * p.file_count
  AND sum(t.bytes) < {settings.below_bytes} * sum(t.count)""",
    )


def _query(direction: int) -> str:
    side = "read" if direction == 1 else "write"
    return f"""SELECT f.name AS file, e.pattern, count(*) AS count, avg(e.bytes) AS mean_bytes,
  sum(e.dur) AS time_ns FROM events e JOIN files f ON f.file_id = e.file_id
WHERE e.direction = {direction} AND e.bytes > 0 GROUP BY f.name, e.pattern ORDER BY time_ns DESC -- {side}s"""


_MESSAGES = {
    "read": N_(
        "{count} reads of {mean_bytes} on average, of which {jump_share} do not begin where the "
        "previous one ended; files: {files}"
    ),
    "write": N_(
        "{count} writes of {mean_bytes} on average, of which {jump_share} do not begin where the "
        "previous one ended; files: {files}"
    ),
}
_CHUNKS = N_(
    "Choose chunks that match the access, and keep the dataset object open over the loop: its chunk cache "
    "(H5Pset_chunk_cache) is lost with each H5Dopen or f['name']."
)
_BUFFERED = advise(
    c=N_(
        "If only a few bytes of each read are used, such as one record, read only these: pread, or "
        "setvbuf(file, NULL, _IONBF, 0) before the first fread."
    ),
    cpp=N_(
        "If only a few bytes of each read are used, such as one record, read only these: "
        "stream.rdbuf()->pubsetbuf(nullptr, 0) before the stream opens its file."
    ),
    python=N_(
        "If only a few bytes of each read are used, such as one record, read only these: open(..., "
        "buffering=0) fills no buffer after each seek."
    ),
)
_FEW_NEEDED = advise(
    any=N_(
        "Sort the requests by offset and read neighbouring ones together. Reading the whole file is not "
        "worthwhile, because most of it is not needed."
    ),
    c=N_(
        "Announce the next records with posix_fadvise(POSIX_FADV_WILLNEED), or request them from "
        "several threads, so that they are fetched in parallel."
    ),
    cpp=N_("Keep what is looked up often in a std::unordered_map, and sort the rest by offset."),
    fortran=N_("Read direct-access records in rising order."),
    python=N_("Sort the keys before the loop, and keep what is looked up often: functools.lru_cache."),
    mpi_io=N_("Describe all pieces in one file view (MPI_File_set_view) and read collectively."),
    hdf5=_CHUNKS,
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for reads and one for writes: files in which most requests do not begin where
    the previous one ended. If several ranks share a file, the data in between belongs to other ranks, so
    the servers see all these jumps. If one process only jumps forward, its access is not random."""
    for direction, verb, faults in counted.in_each_direction(facts, _counted_sql(settings)):
        count, moved = faults.total("count"), faults.total("bytes")
        jumps = count - faults.total("consecutive")
        values: dict[str, Scalar] = {
            "count": count, "mean_bytes": moved / count, "jump_share": jumps / count,
            "files": faults.file_count,
        }  # fmt: skip
        is_large = moved >= settings.below_bytes * count
        yield counted.candidate(
            facts, faults, _MESSAGES[verb], values, count=count, call=verb, jumps=jumps, bytes=moved,
            cost_ns=faults.time_ns if is_large else costs.beyond_large(
                faults.time_ns, count, moved, direction
            ),
            gain=None if is_large else counted.gain_if_local(faults, (0.35, 1.0)),
            at_most=Severity.NOTE if is_large else Severity.HIGH,
        )  # fmt: skip


# At least half of the requests must jump. With fewer, the file is mostly accessed sequentially.
def _counted_sql(settings: Settings) -> str:
    return f"""t.interface = 'posix' AND 2 * (t.count - t.consecutive) >= t.count
  AND CASE WHEN t.movers > 1 AND t.rank IS NULL THEN t.count / t.movers ELSE t.count - t.forward END
    >= {settings.least_returns}"""


RULE = Rule(
    name="random-access",
    title=N_("Random access"),
    looks_for=N_("Files that are read or written in small requests at random offsets."),
    why=N_(
        "Read-ahead does not help, and disks and servers can't work ahead, so the program waits "
        "for each request separately; and distant requests can't be combined."
    ),
    advice=advise(
        any=N_(
            "Sort the requests by offset and read neighbouring ones together; or read the whole file into "
            "memory once, if most of it is needed and it fits."
        ),
        c=N_(
            "Read the file once with large reads and access it in memory, if most of it is needed and "
            "it fits."
        ),
        cpp=N_(
            "Read the file into a std::vector once, and index it in place of calling seekg, if most of "
            "it is needed and it fits."
        ),
        fortran=N_("Read direct-access records in rising order, or the whole array in one READ."),
        python=N_(
            "Sort the keys before the loop; or use numpy.fromfile and index the array, if most of it is "
            "needed and it fits."
        ),
        mpi_io=N_("Describe all pieces in one file view (MPI_File_set_view) and read collectively."),
        hdf5=_CHUNKS,
    ),
    fine_when=N_(
        "The program looks up a few records of a large file, as databases and index searches do: reading all "
        "would cost more."
    ),
    settings=Settings,
    find=find,
    counters=in_counters,
    needs=(Need.OFFSETS,),
    one_direction=True,
    views=("transfers", "place_names", "plain_places", "counted_transfers"),
    yields_to=("redundant-reads", "redundant-writes", "synchronous-flags", "chunks-against-access"),
    case="reread-ranges",
)
