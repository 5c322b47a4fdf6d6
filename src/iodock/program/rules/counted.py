"""Queries counters for the rules that use them, and makes the candidates of these rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iodock.program.findings import Severity
from iodock.program.rules import gains
from iodock.program.rules.base import Candidate, Facts
from iodock.program.rules.costs import PIECE_BYTES
from iodock.program.rules.places import Faults
from iodock.shared.message import Message, Scalar

LEAST_PART = 0.01
"""If a file has a smaller share of the job's time in I/O, or of its bytes, it does not characterise the
job."""
LEAST_OF_DIRECTION = 0.1
"""A pattern must have at least this share of the job's reads or writes, or of their time."""
LEAST_BYTES = 1 << 16
"""A job reads fewer bytes than this from its settings, and writes fewer into its log."""
IS_SYNCED = f"""file_id IN (SELECT file_id FROM counted_files WHERE syncs >= 20
  AND 20 * syncs >= transfers AND written_bytes < {PIECE_BYTES} * syncs)"""
"""SQL condition: the file is synced after few writes each time. Syncs are timed as writes, and take most of
the time."""
DIRECTIONS = ((1, "read"), (2, "write"))


def transfers(facts: Facts, where: str, *, together: bool = False) -> Faults:
    """Returns the files whose reads or writes fulfil WHERE, the most expensive first. WHERE is SQL on
    `counted_transfers` as `t`. TOGETHER includes the entries for several files whose counters the source
    summed up."""
    return _faults(facts, "FROM counted_transfers t", where, together)


def totals(facts: Facts, where: str) -> dict[str, int]:
    """Returns the sums of `count`, `bytes` and `time_ns` of all reads or writes that fulfil WHERE."""
    sums = ", ".join(f"sum({name}) AS {name}" for name in ("count", "bytes", "time_ns"))
    row = facts.one(f"SELECT {sums} FROM counted_transfers WHERE {where}")
    return {name: int(value or 0) for name, value in row.items()}


def files(facts: Facts, where: str, *, together: bool = False) -> Faults:
    """Returns the files that fulfil WHERE, the most expensive first. WHERE is SQL on `counted_files` as
    `t`. TOGETHER includes the entries for several files whose counters the source summed up."""
    return _faults(facts, "FROM counted_files t", where, together)


def _faults(facts: Facts, source: str, where: str, together: bool) -> Faults:
    single = "true" if together else "NOT t.is_together"
    order = "ORDER BY t.time_ns DESC, t.name"
    return Faults(
        facts.rows(f"SELECT t.*, t.files AS file_count {source} WHERE {single} AND ({where}) {order}")
    )


def counted_together(facts: Facts) -> int:
    """Returns a lower bound of the number of files that share counters with other files."""
    row = facts.one("SELECT sum(files) AS n FROM counted_files WHERE is_together")
    return int(row["n"] or 0)


def main(faults: Faults) -> Faults:
    """Returns the files that have nearly all of the bytes, the largest first."""
    rows, left = list[dict[str, Any]](), (1 - LEAST_PART) * faults.total("bytes")
    for row in sorted(faults.rows, key=lambda row: -int(row["bytes"] or 0)):
        if left > 0:
            rows.append(row)
        left -= int(row["bytes"] or 0)
    return Faults(rows)


def matters(facts: Facts, time_ns: int | None, count: int) -> bool:
    """Returns whether this time is a relevant part of the job's I/O time. If times are unknown, it
    compares the number of calls with that of the job."""
    if time_ns is not None and facts.summed_io_ns:
        return time_ns >= LEAST_PART * facts.summed_io_ns
    return count > 0 and count >= LEAST_PART * facts.calls


def is_much(facts: Facts, moved: int) -> bool:
    """Returns whether this number of bytes is a relevant part of the job's bytes, and more than settings
    and log lines need."""
    total = int(facts.one("SELECT sum(read_bytes + written_bytes) AS n FROM counted_files")["n"] or 0)
    return moved >= max(LEAST_BYTES, LEAST_PART * total)


def processes(faults: Faults) -> int:
    """Returns the number of processes that made the calls at fault. This is the larger of two numbers:
    ranks with files of their own, and ranks of the file that most ranks share."""
    alone = {row["rank"] for row in faults.rows if row["rank"] is not None}
    return max(1, len(alone), *(int(row["ranks"]) for row in faults.rows))


def threaded(facts: Facts) -> set[int]:
    """Returns the ranks or processes that have several threads. Their times are summed over threads, so
    these times are not a part of the run's time. Darshan's logs do not show threads, so the result is
    empty for them."""
    rows = facts.rows(_THREADED_SQL) if facts.store.manifest.is_light else []
    return {row["worker"] for row in rows}


def is_threaded(facts: Facts, faults: Faults) -> bool:
    """Returns whether a process with several threads may have made the calls at fault."""
    known = threaded(facts)
    return bool(known) and any(row["rank"] is None or row["rank"] in known for row in faults.rows)


def candidate(
    facts: Facts,
    faults: Faults,
    text: str,
    values: dict[str, Scalar],
    *,
    cost_ns: int | None,
    count: int,
    call: str | None = None,
    gain: tuple[float, float] | None = None,
    at_most: Severity = Severity.HIGH,
    **evidence: Scalar,
) -> Candidate:
    """Makes a candidate whose cost COST_NS is divided among the processes with calls at fault. GAIN is
    None if counters do not show what better calls would save; the severity is then never high."""
    each = None if cost_ns is None or not facts.durations else cost_ns / processes(faults) / 1e9
    time_ns = cost_ns
    if is_threaded(facts, faults):
        # Counters don't show how many threads were in calls at the same time, so the wall time is unknown.
        at_most = gains.severity_at_most(each, at_most, facts)
        time_ns = each = gain = None
    # A file has one row for reads and one for writes, so its name may appear twice.
    names = tuple(dict.fromkeys(faults.files))
    if gain is None and at_most is Severity.HIGH:
        at_most = Severity.MEDIUM
    return Candidate(
        message=Message(text, values),
        count=count,
        time_ns=time_ns,
        evidence={"count": count, "time_ns": cost_ns, "processes": processes(faults), **values, **evidence},
        query=_QUERY,
        files=names,
        file_count=_file_count(faults),
        call=call,
        confidence=0.6,
        wall_seconds=each,
        gain=gain,
        at_most=at_most,
    )


def in_each_direction(
    facts: Facts, where: str, *, together: bool = False
) -> Iterator[tuple[int, str, Faults]]:
    """Yields the direction, its verb, and the files that fulfil WHERE. A direction is left out if these
    files are not a relevant part of the job's I/O, or of its calls in this direction."""
    for direction, verb in DIRECTIONS:
        faults = transfers(facts, f"t.direction = {direction} AND {where}", together=together)
        if not faults or not matters(facts, faults.time_ns, faults.total("count")):
            continue
        every = totals(facts, f"direction = {direction} AND interface = 'posix'")
        shares = (faults.total(name) / max(1, every[name]) for name in ("count", "time_ns"))
        if max(shares) >= LEAST_OF_DIRECTION:
            yield direction, verb, faults


def _file_count(faults: Faults) -> int:
    """Returns the number of files. A file with two rows counts once."""
    known = {(row["file_id"], row["name"]): int(row["file_count"]) for row in faults.rows}
    return sum(known.values())


def gain_if_local(faults: Faults, gain: tuple[float, float]) -> tuple[float, float] | None:
    """Returns GAIN, the gain of replacing calls by better ones, or None if files may be on servers,
    because counters do not show how fast servers are with better calls."""
    return None if any(row["is_remote"] for row in faults.rows) else gain


def metadata(row: dict[str, Any]) -> int:
    """Returns the number of calls that a file's metadata time covers. Each open counts twice, because a
    close follows."""
    return max(1, 2 * int(row["opens"]) + int(row["stats"]) + int(row["seeks"]))


def mean_bytes(row: dict[str, Any]) -> float:
    """Returns the mean number of bytes of a file's reads or writes."""
    return float(row["bytes"] or 0) / float(row["count"])


_THREADED_SQL = """SELECT DISTINCT coalesce(p.rank, p.upid) AS worker FROM profiles p
WHERE p.upid IN (SELECT upid FROM processes GROUP BY upid HAVING count(DISTINCT utid) > 1)"""
_QUERY = """SELECT f.name AS file, p.interface, p.rank, p.ranks, p.opens, p.reads, p.writes, p.read_bytes,
  p.written_bytes, p.read_time_ns, p.write_time_ns, p.meta_time_ns
FROM profiles p LEFT JOIN files f ON f.file_id = p.file_id
ORDER BY coalesce(p.read_time_ns, 0) + coalesce(p.write_time_ns, 0) + coalesce(p.meta_time_ns, 0) DESC"""
