"""Finds requests that begin inside a page or block. They affect one page or block more than an aligned
request of the same size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules import costs, counted, transfers
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar

PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `unaligned-requests`."""

    least_share: float = 0.5
    """Minimum share of the requests to a file (or file pattern) that are unaligned."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for reads and one for writes: all places where most requests are unaligned and
    as large as a page or larger. The cost of a request is the share of its time for the one page that an
    aligned request would not affect."""
    for direction, verb in ((1, "read"), (2, "write")):
        faults = Faults(facts.rows(_sql(direction, settings)))
        count, cost = faults.total("count"), faults.sum_of("extra_ns")
        if not faults or not costs.worth_a_word(facts, cost, count):
            continue
        mean = faults.total("bytes") / count
        yield Candidate(
            message=Message(
                _MESSAGES[verb], {"count": count, "mean_bytes": mean, "files": faults.file_count}
            ),
            count=count,
            time_ns=cost,
            evidence={"count": count, "bytes": faults.total("bytes"), "time_ns": faults.time_ns},
            query=_query(direction),
            **faults.where,
            confidence=0.6,
            gain=(0.4, 1.0),
        )


def _by_tools(direction: int) -> str:
    """Returns SQL for places that tools access in blocks whose size the tool chose. Users can't change
    this size."""
    moved = "reads" if direction == 1 else "writes"
    return f"""SELECT l.place FROM file_work w JOIN programs g ON g.upid = w.upid
    JOIN places l ON l.file_id = w.file_id WHERE g.is_tool AND w.{moved} > 0"""


# Contiguous reads find the page at their beginning in memory, so alignment does not matter for them.
# Contiguous writes wait for that page only if it already contains data in the file, or if the file system is
# shared.
def _sql(direction: int, settings: Settings) -> str:
    odd = f"""(t.pattern IN (3, 4, 5, 6, 7) OR t.direction = 2
    AND (p.place IN (FROM remote_places) OR p.place IN ({_OVERWRITTEN})))"""
    sums = {
        "count": "sum(t.unaligned)",
        "time_ns": "sum(t.time_ns)",
        "extra_ns": f"sum(t.time_ns / (t.bytes / t.count / {PAGE_BYTES} + 1))",
        "bytes": "sum(t.bytes)",
    }
    return transfers.by_place(
        {name: f"{one} FILTER (WHERE {odd})" for name, one in sums.items()},
        where=f"""t.direction = {direction} AND t.bytes >= {PAGE_BYTES} * t.count
  AND p.place IN (FROM plain_places) AND p.place NOT IN ({_by_tools(direction)})""",
        having=f"sum(t.unaligned) FILTER (WHERE {odd}) >= {settings.least_share} * sum(t.count)",
        first="extra_ns",
    )


# SQL for places that were opened for writing, and not created or truncated by that open. On Linux, 3 is
# O_ACCMODE and 576 is O_CREAT | O_TRUNC.
_OVERWRITTEN = """SELECT l.place FROM opens o JOIN places l ON l.file_id = o.file_id
    WHERE o.flags & 3 <> 0 AND o.flags & 576 = 0 AND o.errno_id IS NULL
      AND o.call_id IN (SELECT id FROM calls WHERE family = 'open')"""


def _query(direction: int) -> str:
    side = "read" if direction == 1 else "write"
    return f"""SELECT file, bytes, count(*) AS count, sum(dur) AS time_ns FROM call_ends
WHERE direction = '{side}' AND bytes >= {PAGE_BYTES} AND offset_bytes % {PAGE_BYTES} <> 0
GROUP BY file, bytes ORDER BY time_ns DESC"""


_MESSAGES = {
    "read": N_(
        "{count} reads of {mean_bytes} on average begin inside a page of 4 KiB and touch one page more "
        "than necessary; files: {files}"
    ),
    "write": N_(
        "{count} writes of {mean_bytes} on average begin inside a page of 4 KiB and touch one page more "
        "than necessary; files: {files}"
    ),
}


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields unaligned requests in counters, based on the block or stripe sizes that the source states.
    Requests smaller than a block mostly begin inside one anyway, so their cost is unknown."""
    for _, verb, faults in counted.in_each_direction(facts, _counted_sql(settings)):
        count = faults.total("unaligned")
        block = max(int(row["alignment_bytes"] or PAGE_BYTES) for row in faults.rows)
        mean = faults.total("bytes") / faults.total("count")
        values: dict[str, Scalar] = {
            "count": count, "mean_bytes": mean, "block_bytes": block, "files": faults.file_count,
        }  # fmt: skip
        is_small = mean < block
        spent = faults.time_ns
        yield counted.candidate(
            facts, faults, _COUNTED[verb], values, count=count, call=verb,
            cost_ns=None if spent is None else round(spent / (mean / block + 1)),
            gain=None if is_small else counted.gain_if_local(faults, (0.4, 1.0)),
            at_most=Severity.NOTE if is_small else Severity.HIGH,
        )  # fmt: skip


def _counted_sql(settings: Settings) -> str:
    return f"""t.interface = 'posix' AND t.unaligned >= {settings.least_share} * t.count
  AND (t.is_remote OR 2 * t.consecutive < t.count)"""


_COUNTED = {
    "read": N_(
        "{count} reads of {mean_bytes} on average begin within a block or stripe of {block_bytes}; files: "
        "{files}"
    ),
    "write": N_(
        "{count} writes of {mean_bytes} on average begin within a block or stripe of {block_bytes}; files: "
        "{files}"
    ),
}


RULE = Rule(
    name="unaligned-requests",
    title=N_("Unaligned requests"),
    looks_for=N_(
        "Requests of a page or more that begin within a page of 4 KiB: random accesses, and writes in "
        "any order."
    ),
    why=N_(
        "A write of part of a page must first read that page, and on parallel file systems two clients "
        "then compete for the same page or stripe."
    ),
    advice=advise(
        any=N_(
            "Let records and headers be multiples of 4 KiB, or of the stripe size on a parallel file system: "
            "fill them up, so that every request begins at such a multiple."
        ),
        c=N_("Round offsets with (offset + 4095) & ~4095, and read or write whole blocks."),
        fortran=N_("Choose RECL of direct-access files as a multiple of 4096 bytes."),
        mpi_io=N_("Set the hints striping_unit and cb_buffer_size to the stripe size."),
        hdf5=N_("Call H5Pset_alignment(access_list, 65536, 1 << 20) before the file is made."),
    ),
    fine_when=N_(
        "The file is read sequentially, or a new file is written in requests of many pages: then the edges"
        " hardly matter."
    ),
    settings=Settings,
    find=find,
    counters=in_counters,
    needs=(Need.OFFSETS,),
    views=(
        "transfers",
        "place_names",
        "places",
        "opens",
        "plain_places",
        "remote_places",
        "file_work",
        "programs",
        "counted_transfers",
    ),
    yields_to=(
        *("redundant-reads", "random-access", "backward-access", "direct-io-unaligned"),
        "unaligned-shared-file",
    ),
)
