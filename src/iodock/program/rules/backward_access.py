"""Finds files that are read or written from their end to their beginning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, transfers
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `backward-access`."""

    least_count: int = 200
    "Number of accesses, in all such files together, below which nothing is reported."
    least_share: float = 0.5
    """Minimum share of the accesses to a file (or file pattern) that go backward."""
    most_ahead: float = 0.25
    "Maximum share of forward jumps: with more, the file is accessed at random."
    below_bytes: int = 1048576
    "Mean size from which requests are large enough in any order."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for reads and one for writes, each with all places that are accessed backward."""
    for direction, verb in ((1, "read"), (2, "write")):
        faults = faults_of(facts, direction, settings)
        count, moved = faults.total("count"), faults.total("bytes")
        cost = costs.beyond_large(faults.time_ns, count, moved - faults.total("again"), direction)
        if faults and cost is not None:
            cost += _seeks_ns(facts, faults)
        if not faults or not costs.worth_a_word(facts, cost, count):
            continue
        values = {"count": faults.total("back"), "mean_bytes": moved / count, "files": faults.file_count}
        yield Candidate(
            message=Message(_MESSAGES[verb], values),
            count=count,
            time_ns=cost,
            evidence={
                "count": count,
                "back": faults.total("back"),
                "bytes": moved,
                "time_ns": faults.time_ns,
            },
            query=_query(direction),
            **faults.where,
            gain=(0.35, 1.0),
        )


def faults_of(facts: Facts, direction: int, settings: Settings) -> Faults:
    """Returns the places that are read (DIRECTION 1) or written (2) backward."""
    faults = Faults(facts.rows(_sql(direction, settings)))
    return faults if faults.total("count") >= settings.least_count else Faults([])


# Large blocks would need few seeks, so the cost includes the seeks that lead back to each small block.
def _seeks_ns(facts: Facts, faults: Faults) -> int:
    places = ", ".join(str(row["place"]) for row in faults.rows)
    row = facts.one(
        f"""SELECT sum(u.count) AS seeks, CAST(sum(u.time_ns) AS BIGINT) AS time_ns FROM uses u
JOIN calls c ON c.id = u.call_id JOIN places l ON l.file_id = u.file_id
WHERE c.class = 'seek' AND u.errno_id IS NULL AND l.place IN ({places})"""
    )
    if not row["seeks"]:
        return 0
    return round(int(row["time_ns"] or 0) * min(1.0, faults.total("back") / int(row["seeks"])))


def _sql(direction: int, settings: Settings) -> str:
    # Pattern 5 (backward) also contains steps forward by less than was read, because the next read then
    # begins before the end of the previous one. These overlapping accesses are subtracted. Pattern 4
    # (strided) contains steps of equal length in either direction, so only its backward steps (`back`) count.
    back = """coalesce(sum(CASE t.pattern WHEN 4 THEN t.back ELSE t.count - t.overlapping END)
    FILTER (WHERE t.pattern IN (4, 5)), 0)"""
    ahead = "coalesce(sum(t.count - t.back) FILTER (WHERE t.pattern IN (3, 4)), 0)"
    return transfers.by_place(
        transfers.moved() | {"back": back},
        where=f"t.direction = {direction} AND t.size_bin >= 0 AND p.place IN (FROM plain_places)",
        having=f"""sum(t.count) >= {transfers.FEW} AND {back} >= {settings.least_share} * sum(t.count)
  AND {ahead} <= {settings.most_ahead} * sum(t.count)
  AND sum(t.bytes) < {settings.below_bytes} * sum(t.count)""",
    )


def _query(direction: int) -> str:
    return f"""SELECT f.name AS file, count(*) AS count, avg(e.bytes) AS mean_bytes, sum(e.dur) AS time_ns
FROM events e JOIN files f ON f.file_id = e.file_id
WHERE e.direction = {direction} AND e.gap_bytes < 0 GROUP BY f.name ORDER BY time_ns DESC"""


_MESSAGES = {
    "read": N_("{count} reads that go backward, of {mean_bytes} on average; files: {files}"),
    "write": N_("{count} writes that go backward, of {mean_bytes} on average; files: {files}"),
}

RULE = Rule(
    name="backward-access",
    title=N_("Backward access"),
    looks_for=N_("Files that are read or written from their end to their beginning in small requests."),
    why=N_(
        "File systems read ahead, not back: each request waits for the disk or server, and writes can't "
        "be combined."
    ),
    advice=advise(
        any=N_(
            "Read or write the file forward and reverse the order in memory; or read large blocks from "
            "the end, and process each block backward in memory."
        ),
        c=N_("Read blocks of 1 MiB or more with pread, last block first, or map the file with mmap."),
        cpp=N_(
            "Read blocks of 1 MiB, the last one first, into a std::vector, and process it in reverse order."
        ),
        fortran=N_(
            "Avoid BACKSPACE: read the records once into an array, if they fit into memory, and loop over it "
            "with step -1."
        ),
        python=N_(
            "Read blocks of 1 MiB from the end; or the file once, if it fits into memory, and loop over "
            "reversed(records)."
        ),
        shell=N_("Use tac to reverse the order of lines once, instead of many calls of tail and head."),
    ),
    fine_when=N_("Only the last part of a file is needed, as in `tail`."),
    settings=Settings,
    find=find,
    needs=(Need.OFFSETS,),
    one_direction=True,
    views=("transfers", "place_names", "places", "uses", "plain_places"),
    yields_to=("redundant-reads", "redundant-writes", "synchronous-flags", "chunks-against-access"),
    case="header-reread",
)
