"""Finds collective writes of MPI-IO without collective buffering, and MPI-IO hints for collective
buffering or striping that had no effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `collective-buffering-off`."""

    least_each: int = 100
    """System calls of each rank in one collective call. With fewer, the messages between the ranks take as
    long as the calls that they save."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for collective writes to network and parallel file systems in which each rank
    wrote small pieces itself. Yields a note on hints for collective buffering and striping without effect.
    Collective reads are left out: in measurements, collective buffering did not make them faster than data
    sieving."""
    faults = Faults(facts.rows(_sql(settings)))
    lost = sum(_lost_ns(row) for row in faults.rows)
    if faults and lost >= costs.LEAST_SHARE * (facts.wall_ns or 0):
        yield _alone(faults, lost)
    if facts.store.rows_of("hints"):
        yield from _not_taken(facts)


def _lost_ns(row: dict[str, int]) -> int:
    """Returns the time in ns that the slowest rank would save if one aggregator wrote the pieces of all
    ranks."""
    return costs.beyond_large(row["time_ns"], row["count"] // row["ranks"], row["requested"], 2) or 0


def _alone(faults: Faults, lost: int) -> Candidate:
    count = faults.total("count")
    values: dict[str, Scalar] = {
        "call": faults.rows[0]["call"],
        "ranks": faults.rows[0]["ranks"],
        "count": count,
        "mean_bytes": faults.total("bytes") / count,
        "moved_bytes": faults.total("bytes"),
        "requested_bytes": faults.total("requested"),
        "files": faults.file_count,
    }
    return Candidate(
        message=Message(_ALONE, values),
        count=count,
        time_ns=faults.time_ns,
        evidence={"time_ns": faults.time_ns, **values},
        query=_QUERY,
        files=faults.files,
        confidence=0.7,
        wall_seconds=lost / 1e9,
        gain=(0.3, 0.9),
    )


def _not_taken(facts: Facts) -> Iterator[Candidate]:
    rows = facts.rows(_HINTS_SQL)
    if rows:
        text = ", ".join(f"{row['key']}={row['asked']} ({row['taken'] or '-'})" for row in rows)
        values: dict[str, Scalar] = {"hints": text, "files": max(int(row["files"]) for row in rows)}
        yield Candidate(
            message=Message(_HINTS, values),
            count=0,
            time_ns=None,
            evidence=values,
            query=_HINTS_QUERY,
            files=tuple(dict.fromkeys(row["file"] for row in rows)),
            confidence=0.9,
            gain=None,
            at_most=Severity.NOTE,
            title=_TITLE_HINTS,
            advice=_ADVICE_HINTS,
        )


def _sql(settings: Settings) -> str:
    return f"""SELECT f.name, c.call, max(c.ranks) AS ranks, CAST(sum(c.requests) AS BIGINT) AS count,
  CAST(sum(c.moved_bytes) AS BIGINT) AS bytes, CAST(sum(c.requested_bytes) AS BIGINT) AS requested,
  CAST(sum(c.moving_ns) AS BIGINT) AS time_ns
FROM collective_calls c JOIN files f ON f.file_id = c.file_id
WHERE c.direction = 2 AND c.movers = c.ranks AND c.requests >= {settings.least_each} * c.ranks
  AND c.moved_bytes < {costs.PIECE_BYTES} * c.requests
  AND c.file_id IN (SELECT l.file_id FROM places l WHERE l.place IN (FROM remote_places))
GROUP BY f.name, c.call ORDER BY time_ns DESC, f.name"""


# If an implementation reports no value for any hint of a call, it does not report hints at all, so a missing
# value does not mean that a hint had no effect.
_HINTS_SQL = """SELECT key, any_value(asked) AS asked, min(taken) AS taken, min(name) AS file,
  count(DISTINCT name) AS files
FROM (SELECT h.*, f.name, max(h.taken) OVER (PARTITION BY h.interface_call_id) AS told FROM hints h
  JOIN interface_calls k ON k.id = h.interface_call_id JOIN files f ON f.file_id = k.file_id
  JOIN places l ON l.file_id = f.file_id WHERE l.place IN (FROM remote_places))
WHERE told IS NOT NULL AND asked IS NOT NULL AND lower(asked) IS DISTINCT FROM lower(taken)
  AND regexp_matches(key, '^(romio_cb_(read|write)|collective_buffering|cb_nodes|striping_(factor|unit))$')
GROUP BY key ORDER BY key"""
_QUERY = """SELECT k.call, p.rank, count(*) AS requests, sum(e.bytes) AS bytes, sum(e.dur) AS time_ns
FROM events e JOIN interface_calls k ON k.id = e.interface_call_id AND k.file_id = e.file_id
JOIN processes p ON p.utid = k.utid
WHERE k.is_collective AND e.bytes > 0 GROUP BY k.call, p.rank ORDER BY k.call, p.rank"""
_HINTS_QUERY = """SELECT f.name AS file, h.key, h.asked, h.taken, count(*) AS opens FROM hints h
JOIN interface_calls k ON k.id = h.interface_call_id JOIN files f ON f.file_id = k.file_id
WHERE h.asked IS NOT NULL GROUP BY ALL ORDER BY 1, 2"""
_ALONE = N_(
    "In {call} each of {ranks} ranks wrote its small pieces by itself: {count} requests of {mean_bytes} on "
    "average moved {moved_bytes} for {requested_bytes} that were requested; files: {files}"
)
_HINTS = N_("Hints that were requested, and in parentheses the value that was taken: {hints}; files: {files}")
_TITLE_HINTS = N_("Hints of MPI-IO without effect")
_ADVICE_HINTS = advise(
    any=N_("Correct or remove hints that have no effect."),
    mpi_io=N_(
        "Striping is set when a file is made, and only on file systems with stripes. ROMIO takes one "
        "aggregator for each node unless cb_config_list allows more, and knows romio_cb_write and "
        "romio_cb_read in place of collective_buffering."
    ),
)

RULE = Rule(
    name="collective-buffering-off",
    title=N_("Collective writes without collective buffering"),
    looks_for=N_(
        "Collective writes of MPI-IO to network and parallel file systems that end as small requests of each "
        "rank, and hints for collective buffering and striping that the implementation did not take."
    ),
    why=N_(
        "Without collective buffering each rank writes its small pieces one by one, or reads and writes the "
        "places between them, too. Ranks then wait for the same locks, as with independent calls."
    ),
    advice=advise(
        any=N_("Let the implementation gather the pieces of all ranks."),
        mpi_io=N_(
            "With ROMIO set the hint romio_cb_write to automatic or enable in the info of MPI_File_open. "
            "With OMPIO remove --mca fcoll individual. iodock show interfaces --hints lists the hints."
        ),
        hdf5=N_("Pass the hint romio_cb_write to H5Pset_fapl_mpio in its info."),
    ),
    fine_when=N_("The file lies on a local disk, or each call moves few or large pieces of each rank."),
    settings=Settings,
    find=find,
    needs=(Need.EVERY_RANK, Need.DURATIONS),
    views=("collective_calls", "places", "remote_places"),
)
