"""What good calls would still need, and whether what remains is worth a word."""

from __future__ import annotations

import re
from typing import Any

from iodock.program.relations.run_facts import SYSTEM_NAMES
from iodock.program.rules.facts import Facts
from iodock.program.rules.places import Faults

PIECE_BYTES = 1 << 20
"""What one large request moves."""
READ_AHEAD_BYTES = 128 << 10
"""Linux reads so much ahead of a file that is read from its beginning."""
READ_BYTES_PER_S = 5_000_000_000
"""Large reads from memory: what is read again, or was read ahead."""
WRITE_BYTES_PER_S = 2_000_000_000
"""Large writes into memory."""
LEAST_CALL_NS = 100
"""Of a transfer's time: entering the kernel, finding file and page. Fast memory makes it no shorter."""
CALLS_GO = (0.6, 1.0)
"""Gain where the change does away with calls, as a share of their cost: less where some of them stay."""
TEXT_NS = 5
"""Time to format or to parse a byte of text, at least: measured on one machine, strtod takes 9 ns, JSON.parse
of node 14, str.split of Python 46, its json and C's printf 40 to 70. Who only searches takes less."""
HUNG_NS = 100_000_000
"""A call of so long is told by `slow-call`, which takes it out of what others cost."""
LEAST_SHARE = 0.001
"""Of the run's wall time, or of its calls where times are not known."""

_TEXT = r"\.(json|jsonl|csv|tsv|txt|xml|ya?ml|toml|ini|cfg|conf|nml)$"


def descriptors(place: str) -> str:
    """SQL condition: PLACE is a descriptor that was opened by its name, as a shell's <(...) is read: mostly a
    pipe."""
    return f"regexp_matches({place}.name, '^/(dev/fd|proc/(self|[0-9]+)/fd)/[0-9]+$|^/dev/stdin$')"


def data_links(place: str) -> str:
    """SQL condition: PLACE is a symbolic link, and not a part of the system or of a program."""
    not_data = f"^/(proc|sys|dev)/|{SYSTEM_NAMES}"
    return f"({place}.kind = 'symlink' AND NOT regexp_matches({place}.name, '{not_data}'))"


def beyond_large(
    time_ns: int | None, count: int, moved: int, direction: int, read_rate: float = READ_BYTES_PER_S
) -> int | None:
    """What of TIME_NS large requests would not need: they move MOVED bytes in few calls at memory's rate, or
    at that which these calls themselves show where it is higher. None without durations."""
    if time_ns is None or not count:
        return None
    rate = read_rate if direction == 1 else WRITE_BYTES_PER_S
    moving_ns = min(moved / rate * 1e9, max(0, time_ns - count * LEAST_CALL_NS))
    needed = moving_ns + -(-moved // PIECE_BYTES) * time_ns / count
    return max(0, round(time_ns - needed))


def repeated_ns(time_ns: str, calls: str, longest_ns: str) -> str:
    """SQL: what all but one of CALLS cost, which take TIME_NS. The one that is needed is the longest:
    the first waits for the disk, or for the server, and the others find what it brought. A call that hung
    stays in."""
    return f"({time_ns} - greatest({time_ns} / {calls}, {unless_hung(longest_ns)}))"


def unless_hung(longest_ns: str) -> str:
    """SQL: LONGEST_NS, or 0 for a call that hung."""
    return f"CASE WHEN {longest_ns} < {HUNG_NS} THEN {longest_ns} ELSE 0 END"


def text_ns(facts: Facts, faults: Faults, direction: int) -> int:
    """What formatting (DIRECTION 2) or parsing (1) takes at least of bytes that are moved `again`, in files
    whose names say that they hold text; ns. It is no call's time, but goes with the calls. At most what the
    processes computed while they moved them, and 0 where that is not known or all is moved but twice."""
    text = [row for row in faults.rows if re.search(_TEXT, str(row["name"])) and _is_mostly_again(row)]
    if not text:
        return 0
    places = ", ".join(str(row["place"]) for row in text)
    used = "reads" if direction == 1 else "writes"
    computed = facts.one(
        f"""WITH spans AS (SELECT w.upid, max(w.last_ts) - min(w.first_ts) AS span
  FROM file_work w JOIN places l ON l.file_id = w.file_id
  WHERE w.{used} > 0 AND l.place IN ({places}) GROUP BY w.upid),
called AS (SELECT p.upid, sum(u.time_ns) + {facts.tracing_ns} * sum(u.count) AS ns
  FROM uses u JOIN processes p ON p.utid = u.utid
  WHERE u.side IN (0, 1, 3) AND p.upid IN (SELECT upid FROM spans) GROUP BY p.upid),
busy AS (SELECT upid, sum(cpu_user_ns) AS ns, count(*) = 1 AS alone FROM processes GROUP BY upid)
SELECT CAST(sum(least(b.ns, CASE WHEN b.alone THEN greatest(0, s.span - coalesce(c.ns, 0)) ELSE b.ns END))
  AS BIGINT) AS ns
FROM spans s JOIN busy b ON b.upid = s.upid LEFT JOIN called c ON c.upid = s.upid"""
    )
    return min(TEXT_NS * Faults(text).total("again"), int(computed["ns"] or 0))


# A second pass may be cheaper than to keep what the first one found.
def _is_mostly_again(row: dict[str, Any]) -> bool:
    return 3 * int(row["again"] or 0) >= 2 * int(row["bytes"] or 0)


def worth_a_word(facts: Facts, time_ns: int | None, count: int) -> bool:
    """Whether so much time, or without durations so many calls, matters in this run at all."""
    cost = facts.wall_of(time_ns)
    if cost is not None and facts.wall_seconds:
        return cost >= LEAST_SHARE * facts.wall_seconds
    return count >= LEAST_SHARE * facts.calls
