"""Finds single calls that took far longer than similar ones. It reports when they ran, and which other
calls ran at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iodock.program.findings import Advice, Severity
from iodock.program.rules import open_close_loop
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.shared.clock import clock_text
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar

MOST_CANDIDATES = 3
CROWDED_SHARE = 0.3
"""If a task waited for a processor during this share of the time, there were too few processors."""
LEAST_LIKE = 20
"""Fewer calls than this do not show the typical duration."""
ORDINARY_BIN = 20
"""If a run has too few similar calls, a call is expected to take no longer than 2^20 ns, about a
millisecond."""
LONG_NS = 300_000_000
"""No scheduler delays a call for this long."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `slow-call`."""

    least_seconds: float = 0.1
    "Duration below which calls are not outliers."
    least_times: float = 100.0
    """Minimum factor by which a call must exceed the median of similar calls."""
    slow_bytes_per_s: float = 20_000_000.0
    """Minimum rate: a call that transferred its bytes, or wrote out earlier data, at this rate or faster
    took the time it needed."""
    most_share: float = 0.01
    """Maximum share of such calls among all calls of that name: with more they are not outliers, but all
    calls are slow."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields slow calls, combined by call and file, the most expensive first. Each candidate states the
    date of its longest call."""
    for row in facts.rows(_sql(settings))[:MOST_CANDIDATES]:
        yield _candidate(facts, row)


def _candidate(facts: Facts, row: dict[str, Any]) -> Candidate:
    began, longest = int(row["began"]), int(row["longest_ns"])
    when = clock_text(began, facts.store.manifest.clock)
    others = _others(facts, began, began + longest, row)
    machine = _machine(facts, began, began + longest)
    usual = _usual_ns(facts, row)
    values: dict[str, Scalar] = {
        "call": row["call"],
        "name": row["name"],
        "when": when,
        "longest_ns": longest,
        **({} if usual is None else {"usual_ns": usual}),
        "count": int(row["count"]),
        "others": others,
        **machine,
    }
    return Candidate(
        message=Message(_MESSAGES[usual is not None, len(machine) == 3], values),
        count=int(row["count"]),
        time_ns=int(row["time_ns"]),
        evidence={**values, "time_ns": int(row["time_ns"]), "began_ts": began},
        query=_query(row["call"], began, longest),
        files=(str(row["name"]),),
        call=row["call"],
        confidence=0.85,
        gain=(0.35, 1.0),
        at_most=_ceiling(longest, machine),
        advice=_advice(facts, row),
    )


def _usual_ns(facts: Facts, row: dict[str, Any]) -> int | None:
    """Returns the median duration in ns of the faster calls of this name on the file. If there are none,
    it is that of the faster calls on all files; None if there are none either."""
    of_file = f"e.file_id = {row['file_id']} AND e.dur < {row['shortest_ns']}"
    for others in (of_file, f"e.dur < {row['shortest_ns']}"):
        found = facts.one(
            f"""SELECT CAST(quantile_disc(e.dur, 0.5) AS BIGINT) AS ns FROM events e
WHERE e.call_id = {row["call_id"]} AND e.side IN (0, 1, 3) AND {others}"""
        )
        if found["ns"] is not None:
            return int(found["ns"])
    return None


def _advice(facts: Facts, row: dict[str, Any]) -> tuple[Advice, ...] | None:
    """Returns advice for slow opens and closes; None for the rule's own advice. A program that opens a
    file only once can't avoid one open and one close, so only repeated opens get additional advice."""
    if row["family"] not in ("open", "close"):
        return None
    opens = facts.one(f"SELECT max(opens) AS most FROM file_work WHERE file_id = {row['file_id']}")["most"]
    return (*open_close_loop.RULE.advice, *RULE.advice) if int(opens or 0) > 1 else None


def _sql(settings: Settings) -> str:
    """Returns SQL for calls that take far longer than the median of the calls of the same name. If there
    are few of these, the median is that of all calls of the same class (metadata or data). If a short run
    has few of these, too, the median is limited to about a millisecond. A call is not an outlier if the
    number of its bytes explains its time, or if there are many such calls."""
    needed = (
        "least(s.dur, coalesce(s.bytes, CASE WHEN k.class = 'sync' OR k.family = 'close' THEN w.bytes END, 0)"
    )
    rate = settings.slow_bytes_per_s / 1e9
    return f"""WITH bins AS (SELECT d.call_id, d.duration_bin, sum(d.count) AS count FROM durations d
  GROUP BY ALL),
own AS (SELECT call_id, sum(count) AS calls, min(duration_bin) FILTER (WHERE reached * 2 >= total) AS bin FROM
  (SELECT *, sum(count) OVER (PARTITION BY call_id ORDER BY duration_bin) AS reached,
     sum(count) OVER (PARTITION BY call_id) AS total FROM bins) GROUP BY call_id),
shared AS (SELECT class, any_value(total) AS calls,
    min(duration_bin) FILTER (WHERE reached * 2 >= total) AS bin FROM
  (SELECT class, duration_bin, sum(count) OVER (PARTITION BY class ORDER BY duration_bin) AS reached,
     sum(count) OVER (PARTITION BY class) AS total
   FROM (SELECT c.class, b.duration_bin, sum(b.count) AS count FROM bins b JOIN calls c ON c.id = b.call_id
     GROUP BY ALL)) GROUP BY class),
usual AS (SELECT c.id, c.name, c.class, c.family, o.calls,
    CAST(pow(2, CASE WHEN o.calls >= {LEAST_LIKE} THEN o.bin WHEN h.calls >= {LEAST_LIKE} THEN h.bin
      ELSE least(h.bin, {ORDINARY_BIN}) END) AS BIGINT) AS median_ns
  FROM calls c JOIN own o ON o.call_id = c.id JOIN shared h ON h.class = c.class),
written AS (SELECT file_id, sum(written_bytes) / greatest(sum(closes), 1) AS bytes FROM file_work GROUP BY 1),
out AS (SELECT s.*, k.name AS call, k.family, k.median_ns, k.calls,
    count(*) OVER (PARTITION BY s.call_id) AS like_it
  FROM slow_calls s JOIN usual k ON k.id = s.call_id LEFT JOIN written w ON w.file_id = s.file_id
  WHERE s.dur >= {settings.least_seconds} * 1e9 AND s.dur >= {settings.least_times} * k.median_ns
    AND s.dur >= 3 * {needed} / {rate}))
SELECT o.call, f.name, count(*) AS count, max(o.dur) AS longest_ns, arg_max(o.ts, o.dur) AS began,
  min(o.dur) AS shortest_ns, any_value(o.call_id) AS call_id, o.file_id, any_value(o.family) AS family,
  CAST(sum(o.dur - o.median_ns) AS BIGINT) AS time_ns, arg_max(o.utid, o.dur) AS utid
FROM out o JOIN files f ON f.file_id = o.file_id
WHERE NOT regexp_matches(f.name, '^/(proc|sys|dev)/') AND o.ts IS NOT NULL
  AND o.like_it <= greatest(3, {settings.most_share} * o.calls)
GROUP BY o.call, f.name, o.file_id ORDER BY time_ns DESC, o.call, f.name"""


def _others(facts: Facts, began: int, ended: int, row: dict[str, Any]) -> int:
    """Returns the number of calls of other tasks that began between BEGAN and ENDED."""
    found = facts.one(
        f"""SELECT count(*) AS n FROM events WHERE ts BETWEEN {began} AND {ended} AND utid <> {row["utid"]}
  AND file_id IS NOT NULL AND side IN (0, 1, 3)"""
    )
    return int(found["n"])


def _machine(facts: Facts, began: int, ended: int) -> dict[str, float]:
    """Returns the machine's load, and the shares of time in which a task waited for I/O and for a
    processor, as far as they were sampled near that time."""
    margin = 2_000_000_000
    (row,) = facts.rows(
        f"""SELECT max(value) FILTER (WHERE source = 'loadavg' AND metric = 'load_1min') AS load,
  max(value) FILTER (WHERE source = 'pressure' AND target = 'io' AND metric = 'some_10s_percent') / 100
    AS io_share,
  max(value) FILTER (WHERE source = 'pressure' AND target = 'cpu' AND metric = 'some_10s_percent') / 100
    AS processor_share
FROM samples WHERE ts BETWEEN {began - margin} AND {ended + margin}"""
    )
    return {name: float(value) for name, value in row.items() if value is not None}


def _ceiling(longest: int, machine: dict[str, float]) -> Severity:
    """Returns the highest severity that the finding can have. If the machine had too few processors, the
    call may have waited for one, so a call shorter than LONG_NS gives only a note."""
    crowded = machine.get("processor_share", 0.0) >= CROWDED_SHARE
    return Severity.NOTE if crowded and longest < LONG_NS else Severity.HIGH


def _query(call: str, began: int, longest: int) -> str:
    return f"""SELECT ts, dur, pid, call, file, bytes FROM calls_seen
WHERE ts <= {began + longest} AND end_ts >= {began} ORDER BY dur DESC"""


_MESSAGES = {
    (True, False): N_(
        "{call} of {name} took {longest_ns}, at {when} (usually {usual_ns}). Such calls: {count}. "
        "During the longest, other threads began {others} calls."
    ),
    (True, True): N_(
        "{call} of {name} took {longest_ns}, at {when} (usually {usual_ns}). Such calls: {count}. "
        "During the longest, other threads began {others} calls; the load was {load}; tasks waited for "
        "I/O in {io_share} of the time, and for a processor in {processor_share}."
    ),
    (False, False): N_(
        "{call} of {name} took {longest_ns}, at {when}; there is no other such call to compare with. "
        "During it, other threads began {others} calls."
    ),
    (False, True): N_(
        "{call} of {name} took {longest_ns}, at {when}; there is no other such call to compare with. "
        "During it, other threads began {others} calls; the load was {load}; tasks waited for I/O in "
        "{io_share} of the time, and for a processor in {processor_share}."
    ),
}
"""Sentences by whether other such calls are known, and by the machine's load."""

RULE = Rule(
    name="slow-call",
    title=N_("Single calls that hung"),
    looks_for=N_(
        "Calls that took more than a hundred times the median of similar calls, and more than a tenth of a"
        " second."
    ),
    why=N_(
        "The program did nothing unusual: a server, a disk, the network or a lock made it wait. This will "
        "happen again unless the cause is found."
    ),
    advice=advise(
        any=N_(
            "Check which other programs ran on this node at that time. If it happens again, ask the "
            "administrator."
        ),
        administrator=N_(
            "Compare this time with the servers' logs and load: failover, snapshot, full queue, backup."
        ),
    ),
    fine_when=N_(
        "The call was slow once, after an idle time (an automounter, a disk that spun up), or it waited "
        "for a lock on purpose."
    ),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS, Need.TIMES),
    views=(
        *("slow_calls", "durations", "file_work", "database_files", "places", "plain_files"),
        # The advice of `open-close-loop` may be shown here, and needs this view.
        "counted_files",
    ),
    yields_to=("slow-close", "sync-heavy"),
    tells_hung_calls=True,
    case="open-close",
)
