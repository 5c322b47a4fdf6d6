"""Requests that jump to and fro in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Advice
from iodock.program.rules import costs, redundant_writes, transfers, unaligned_requests
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `random-access`."""

    least_needed: float = 0.5
    """Share of the files that must be asked for, for reading all of it to be advised."""

    least_count: int = 500
    """Fewer accesses than this, in all such places together, are not worth a word."""
    least_back: float = 0.2
    """Share of a place's accesses that must step back to another part of the file."""
    least_jumps: float = 0.5
    """Share that must not begin where the access before it ended."""
    below_bytes: int = 262144
    """Requests of this mean size and above pay for their jump."""
    least_passes: int = 16
    """So often a file must be gone through in jumps of a page or more, a part of it each time, as a column of
    a matrix is that is stored row by row."""
    most_piece_bytes: int = 8192
    """The requests of such a pass are of this size on average, or smaller: what libraries buffer at least."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for reads and one for writes: all places that are accessed at random."""
    for direction, verb in ((1, "read"), (2, "write")):
        faults = faults_of(facts, direction, settings)
        if direction == 2:
            faults = unaligned_requests.without_waiting(facts, faults)
            faults = redundant_writes.without_headers(facts, faults)
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
    """What fits how much is needed of the files, and of each request."""
    mean = faults.total("bytes") / faults.total("count")
    # The buffers of libraries are that large, or half of it; what was used of them is not known.
    fills = direction == 1 and settings.most_piece_bytes // 3 <= mean <= settings.most_piece_bytes
    known = RULE.advice if _is_most_needed(facts, faults, settings) else _FEW_NEEDED
    return (*(_BUFFERED if fills else ()), *known)


def _is_most_needed(facts: Facts, faults: Faults, settings: Settings) -> bool:
    """Whether the requests ask for most of the files, or may: of some their size is not known."""
    places = ", ".join(str(row["place"]) for row in faults.rows)
    known = facts.one(
        f"""SELECT CAST(sum(size_bytes) AS BIGINT) AS bytes, sum(sized) = sum(file_count) AS are_known
FROM place_names WHERE place IN ({places})"""
    )
    needed = faults.total("bytes") - faults.total("again")
    return not known["are_known"] or needed >= settings.least_needed * int(known["bytes"])


def faults_of(facts: Facts, direction: int, settings: Settings) -> Faults:
    """Places that are read (DIRECTION 1) or written (2) at random."""
    faults = _without_near(facts, Faults(facts.rows(_sql(direction, settings))), direction, settings)
    return faults if faults.total("count") >= settings.least_count else Faults([])


def _without_near(facts: Facts, faults: Faults, direction: int, settings: Settings) -> Faults:
    """The places without those gone through in passes whose pieces lie together, many in each page."""
    passes = ", ".join(str(row["place"]) for row in faults.rows if not row["is_to_and_fro"])
    if not passes:
        return faults
    far = facts.rows(
        f"""SELECT p.place FROM events e JOIN places p ON p.file_id = e.file_id
WHERE p.place IN ({passes}) AND e.direction = {direction} AND e.bytes > 0 GROUP BY p.place
HAVING count(*) FILTER (WHERE abs(e.gap_bytes) >= {unaligned_requests.PAGE_BYTES})
  >= {settings.least_jumps} * count(*)"""
    )
    kept = {row["place"] for row in far}
    return Faults([row for row in faults.rows if row["is_to_and_fro"] or row["place"] in kept])


def _sql(direction: int, settings: Settings) -> str:
    back = "coalesce(sum(t.count) FILTER (WHERE t.pattern = 6), 0)"
    # Where what was read is written back in place, two steps back seem to follow each other.
    fro = "coalesce(sum(t.back) FILTER (WHERE t.pattern IN (4, 5, 6)), 0)"
    to = "coalesce(sum(t.count - t.back) FILTER (WHERE t.pattern IN (3, 4)), 0)"
    jumps = "coalesce(sum(t.count) FILTER (WHERE t.pattern IN (3, 4, 5, 6)), 0)"
    is_to_and_fro = f"greatest({back}, least({to}, {fro})) >= {settings.least_back} * sum(t.count)"
    # Most steps of a pass go on, and one goes back to begin the next.
    passes = f"""{fro} BETWEEN {settings.least_passes} * p.file_count AND 0.5 * {to}
    AND sum(t.bytes) <= {settings.most_piece_bytes} * sum(t.count)"""
    return transfers.by_place(
        transfers.moved() | {"jumps": jumps, "is_to_and_fro": is_to_and_fro},
        where=f"t.direction = {direction} AND t.size_bin >= 0 AND p.place IN (FROM plain_places)",
        having=f"""sum(t.count) >= {transfers.FEW} AND ({is_to_and_fro} OR {passes})
  AND {jumps} >= {settings.least_jumps} * sum(t.count)
  AND sum(t.bytes) < {settings.below_bytes} * sum(t.count)""",
    )


def _query(direction: int) -> str:
    side = "read" if direction == 1 else "write"
    return f"""SELECT f.name AS file, e.pattern, count(*) AS count, avg(e.bytes) AS mean_bytes,
  sum(e.dur) AS time_ns FROM events e JOIN files f ON f.file_id = e.file_id
WHERE e.direction = {direction} AND e.bytes > 0 GROUP BY f.name, e.pattern ORDER BY time_ns DESC -- {side}s"""


_MESSAGES = {
    "read": N_(
        "{count} reads of {mean_bytes} on average, of which {jump_share} begin elsewhere than the one before "
        "ended; files: {files}"
    ),
    "write": N_(
        "{count} writes of {mean_bytes} on average, of which {jump_share} begin elsewhere than the one "
        "before ended; files: {files}"
    ),
}
_CHUNKS = N_(
    "Choose chunks that match the access, and keep the dataset object open over the loop: its chunk cache "
    "(H5Pset_chunk_cache) is lost with each H5Dopen or f['name']."
)
_BUFFERED = advise(
    c=N_(
        "If a few bytes of each read are used, as of a record, read these only: pread, or "
        "setvbuf(file, NULL, _IONBF, 0) before the first fread."
    ),
    cpp=N_(
        "If a few bytes of each read are used, as of a record, read these only: "
        "stream.rdbuf()->pubsetbuf(nullptr, 0) before the stream opens its file."
    ),
    python=N_(
        "If a few bytes of each read are used, as of a record, read these only: open(..., buffering=0) fills "
        "no buffer after each seek."
    ),
)
_FEW_NEEDED = advise(
    any=N_(
        "Sort the requests by offset and read neighbouring ones together. Reading all of the file does not "
        "pay: most of it is not needed."
    ),
    c=N_(
        "Announce the next records with posix_fadvise(POSIX_FADV_WILLNEED), or ask for them from several "
        "threads, so that they are fetched side by side."
    ),
    cpp=N_("Keep what is looked up often in a std::unordered_map, and sort the rest by offset."),
    fortran=N_("Read direct-access records in rising order."),
    python=N_("Sort the keys before the loop, and keep what is looked up often: functools.lru_cache."),
    mpi_io=N_("Describe all pieces in one file view (MPI_File_set_view) and read collectively."),
    hdf5=_CHUNKS,
)

RULE = Rule(
    name="random-access",
    title=N_("Random access"),
    looks_for=N_("Files that are read or written in small requests that jump to and fro."),
    why=N_(
        "Neither the read-ahead nor a disk or server can work ahead, so each request waits for itself; and "
        "requests that lie apart can't be put together."
    ),
    advice=advise(
        any=N_(
            "Sort the requests by offset and read neighbouring ones together; or read the whole file into "
            "memory once, if most of it is needed and it fits."
        ),
        c=N_(
            "Read the file once with large reads, and jump in memory in place of the file, if most of it is "
            "needed and it fits."
        ),
        cpp=N_(
            "Read the file into a std::vector once, and jump in it in place of calling seekg, if most of it "
            "is needed and it fits."
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
    needs=(Need.OFFSETS,),
    views=("transfers", "place_names", "places", "opens", "plain_places", "remote_places"),
    yields_to=("redundant-reads", "redundant-writes", "synchronous-flags"),
    case="reread-ranges",
)
