"""Finds files whose pieces each rank requests separately, although collective calls could combine them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from iodock.program.findings import Severity
from iodock.program.rules import costs, counted
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `independent-io-where-collective-would-do`."""

    least_share: float = 0.9
    """Minimum share of independent calls among a file's MPI-IO reads or writes: even with collective I/O, a
    higher-level library makes a few independent calls, for example for its header."""
    least_each: int = 16
    "Number of reads or writes of each process to a file that ranks share in pieces: a few are not a pattern."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for reads and one for writes: files on network and parallel file systems in
    which the pieces of different ranks are interleaved, and which ranks accessed by independent calls.
    Local disks are left out, because there the messages of a collective call take longer than small
    requests."""
    rows = facts.rows(_sql(settings))
    for direction, call in ((1, "read"), (2, "write")):
        faults = Faults([{**row, "call": call} for row in rows if row["direction"] == direction])
        wall = sum(_slowest_ns(row) for row in faults.rows) / 1e9
        if faults and wall >= costs.LEAST_SHARE * (facts.wall_seconds or 0):
            yield _candidate(faults, wall)


def _candidate(faults: Faults, wall: float) -> Candidate:
    count = faults.total("count")
    values: dict[str, Scalar] = {
        "call": faults.rows[0]["made"],
        "ranks": max(int(row["ranks"]) for row in faults.rows),
        "mean_bytes": faults.total("bytes") / count,
        "count": count,
        "mean_ns": faults.total("time_ns") / count,
        "files": faults.file_count,
    }
    return Candidate(
        message=Message(_RECORDED, values),
        count=count,
        time_ns=faults.time_ns,
        evidence={"time_ns": faults.time_ns, "bytes": faults.total("bytes"), **values},
        query=_QUERY,
        **faults.where,
        confidence=0.7,
        wall_seconds=wall,
        gain=(0.3, 0.9),
    )


def _slowest_ns(row: Mapping[str, Any]) -> int:
    """Returns the time in ns that the slowest rank would save if each rank moved an equal share in large
    requests."""
    ranks, direction = int(row["ranks"]), int(row["direction"])
    saved = costs.beyond_large(
        int(row["slowest_ns"]), int(row["count"]) // ranks, int(row["bytes"]) // ranks, direction
    )
    return saved or 0


# A piece is a turn if, in the order of offsets, it follows a piece of another rank.
def _sql(settings: Settings) -> str:
    return f"""WITH alone AS (SELECT file_id, direction, mode(call) AS made FROM interface_calls
  WHERE interface = 'MPI-IO' AND direction > 0 GROUP BY ALL
  HAVING count(*) FILTER (NOT is_collective) >= {settings.least_share} * count(*)),
pieces AS (SELECT e.file_id, e.direction, p.upid, e.bytes, e.dur, p.upid <> lag(p.upid) OVER
    (PARTITION BY e.file_id, e.direction ORDER BY e.offset_bytes, e.ts) AS is_turn
  FROM events e JOIN interface_calls k ON k.id = e.interface_call_id AND k.interface = 'MPI-IO'
    AND k.file_id = e.file_id AND k.direction = e.direction JOIN processes p ON p.utid = e.utid
  WHERE e.bytes > 0 AND NOT k.is_collective AND e.file_id IN
    (SELECT l.file_id FROM places l WHERE l.place IN (FROM remote_places))),
ranks AS (SELECT file_id, direction, upid, count(*) AS count, sum(bytes) AS bytes, sum(dur) AS time_ns,
  count(*) FILTER (is_turn) AS turns FROM pieces GROUP BY ALL)
SELECT f.name, r.direction, any_value(a.made) AS made, count(*) AS ranks,
  CAST(sum(r.count) AS BIGINT) AS count, CAST(sum(r.bytes) AS BIGINT) AS bytes,
  CAST(sum(r.time_ns) AS BIGINT) AS time_ns, CAST(max(r.time_ns) AS BIGINT) AS slowest_ns
FROM ranks r JOIN alone a USING (file_id, direction) JOIN files f ON f.file_id = r.file_id
GROUP BY f.name, r.direction HAVING count(*) > 1 AND sum(r.count) >= {settings.least_each} * count(*)
  AND 2 * sum(turns) >= sum(r.count) AND sum(r.bytes) < {costs.PIECE_BYTES} * sum(r.count)
ORDER BY slowest_ns DESC NULLS LAST, f.name"""


_QUERY = """SELECT f.name AS file, k.call, p.rank, count(*) AS requests, sum(e.bytes) AS bytes,
  avg(e.dur) AS mean_ns
FROM events e JOIN interface_calls k ON k.id = e.interface_call_id JOIN files f ON f.file_id = e.file_id
JOIN processes p ON p.utid = e.utid WHERE e.bytes > 0 AND NOT k.is_collective
GROUP BY ALL ORDER BY requests DESC"""
_RECORDED = N_(
    "{ranks} ranks called {call}, each for itself, for pieces of {mean_bytes} between each other's: {count} "
    "requests of {mean_ns} on average; files: {files}"
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for reads and one for writes: files that ranks access by MPI-IO, and files that
    they share without MPI-IO in interleaved pieces. For large sequential pieces the gain is small, so
    there is only a note."""
    if facts.ranks < 2:
        return
    for direction, verb in counted.DIRECTIONS:
        faults = counted.transfers(facts, f"t.direction = {direction} AND ({_where(settings)})")
        count, moved = faults.total("count"), faults.total("bytes")
        if not faults or not counted.is_much(facts, moved):
            continue
        pieces = Faults([row for row in faults.rows if counted.mean_bytes(row) < costs.PIECE_BYTES])
        values: dict[str, Scalar] = {
            "count": count, "processes": counted.processes(faults), "mean_bytes": moved / count,
            "files": faults.file_count,
        }  # fmt: skip
        yield counted.candidate(
            facts, faults, _MESSAGES[verb], values, count=count, call=verb, bytes=moved,
            cost_ns=pieces.time_ns if pieces else faults.time_ns,
            at_most=Severity.HIGH if pieces else Severity.NOTE,
        )  # fmt: skip


def _where(settings: Settings) -> str:
    return f"""t.interface = 'mpi-io' AND t.count - t.collective >= {settings.least_share} * t.count
  OR t.interface = 'posix' AND t.movers > 1 AND t.rank IS NULL AND 2 * (t.count - t.consecutive) >= t.count
    AND t.count >= {settings.least_each} * t.movers
    AND t.file_id NOT IN (SELECT file_id FROM counted_transfers WHERE interface = 'mpi-io')"""


_MESSAGES = {
    "read": N_(
        "{processes} processes read independently, {mean_bytes} at a time on average: {count} reads that are "
        "not collective; files: {files}"
    ),
    "write": N_(
        "{processes} processes write independently, {mean_bytes} at a time on average: {count} writes that "
        "are not collective; files: {files}"
    ),
}

RULE = Rule(
    name="independent-io-where-collective-would-do",
    title=N_("Independent I/O where collective calls would do"),
    looks_for=N_(
        "Files of MPI-IO that are read or written by independent calls, and files that ranks share in "
        "interleaved pieces."
    ),
    why=N_(
        "In a collective call a few ranks gather the pieces of all ranks, and request large, ordered "
        "ranges from the servers. In independent calls each piece is a separate request, and requests of "
        "neighbouring ranks wait for the same locks."
    ),
    advice=advise(
        any=N_("Read and write shared files by collective calls of MPI-IO or of a library above it."),
        mpi_io=N_(
            "Describe all pieces of a rank with a file view (MPI_File_set_view), and transfer them with "
            "one MPI_File_read_all or MPI_File_write_all. A collective call for each small piece takes "
            "longer than independent ones. romio_cb_write=enable makes ROMIO gather the pieces."
        ),
        hdf5=N_("Set H5FD_MPIO_COLLECTIVE by H5Pset_dxpl_mpio for each transfer."),
    ),
    fine_when=N_("The ranks do I/O at different times, or each transfers large ranges in order."),
    settings=Settings,
    find=find,
    needs=(Need.MPI_IO, Need.EVERY_RANK, Need.DURATIONS),
    counters=in_counters,
    counters_need=(Need.MPI_IO, Need.RANKS),
    views=("places", "remote_places", "counted_transfers", "counted_files"),
)
