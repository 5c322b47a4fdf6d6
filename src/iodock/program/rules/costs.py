"""Estimates the time that efficient calls would still need, and decides whether the remaining time is
worth reporting."""

from __future__ import annotations

import re
from typing import Any

from iodock.program.relations.run_facts import SYSTEM_NAMES
from iodock.program.rules.facts import Facts
from iodock.program.rules.places import Faults

PIECE_BYTES = 1 << 20
"""Number of bytes that one large request moves."""
READ_AHEAD_BYTES = 128 << 10
"""Number of bytes that Linux reads ahead in a file that is read from its beginning."""
READ_BYTES_PER_S = 5_000_000_000
"""Rate of large reads from memory, that is of data that was read before or read ahead."""
WRITE_BYTES_PER_S = 2_000_000_000
"""Rate of large writes into memory."""
LEAST_CALL_NS = 100
"""The part of a transfer's time for entering the kernel and finding file and page. A faster memory does not
shorten it."""
CALLS_GO = (0.6, 1.0)
"""Gain as a share of the calls' cost, if the change removes the calls. It is less if some of them remain."""
TEXT_NS = 5
"""Minimum time to format or parse a byte of text, ns. On one machine strtod took 9 ns, JSON.parse of node 14,
str.split of Python 46, its json and C's printf 40 to 70. A mere search takes less."""
HUNG_NS = 100_000_000
"""Calls that take longer are reported by `slow-call`, which removes them from the cost of other rules."""
LEAST_SHARE = 0.001
"""Costs below this share of the run's wall time are not worth reporting. If times are unknown, it is a share
of the calls."""

_TEXT = r"\.(json|jsonl|csv|tsv|txt|xml|ya?ml|toml|ini|cfg|conf|nml)$"


def descriptors(place: str) -> str:
    """Returns an SQL condition: the file in the table PLACE is a descriptor opened by its name, such as a
    shell's <(...). Such a descriptor is usually a pipe."""
    return f"regexp_matches({place}.name, '^/(dev/fd|proc/(self|[0-9]+)/fd)/[0-9]+$|^/dev/stdin$')"


def data_links(place: str) -> str:
    """Returns an SQL condition: the file in the table PLACE is a symbolic link that belongs neither to the
    system nor to an installed program."""
    not_data = f"^/(proc|sys|dev)/|{SYSTEM_NAMES}"
    return f"({place}.kind = 'symlink' AND NOT regexp_matches({place}.name, '{not_data}'))"


def beyond_large(
    time_ns: int | None, count: int, moved: int, direction: int, read_rate: float = READ_BYTES_PER_S
) -> int | None:
    """Returns the part of TIME_NS that large requests would save. They would move the MOVED bytes in few
    calls, at memory's rate or at the rate of the present calls, whichever is higher. Returns None if no
    durations are known."""
    if time_ns is None or not count:
        return None
    rate = read_rate if direction == 1 else WRITE_BYTES_PER_S
    moving_ns = min(moved / rate * 1e9, max(0, time_ns - count * LEAST_CALL_NS))
    needed = moving_ns + -(-moved // PIECE_BYTES) * time_ns / count
    return max(0, round(time_ns - needed))


def repeated_ns(time_ns: str, calls: str, longest_ns: str) -> str:
    """Returns SQL for the time of all but one of CALLS, which take TIME_NS together. The longest call
    counts as the necessary one: the first call waits for the disk or server, and the others find the data
    in the cache. If the longest call hung, an average call counts as the necessary one instead."""
    return f"({time_ns} - greatest({time_ns} / {calls}, {unless_hung(longest_ns)}))"


def unless_hung(longest_ns: str) -> str:
    """Returns SQL for LONGEST_NS, or for 0 if that call hung, that is, took HUNG_NS or more."""
    return f"CASE WHEN {longest_ns} < {HUNG_NS} THEN {longest_ns} ELSE 0 END"


def text_ns(facts: Facts, faults: Faults, direction: int) -> int:
    """Returns the minimum time in ns for formatting (DIRECTION 2) or parsing (1) the bytes that are moved
    `again`, in files whose names indicate text. The program spends this time outside of calls, but would
    save it with them. It is at most the computing time of the processes while they moved the bytes, and 0
    if that is unknown or if the data is moved only twice."""
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


# If data is moved only twice, keeping the results of the first pass may cost more than the second pass.
def _is_mostly_again(row: dict[str, Any]) -> bool:
    return 3 * int(row["again"] or 0) >= 2 * int(row["bytes"] or 0)


def worth_a_word(facts: Facts, time_ns: int | None, count: int) -> bool:
    """Returns whether this time is large enough to report in this run. If durations are unknown, it
    compares the number of calls with that of the run."""
    cost = facts.wall_of(time_ns)
    if cost is not None and facts.wall_seconds:
        return cost >= LEAST_SHARE * facts.wall_seconds
    return count >= LEAST_SHARE * facts.calls
