"""The same bytes of a file read again, by one process or by many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iodock.program.rules import backward_access, costs, random_access, seek_storm, transfers
from iodock.program.rules.base import Candidate, Facts, Need, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `redundant-reads`."""

    least_factor: float = 1.9
    """How many times what a process needs it must read at least."""
    least_factor_shared: float = 3.0
    """The same for all processes together, which each read the bytes once."""
    least_processes: int = 3
    """So many processes of one program must read the bytes: different tools each have their reason."""
    least_bytes: int = 1048576
    """So many bytes must have been read before, in all files together."""
    least_scanned: float = 0.8
    """Share of a database's reads that must begin where the one before ended: that is no look-up of pages,
    but all of a table for each question."""
    least_distinct: float = 0.75
    """Share of a place's accesses at random, or backward, that begin where no other one begins: then they
    overlap because a library reads a whole buffer for each, and `random-access` says what is wrong."""
    most_same: float = 0.05
    """The same where no offset of a file begins more than this share of its accesses: a library's buffers
    begin at blocks, but a header is come back to."""
    most_often: int = 16
    """And where an offset begins no more accesses than this on average: with more, each part is read again
    and again, through whichever buffer, and would be better kept."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for what processes read again themselves, one for what each of many reads once."""
    for shared in (False, True):
        faults = _without_random(facts, Faults(facts.rows(_sql(shared, settings))), settings)
        faults = _read_alike(facts, faults, settings) if shared else _without_builders(facts, faults)
        count, cost = faults.total("count"), faults.time_ns
        text_ns = costs.text_ns(facts, faults, 1)
        if cost is not None:
            cost += text_ns
        if faults.total("again") < settings.least_bytes or not costs.worth_a_word(facts, cost, count):
            continue
        seeks = Faults([]) if shared else _seeks(facts, faults)
        moved, again = faults.total("bytes"), faults.total("again")
        factor = moved / max(1, moved - again)
        values = {
            "read_bytes": moved, "needed_bytes": moved - again, "factor": round(factor, 1),
            "files": faults.file_count, "processes": _most(faults),
        }  # fmt: skip
        yield Candidate(
            message=Message(_MANY if shared else _ONE, values),
            count=count + seeks.total("count"),
            time_ns=None if cost is None else cost + seeks.total("time_ns"),
            evidence={
                "count": count,
                "seeks": seeks.total("count"),
                "read_bytes": moved,
                "again_bytes": again,
                "factor": round(factor, 2),
                "text_ns": text_ns,
                "time_ns": cost,
            },
            work_ns=text_ns,
            query=_QUERY,
            **faults.where,
            confidence=0.7 if shared else 0.9,
            gain=costs.CALLS_GO,
            pieces=Pieces.CALLS,
            advice=_ADVICE_MANY if shared else None,
        )


def _seeks(facts: Facts, faults: Faults) -> Faults:
    """Seeks in these places, which go when each is read once; those that `seek-storm` charges left out."""
    places = ", ".join(str(row["place"]) for row in faults.rows)
    settings = facts.settings.of_rule("seek-storm", seek_storm.Settings)
    charged = {row["name"]: row for row in seek_storm.needless(facts, settings).rows}
    rows = facts.rows(
        f"""SELECT l.place, any_value(p.name) AS name, CAST(sum(u.count) AS BIGINT) AS count,
  CAST(sum(u.time_ns) AS BIGINT) AS time_ns
FROM uses u JOIN calls c ON c.id = u.call_id JOIN places l ON l.file_id = u.file_id
  JOIN place_names p ON p.place = l.place
WHERE c.class = 'seek' AND l.place IN ({places}) GROUP BY l.place"""
    )
    return Faults([row | _less(row, charged.get(row["name"], {})) for row in rows])


def _less(row: dict[str, Any], charged: dict[str, Any]) -> dict[str, int]:
    return {key: max(0, int(row[key] or 0) - int(charged.get(key) or 0)) for key in ("count", "time_ns")}


def _most(faults: Faults) -> int:
    return max(int(row.get("processes") or 1) for row in faults.rows)


def _without_random(facts: Facts, faults: Faults, settings: Settings) -> Faults:
    """The places without those of which parts are looked up here and there, none of them above all."""
    jumping = {row["place"]: row.get("is_to_and_fro", 1) for row in _jumping(facts).rows} if faults else {}
    places = ", ".join(str(row["place"]) for row in faults.rows if row["place"] in jumping)
    if not places or not facts.sees(Need.OFFSETS):
        return faults
    # Who goes through a file in passes may come back to the same pieces in each.
    to_and_fro = ", ".join(str(place) for place, is_so in jumping.items() if is_so) or "NULL"
    rows = facts.rows(
        f"""WITH begun AS (SELECT p.place, e.file_id, count(*) AS count
  FROM events e JOIN places p ON p.file_id = e.file_id
  WHERE p.place IN ({places}) AND e.direction = 1 AND e.bytes > 0
  GROUP BY p.place, e.file_id, e.offset_bytes),
by_file AS (SELECT place, sum(count) AS count, count(*) AS offsets, max(count) AS most FROM begun
  GROUP BY place, file_id)
SELECT place FROM by_file GROUP BY place
HAVING sum(offsets) >= {settings.least_distinct} * sum(count)
  OR place IN ({to_and_fro}) AND sum(most) <= {settings.most_same} * sum(count)
    AND sum(count) <= {settings.most_often} * sum(offsets)"""
    )
    scattered = {row["place"] for row in rows}
    return Faults([row for row in faults.rows if row["place"] not in scattered])


def _jumping(facts: Facts) -> Faults:
    chosen = facts.settings.of_rule("random-access", random_access.Settings)
    back = facts.settings.of_rule("backward-access", backward_access.Settings)
    found = (random_access.faults_of(facts, 1, chosen), backward_access.faults_of(facts, 1, back))
    return Faults([row for one in found for row in one.rows])


def _without_builders(facts: Facts, faults: Faults) -> Faults:
    """The places that anyone but compilers and build tools reads: these look at what they have made, to sign
    or to link it, and the user can't change them."""
    places = ", ".join(str(row["place"]) for row in faults.rows)
    if not places or not facts.rows("SELECT 1 FROM programs WHERE builds LIMIT 1"):
        return faults
    left = facts.rows(
        f"""SELECT DISTINCT l.place FROM uses u JOIN places l ON l.file_id = u.file_id
  JOIN processes q ON q.utid = u.utid LEFT JOIN programs g ON g.upid = q.upid
WHERE l.place IN ({places}) AND u.direction = 1 AND u.bytes > 0 AND g.builds IS NOT TRUE"""
    )
    return Faults([row for row in faults.rows if {"place": row["place"]} in left])


def _read_alike(facts: Facts, faults: Faults, settings: Settings) -> Faults:
    """The places that enough processes of one program read, with the number of these."""
    if not faults:
        return faults
    places = ", ".join(str(row["place"]) for row in faults.rows)
    readers = facts.rows(
        f"""SELECT place, max(processes) AS processes FROM (
  SELECT l.place, l.file_id, g.program, count(DISTINCT q.upid) AS processes FROM uses u
    JOIN places l ON l.file_id = u.file_id JOIN processes q ON q.utid = u.utid
    LEFT JOIN programs g ON g.upid = q.upid
  WHERE u.direction = 1 AND u.bytes > 0 AND l.place IN ({places}) GROUP BY ALL)
GROUP BY place HAVING max(processes) >= {settings.least_processes}"""
    )
    known = {row["place"]: row["processes"] for row in readers}
    kept = [row | {"processes": known[row["place"]]} for row in faults.rows if row["place"] in known]
    return Faults(kept)


def _sql(shared: bool, settings: Settings) -> str:
    again = "greatest(coalesce(t.any_read_bytes, 0) - coalesce(t.own_read_bytes, 0), 0)" if shared else (
        "coalesce(t.own_read_bytes, 0)"
    )  # fmt: skip
    factor = settings.least_factor_shared if shared else settings.least_factor
    own_files = """(p.place IN (FROM plain_places) OR p.kind = 'standard'
  OR p.place IN (FROM database_places))"""
    kept = "p.place IN (FROM data_places)" if shared else own_files
    in_order = "coalesce(sum(t.count) FILTER (WHERE t.pattern = 2), 0)"
    scanned = f"""(NOT p.place IN (FROM database_places)
  OR {in_order} >= {settings.least_scanned} * sum(t.count))"""
    # The same place may be both; it is told once, as what each process does itself.
    own = f"sum(coalesce(t.own_read_bytes, 0)) < {1 - 1 / settings.least_factor} * sum(t.bytes)"
    return transfers.by_place(
        transfers.again(again),
        where=f"t.direction = 1 AND t.bytes > 0 AND {kept}",
        having=f"""sum({again}) >= {1 - 1 / factor} * sum(t.bytes)
  AND {own if shared else scanned}""",
    )


_QUERY = """SELECT f.name AS file, count(*) AS reads, sum(e.bytes) AS read_bytes,
  sum(e.own_read_bytes) AS again_by_the_same, sum(e.any_read_bytes) AS again_by_any, sum(e.dur) AS time_ns
FROM events e JOIN files f ON f.file_id = e.file_id WHERE e.direction = 1
GROUP BY f.name ORDER BY again_by_any DESC"""
_ONE = N_(
    "{read_bytes} are read of files of which {needed_bytes} are needed: {factor} times as much; files: "
    "{files}"
)
_MANY = N_(
    "Processes read the same bytes, each for itself: {read_bytes}, of which {needed_bytes} differ, {factor} "
    "times as much; processes: {processes}, files: {files}"
)
_ADVICE_MANY = advise(
    any=N_(
        "Let one process read the file and pass the content on; or copy it once to a local disk or memory "
        "(/dev/shm) of each node and read it there, if it lies on a network file system and fits."
    ),
    python=N_("Read the file before the worker processes are started, or share it through numpy.memmap."),
    shell=N_("Handle all cases in one command that reads the file once, in place of one command each."),
    mpi_io=N_("Let rank 0 read and call MPI_Bcast, or read collectively with MPI_File_read_all."),
    hdf5=N_("Read with a collective transfer list (H5Pset_dxpl_mpio, H5FD_MPIO_COLLECTIVE)."),
)

RULE = Rule(
    name="redundant-reads",
    title=N_("The same bytes are read again"),
    looks_for=N_("Files of which far more bytes are read than they hold, by one process or by many."),
    why=N_(
        "Reading again costs the calls and the copying each time, and trips to the disk or server whenever "
        "the file does not stay in memory."
    ),
    advice=advise(
        any=N_(
            "Read the file once and keep what is needed in memory, if it fits: headers and tables above all. "
            "In a database, create an index on the column that is asked for."
        ),
        c=N_("Read the header into a struct once; keep the file in a buffer or map it with mmap."),
        cpp=N_(
            "Each seekg throws the stream's buffer away and reads 8 KiB anew, even when it goes nowhere: "
            "copy the header once, leave out needless seekg and tellg, or read blocks into a std::vector."
        ),
        fortran=N_("Take REWIND and repeated OPEN out of the loop: read the arrays once and keep them."),
        python=N_("Move the reading out of the loop, or keep its result: functools.cache, a dict, an array."),
        numpy=N_("Keep the array, or read only what is needed through numpy.load(file, mmap_mode='r')."),
        pandas=N_("Keep the table; read_csv(usecols=[...]) and read_parquet(columns=[...]) read less."),
        zarr=N_("Read by whole chunks: each selection reads and unpacks every chunk that it touches."),
        shell=N_("Handle all records in one awk command, in place of reading the file for each of them."),
        hdf5=N_(
            "Open the file and the dataset once, before the loop, and keep both (in h5py x = f['name']): the "
            "chunk cache belongs to the open dataset and goes with it. Then make it large enough for the "
            "chunks of one pass (H5Pset_chunk_cache; File(..., rdcc_nbytes=...)), or read the array once."
        ),
    ),
    fine_when=N_(
        "The data don't fit into memory and several passes over them are needed, or a small file is looked "
        "at for changes."
    ),
    settings=Settings,
    find=find,
    needs=(Need.COVERAGE,),
    views=(
        *("transfers", "place_names", "places", "uses", "programs", "file_work", "data_places"),
        *("database_places", "plain_places"),
    ),
    yields_to=("whole-file-for-a-few-bytes", "read-after-write", "bytewise-read"),
    case="header-reread",
)
