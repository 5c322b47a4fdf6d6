"""Finds bytes of a file that are read several times, by one process or by many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iodock.program.rules import backward_access, costs, counted, random_access, transfers
from iodock.program.rules.base import Candidate, Facts, Need, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `redundant-reads`."""

    least_factor: float = 1.9
    """Minimum number of times that a process reads the bytes that it needs."""
    least_factor_shared: float = 3.0
    """The same threshold for all processes together, which each read the bytes once; this many processes
    must also run one program, because different tools each have their reason."""
    least_scanned: float = 0.8
    """Minimum share of a database's reads that begin at the end of the previous one: such a database does
    not look up pages, but reads a whole table for each query."""
    least_repeats: int = 16
    """Mean number of accesses that begin inside another access, for a file that is read at random or
    backward. With fewer such accesses they overlap only because a library reads a whole buffer for each:
    then the order is the problem."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for data that a process reads several times. Yields another for data that many
    processes read once each."""
    for shared in (False, True):
        found = _without_random(facts, Faults(facts.rows(_sql(shared, settings))), settings)
        faults = _read_alike(facts, found, settings.least_factor_shared if shared else 1)
        count, cost = faults.total("count"), faults.time_ns
        text_ns = costs.text_ns(facts, faults, 1)
        if cost is not None:
            cost += text_ns
        if not faults or not costs.worth_a_word(facts, cost, count):
            continue
        moved, again = faults.total("bytes"), faults.total("again")
        factor = moved / max(1, moved - again)
        values = {
            "read_bytes": moved, "needed_bytes": moved - again, "factor": round(factor, 1),
            "files": faults.file_count,
            "processes": max(int(row["processes"]) for row in faults.rows) if shared else 1,
        }  # fmt: skip
        yield Candidate(
            message=Message(_MANY if shared else _ONE, values),
            count=count,
            time_ns=cost,
            evidence={
                "count": count,
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


def _without_random(facts: Facts, faults: Faults, settings: Settings) -> Faults:
    """Returns the places without those that are accessed at random and in which no offset is read often."""
    jumping = {row["place"] for row in _jumping(facts)} if faults else set()
    places = ", ".join(str(row["place"]) for row in faults.rows if row["place"] in jumping)
    if not places:
        return faults
    rows = facts.rows(
        f"""WITH begun AS (SELECT e.file_id, count(*) AS count FROM events e
  WHERE e.file_id IN (SELECT file_id FROM places WHERE place IN ({places})) AND e.direction = 1
    AND e.bytes > 0
  GROUP BY e.file_id, e.offset_bytes),
sums AS (SELECT file_id, sum(count * count) AS squares, sum(count) AS count FROM begun GROUP BY file_id)
SELECT p.place FROM sums s JOIN places p ON p.file_id = s.file_id WHERE p.place IN ({places})
GROUP BY p.place HAVING sum(s.squares) < {settings.least_repeats} * sum(s.count)"""
    )
    scattered = {row["place"] for row in rows}
    return Faults([row for row in faults.rows if row["place"] not in scattered])


def _jumping(facts: Facts) -> Iterator[dict[str, Any]]:
    for rule in (random_access, backward_access):
        yield from rule.faults_of(facts, 1, facts.settings.of_rule(rule.RULE.name, rule.Settings)).rows


def _read_alike(facts: Facts, faults: Faults, least: float) -> Faults:
    """Returns the places that at least LEAST processes of one program read, with the number of these
    processes. Compilers and build tools do not count: they examine their own output, to sign or link it,
    and users can't change that."""
    if not faults:
        return faults
    places = ", ".join(str(row["place"]) for row in faults.rows)
    readers = facts.rows(
        f"""WITH alike AS (SELECT l.place, l.file_id, g.program, count(DISTINCT q.upid) AS processes
  FROM uses u JOIN places l ON l.file_id = u.file_id JOIN processes q ON q.utid = u.utid
    LEFT JOIN programs g ON g.upid = q.upid
  WHERE u.direction = 1 AND u.bytes > 0 AND l.place IN ({places}) AND g.builds IS NOT TRUE GROUP BY ALL)
SELECT place, max(processes) AS processes FROM alike GROUP BY place HAVING max(processes) >= {least}"""
    )
    known = {row["place"]: row["processes"] for row in readers}
    return Faults([row | {"processes": known[row["place"]]} for row in faults.rows if row["place"] in known])


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
    # A place may fulfil both conditions. It is then reported once, as read several times by each process.
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
    "{read_bytes} are read from files of which only {needed_bytes} are needed: {factor} times as much; "
    "files: {files}"
)
_MANY = N_(
    "Each process reads the same bytes itself: {read_bytes}, of which {needed_bytes} are different, "
    "{factor} times as much; processes: {processes}, files: {files}"
)
_ADVICE_MANY = advise(
    any=N_(
        "Let one process read the file and pass the content on; or copy it once to a local disk or memory "
        "(/dev/shm) of each node and read it there, if it lies on a network file system and fits."
    ),
    python=N_("Read the file before the worker processes are started, or share it through numpy.memmap."),
    shell=N_(
        "Handle all cases in one command that reads the file once, instead of one command for each case."
    ),
    mpi_io=N_("Let rank 0 read and call MPI_Bcast, or read collectively with MPI_File_read_all."),
    hdf5=N_("Read with a collective transfer list (H5Pset_dxpl_mpio, H5FD_MPIO_COLLECTIVE)."),
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields files from which more bytes were read than lie before the furthest byte that was read: either
    each process read them several times, or each of many processes read them once."""
    more = [f"t.bytes >= {settings.least_factor} * t.extent_bytes * t.movers"]
    more.append(f"t.bytes >= {settings.least_factor_shared} * t.extent_bytes AND NOT ({more[0]})")
    for text, condition in zip((_ONE, _MANY), more, strict=True):
        faults = counted.transfers(facts, f"t.direction = 1 AND t.interface <> 'mpi-io' AND {condition}")
        if not faults or not counted.matters(facts, faults.time_ns, faults.total("count")):
            continue
        moved, needed = faults.total("bytes"), max(1, faults.total("extent_bytes"))
        values: dict[str, Scalar] = {
            "read_bytes": moved, "needed_bytes": needed, "factor": round(moved / needed, 1),
            "files": faults.file_count, "processes": counted.processes(faults),
        }  # fmt: skip
        spent = faults.time_ns
        cost = None if spent is None else round(spent * max(0.0, 1 - needed / moved))
        yield counted.candidate(
            facts, faults, text, values, cost_ns=cost, count=faults.total("count"), call="read",
            gain=costs.CALLS_GO if text is _ONE else None, again_bytes=max(0, moved - needed),
        )  # fmt: skip


RULE = Rule(
    name="redundant-reads",
    title=N_("The same bytes are read again"),
    looks_for=N_("Files from which far more bytes are read than they contain, by one process or by many."),
    why=N_(
        "Each repeated read costs a system call and a copy, and also an access to the disk or server if "
        "the file is no longer in memory."
    ),
    advice=advise(
        any=N_(
            "Read the file once and keep what is needed in memory, if it fits: headers and tables above all. "
            "In a database, create an index on the column that is asked for."
        ),
        c=N_("Read the header into a struct once; keep the file in a buffer or map it with mmap."),
        cpp=N_(
            "Each seekg discards the stream's buffer and reads 8 KiB again, even when it goes nowhere: "
            "copy the header once, leave out needless seekg and tellg, or read blocks into a "
            "std::vector."
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
        "The data doesn't fit into memory and several passes over it are needed, or a small file is "
        "checked for changes."
    ),
    settings=Settings,
    find=find,
    counters=in_counters,
    needs=(Need.COVERAGE,),
    one_direction=True,
    views=(
        *("transfers", "place_names", "places", "uses", "programs", "file_work", "data_places"),
        *("database_places", "plain_places", "counted_transfers"),
    ),
    yields_to=("whole-file-for-a-few-bytes", "read-after-write", "bytewise-read", "chunks-against-access"),
    case="header-reread",
)
