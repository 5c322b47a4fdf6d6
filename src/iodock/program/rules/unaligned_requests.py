"""Requests that begin within a page or block, so that they touch one more than they must."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iodock.program.rules import costs, redundant_writes, transfers
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message

PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `unaligned-requests`."""

    least_count: int = 500
    """Fewer unaligned requests than this, in all such places together, are not worth a word."""
    least_share: float = 0.5
    """Of a place's requests that must be unaligned."""
    below_bytes: int = 1048576
    """Requests above this size hardly notice one page more."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for reads and one for writes: all places with mostly unaligned requests of a page or
    more. Of each request's time the share of the page that an aligned one would not touch is the cost; where
    a file is overwritten, what the requests take beyond copying, for they wait for pages from the disk."""
    for direction, verb in ((1, "read"), (2, "write")):
        slow = _without_tools(facts, _waiting(facts, settings), 2) if direction == 2 else []
        known = {row["place"] for row in slow}
        rows = _without_tools(facts, facts.rows(_sql(direction, settings, facts)), direction)
        if direction == 2:
            rows = list(redundant_writes.without_headers(facts, Faults(rows)).rows)
        faults = Faults(slow + [row for row in rows if row["place"] not in known])
        count = faults.total("count")
        cost = faults.sum_of("extra_ns")
        if count < settings.least_count or not costs.worth_a_word(facts, cost, count):
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


def without_waiting(facts: Facts, faults: Faults) -> Faults:
    """The written places without those that wait for parts of pages: in order they would wait, too."""
    settings = facts.settings.of_rule("unaligned-requests", Settings)
    known = {row["place"] for row in _waiting(facts, settings)} if faults else set()
    return Faults([row for row in faults.rows if row["place"] not in known])


def _sql(direction: int, settings: Settings, facts: Facts) -> str:
    # What is read without a gap comes from memory, whatever its edges; what is written so touches the page of
    # each edge twice, which hardly shows in large pieces. Stream libraries write pieces of 4, 8 and 16 KiB,
    # now and then less, and tar 10 KiB into each of many files: short ones count where requests jump.
    mean = "(CAST(t.bytes AS DOUBLE) / t.count)"
    local = f"{mean} < 14000 AND {mean} NOT BETWEEN 4000 AND 4300 AND {mean} NOT BETWEEN 8000 AND 8600"
    edges = f"t.direction = 2 AND (p.place IN (FROM remote_places) OR {local})"
    pages = f"({mean} / {PAGE_BYTES})"
    jumps = "t.pattern IN (3, 4, 5, 6, 7)"
    odd = f"t.unaligned >= 0.7 * t.count AND ({jumps} OR {edges})"
    sums = {
        "count": "sum(t.unaligned)",
        "time_ns": "sum(t.time_ns)",
        "extra_ns": f"sum(t.time_ns / ({pages} + 1))",
        "bytes": "sum(t.bytes)",
    }
    return transfers.by_place(
        {name: f"{one} FILTER (WHERE {odd})" for name, one in sums.items()},
        where=f"""t.direction = {direction} AND t.bytes >= {PAGE_BYTES} * t.count
  AND t.bytes <= {settings.below_bytes} * t.count AND p.place IN (FROM plain_places)""",
        having=f"""sum(t.unaligned) FILTER (WHERE {odd})
  >= greatest({transfers.FEW}, {settings.least_share} * sum(t.count))
  AND (sum(t.unaligned) FILTER (WHERE {odd}) >= {settings.least_count}
    OR sum(t.unaligned) FILTER (WHERE {jumps}) >= {settings.least_share} * sum(t.count))""",
        first="extra_ns",
    )


def _without_tools(facts: Facts, rows: list[dict[str, Any]], direction: int) -> list[dict[str, Any]]:
    """The places that anyone but tools (tar with its blocks of 10 KiB, compilers) moved bytes of."""
    if not rows:
        return rows
    places = ", ".join(str(row["place"]) for row in rows)
    left = facts.rows(
        f"""SELECT DISTINCT l.place FROM uses u JOIN places l ON l.file_id = u.file_id
  JOIN processes q ON q.utid = u.utid LEFT JOIN programs g ON g.upid = q.upid
WHERE l.place IN ({places}) AND u.direction = {direction} AND g.is_tool IS NOT TRUE"""
    )
    return [row for row in rows if {"place": row["place"]} in left]


def _waiting(facts: Facts, settings: Settings) -> list[dict[str, Any]]:
    """Places whose files were there before and are overwritten piece by piece, much slower than memory is
    copied. Without durations there are none."""
    copying = f"({facts.tracing_ns + _CALL_NS} * t.count + t.bytes / {costs.WRITE_BYTES_PER_S} * 1e9)"
    # On a local file system a write that needs no page from the disk only fills memory, wherever it goes.
    local = "p.fs_type IS NOT NULL AND NOT p.place IN (FROM remote_places)"
    sql = transfers.by_place(
        {
            "count": "sum(t.unaligned)",
            "time_ns": "sum(t.time_ns)",
            "extra_ns": f"sum(t.time_ns - {copying})",
            "bytes": "sum(t.bytes)",
        },
        where=f"""t.direction = 2 AND (t.pattern = 2 OR {local}) AND t.bytes >= {PAGE_BYTES} * t.count
  AND t.bytes <= {settings.below_bytes} * t.count AND p.place IN (FROM plain_places)""",
        having=f"""sum(t.unaligned) >= greatest({transfers.FEW}, 0.7 * sum(t.count))
  AND sum(t.time_ns) >= {_MUCH_SLOWER} * sum({copying})""",
        first="extra_ns",
    )
    slow = facts.rows(sql)
    if not slow:
        return []
    places = ", ".join(str(row["place"]) for row in slow)
    old = facts.rows(_OVERWRITTEN.format(places=places))
    return [row for row in slow if {"place": row["place"]} in old]


_CALL_NS = 2000
_MUCH_SLOWER = 2
# Opened for writing, neither made nor emptied: O_ACCMODE, O_CREAT and O_TRUNC of Linux.
_OVERWRITTEN = """SELECT DISTINCT p.place FROM opens o JOIN places p ON p.file_id = o.file_id
WHERE p.place IN ({places}) AND o.flags & 3 <> 0 AND o.flags & 576 = 0 AND o.errno_id IS NULL
  AND o.call_id IN (SELECT id FROM calls WHERE family = 'open')"""


def _query(direction: int) -> str:
    side = "read" if direction == 1 else "write"
    return f"""SELECT file, bytes, count(*) AS count, sum(dur) AS time_ns FROM call_ends
WHERE direction = '{side}' AND bytes >= {PAGE_BYTES} AND offset_bytes % {PAGE_BYTES} <> 0
GROUP BY file, bytes ORDER BY time_ns DESC"""


_MESSAGES = {
    "read": N_(
        "{count} reads of {mean_bytes} on average begin within a page of 4 KiB and touch one more than "
        "they must; files: {files}"
    ),
    "write": N_(
        "{count} writes of {mean_bytes} on average begin within a page of 4 KiB and touch one more than "
        "they must; files: {files}"
    ),
}

RULE = Rule(
    name="unaligned-requests",
    title=N_("Unaligned requests"),
    looks_for=N_(
        "Requests of a page or more that begin within a page of 4 KiB: jumps to and fro, and writes in any "
        "order."
    ),
    why=N_(
        "A write of part of a page must first read that page, and on parallel file systems two clients then "
        "fight for the same page or stripe."
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
        "The file is read piece after piece, or written anew in pieces of many pages: then the edges hardly "
        "count."
    ),
    settings=Settings,
    find=find,
    needs=(Need.OFFSETS,),
    views=(
        *("uses", "programs", "transfers", "place_names", "places", "opens", "plain_places", "remote_places"),
    ),
    yields_to=("redundant-reads", "random-access", "backward-access", "direct-io-unaligned"),
)
