"""Computing and large I/O take strict turns, though one could go on during the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from iodock.program.findings import Severity
from iodock.program.relations.io_time import WAITING_CALLS
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar

LONG_NS = 1_000_000
_JUMPS = "3, 4, 5, 6"
"""Patterns of what does not begin where the one before ended."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `io-not-overlapped`."""

    least_bytes: int = 65536
    """Requests up from this size count."""
    least_pause_ns: int = 500000
    """A pause between two requests, from which on the program computes."""
    least_phases: int = 10
    """Turns of I/O and computing."""
    least_phase_bytes: int = 500000
    """Moved in each turn on average; less is not worth a second buffer."""
    long_phase_bytes: int = 4194304
    """Up from this size a turn is a long one."""
    least_short_phases: int = 50
    """Turns, where they are short: a buffer that is full now and then is no rhythm of computing and I/O."""
    hidden_bytes_per_s: float = 1e9
    """Up from this rate something reads ahead or writes behind; what is slower waits for its device, and
    short turns of it need not be as many."""
    hidden_jumping_bytes_per_s: float = 2.5e9
    """The same for requests that do not follow each other, before which nobody can read ahead: from memory
    they come twice as fast."""
    least_waiting_bytes: int = 131072
    """`least_phase_bytes` where requests do not follow each other and each turn waits for its device."""
    least_waiting_pause_ns: int = 50000
    """`least_pause_ns` where requests do not follow each other and each turn waits for its device."""
    least_share: float = 0.15
    """Of the time of the turns that the I/O must take, and the computing, too."""
    least_short_share: float = 0.35
    """The same where turns are shorter than a long one: reading ahead and writing behind hide most of these
    already, and a loop over blocks of 1 MiB is what other rules advise."""
    least_loop_wait: float = 0.6
    """Of the time of the I/O, where a program's threads do it for an event loop: so much of it the loop must
    wait."""
    least_regular: float = 0.5
    """Share of the pauses' time that must be in pauses of half to twice their median: regularity."""
    least_computed: float = 0.2
    """CPU time of the run's own, beside what shorter pauses take, of the pauses: with less of it they are no
    computing, but a processor that others had."""
    most_overlapped: float = 0.25
    """Where another thread or process computes: what it computed beyond the pauses, of the I/O's time, up to
    which they take turns. More was computed during the I/O."""
    most_short_pause_ns: int = 100000
    """Mean of the shorter pauses, where there are more of them: who computes so long after each request has
    no other rhythm, and longer pauses are a processor that others had."""
    least_wandering: float = 0.7
    """Of what a process computes, that the threads which do its I/O in turn must compute, for them to be one
    task that a runtime lets wander from thread to thread."""
    least_wanderer: float = 0.1
    """Of the process's large requests that each of these threads must do: who did one of them, and computes
    while others read, is no such thread."""
    least_computed_apart: float = 0.6
    """`least_computed` for such a task, and where another task computes: on a busy machine their CPU times
    don't show what they did meanwhile."""
    most_requests: int = 200000
    """More large requests than this are not looked at."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for the task that moves most of the large requests' bytes."""
    share = facts.io_ns / facts.wall_ns if facts.io_ns and facts.wall_ns else 0.0
    if not settings.least_share / 2 <= share <= 1 - settings.least_share / 2:
        return
    row = _turns(facts, settings)
    if not row:
        return
    busy, pause = int(row["busy_ns"]), int(row["pause_ns"])
    share = busy / (busy + pause)
    regular = int(row["regular_ns"] or 0) >= settings.least_regular * pause
    # One sync at the end of many writes is no turn of theirs.
    of_large = int(row["longest_ns"]) <= busy / 2 <= int(row["large_ns"])
    if not of_large or not _worth_a_buffer(row, settings):
        return
    least = _least_share(row, settings)
    if not regular or not least <= share <= 1 - settings.least_share or not _computes(row, settings):
        return
    if _is_overlapped(row, settings):
        return
    values: dict[str, Scalar] = {
        "phases": int(row["phases"]),
        "io_ns": busy // int(row["phases"]),
        "compute_ns": pause // int(row["pauses"]),
        "mean_bytes": int(row["bytes"]) / int(row["requests"]),
        "io_share": share,
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=int(row["requests"]),
        time_ns=busy,
        evidence={"count": int(row["requests"]), "time_ns": busy, "pause_ns": pause, **values},
        query=_query(settings),
        confidence=0.4,
        wall_seconds=min(busy, pause) / 1e9,
        gain=(0.3, 0.9),
        at_most=Severity.MEDIUM,
    )


def candidates(facts: Facts) -> Iterator[Candidate]:
    """What this rule finds with its own thresholds. Needs the derived table `programs`."""
    return iter(find(facts, facts.settings.of_rule("io-not-overlapped", Settings)))


def _turns(facts: Facts, settings: Settings) -> dict[str, Any]:
    """The turns, of which there are enough; an empty dict where there are none. Short pauses are told from
    none where the device is waited for in each of them, as nobody can read ahead."""
    row = _told(facts, settings, settings.least_pause_ns)
    if row and int(row["phases"]) < max(settings.least_phases, 0.1 * int(row["requests"])) and _jumps(row):
        short = _told(facts, settings, settings.least_waiting_pause_ns)
        row = short if short and _waits(short, settings) else row
    return row if row and int(row["phases"]) >= settings.least_phases else {}


def _told(facts: Facts, settings: Settings, least_pause_ns: int) -> dict[str, Any]:
    """What `_sql` tells; an empty dict where no task has most of the bytes, or there are too many requests to
    be looked at."""
    row = facts.one(_sql(settings, least_pause_ns))
    return row if row and 0 < int(row["seen"]) < settings.most_requests else {}


def _worth_a_buffer(row: Mapping[str, Any], settings: Settings) -> bool:
    phases = int(row["phases"])
    many = phases >= settings.least_short_phases or _waits(row, settings)
    least = settings.least_phase_bytes if many else settings.long_phase_bytes
    if _jumps(row) and _waits(row, settings):
        least = settings.least_waiting_bytes
    return int(row["bytes"]) >= least * phases


def _computes(row: Mapping[str, Any], settings: Settings) -> bool:
    """Whether what lies between the turns is computing, and not a busy machine."""
    within = int(row["requests"]) - int(row["phases"])
    if within > int(row["phases"]) and int(row["short_ns"] or 0) > settings.most_short_pause_ns * within:
        return False
    if row["computed_ns"] is None:
        return True
    computed = int(row["computed_ns"]) - int(row["short_ns"] or 0)
    is_apart = row["wandering_ns"] is not None or _is_anothers(row, settings)
    least = settings.least_computed_apart if is_apart else settings.least_computed
    return computed >= least * int(row["pause_ns"])


def _is_anothers(row: Mapping[str, Any], settings: Settings) -> bool:
    """Whether the task that does the I/O computes hardly anything itself."""
    own = row["own_ns"]
    return own is not None and int(own) < settings.least_computed * int(row["pause_ns"])


def _is_overlapped(row: Mapping[str, Any], settings: Settings) -> bool:
    """Whether the task that does the I/O leaves the computing to another one, which goes on with it during
    the I/O: in the pauses alone there was no time for so much."""
    pause, computed = int(row["pause_ns"]), row["wandering_ns"]
    if _is_anothers(row, settings):
        computed = row["beside_ns"]
    if computed is None:
        return False
    beyond = int(computed) - pause - int(row["short_ns"] or 0)
    return beyond > settings.most_overlapped * int(row["busy_ns"])


def _waits(row: Mapping[str, Any], settings: Settings) -> bool:
    rate = settings.hidden_jumping_bytes_per_s if _jumps(row) else settings.hidden_bytes_per_s
    return int(row["bytes"]) < rate * int(row["busy_ns"]) / 1e9


def _jumps(row: Mapping[str, Any]) -> bool:
    return 2 * int(row["jumping"]) > int(row["requests"])


def _least_share(row: Mapping[str, Any], settings: Settings) -> float:
    is_long = int(row["bytes"]) >= settings.long_phase_bytes * int(row["phases"])
    return settings.least_share if is_long else settings.least_short_share


# Only large requests and long calls are read, and only of the task that has most of the bytes. In a long
# call, whatever it is about, nothing is computed. A sync is part of the writes before it.
def _sql(settings: Settings, least_pause_ns: int) -> str:
    return f"""WITH large AS (SELECT e.utid, e.ts, e.ts + e.dur AS end_ts,
    CASE WHEN e.bytes >= {settings.least_bytes} THEN e.bytes END AS bytes,
    e.call_id IN (SELECT id FROM calls WHERE class = 'sync') AS is_sync,
    e.direction = 1 AND e.pattern IN ({_JUMPS}) AS jumps FROM events e
    LEFT JOIN files f ON f.file_id = e.file_id JOIN processes p ON p.utid = e.utid
    LEFT JOIN programs g ON g.upid = p.upid
  WHERE (e.bytes >= {settings.least_bytes} AND e.direction > 0 OR e.dur >= {LONG_NS})
    AND e.ts IS NOT NULL AND e.dur IS NOT NULL AND e.side IN (0, 1, 3)
    AND g.is_tool IS NOT TRUE AND (f.file_id IN (FROM plain_files) OR e.dur >= {LONG_NS})
  LIMIT {settings.most_requests}),
main AS (SELECT utid FROM large GROUP BY utid HAVING sum(bytes) >= 0.9 * (SELECT sum(bytes) FROM large)),
{_loops_sql(settings)},
turns AS (SELECT *, max(end_ts) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM large WHERE utid IN (SELECT utid FROM main) OR utid IN (SELECT utid FROM helpers)
    OR utid IN (SELECT utid FROM wanders) AND (bytes > 0 OR is_sync)),
pauses AS (SELECT *, ts - before AS pause, coalesce(ts - before >= {least_pause_ns}, true) AS begins
  FROM turns),
{_BESIDE}
SELECT count(*) AS seen, count(*) FILTER (WHERE begins) AS phases,
  count(*) FILTER (WHERE begins AND before IS NOT NULL) AS pauses,
  CAST(coalesce(sum(pause) FILTER (WHERE begins), 0) AS BIGINT) AS pause_ns,
  CAST(sum(pause) FILTER (WHERE pause > 0 AND NOT begins) AS BIGINT) AS short_ns,
  (SELECT CAST(sum(cpu_user_ns) AS BIGINT) FROM processes) AS computed_ns,
  (SELECT CAST(sum(cpu_user_ns) AS BIGINT) FROM processes WHERE utid IN (FROM main)) AS own_ns,
  (SELECT CASE WHEN count(*) > 0 THEN CAST(greatest(0, sum(cpu_user_ns)
      - greatest(0, min(s.first_ts) - min(start_ts)) - greatest(0, max(end_ts) - max(s.last_ts))) AS BIGINT)
    END FROM processes, spans s WHERE upid IN (SELECT upid FROM wanders)) AS wandering_ns,
  (SELECT max(ns) FROM beside) AS beside_ns,
  CAST(max(end_ts) - min(ts) - coalesce(sum(pause) FILTER (WHERE begins), 0) AS BIGINT) AS busy_ns,
  CAST(sum(pause) FILTER (WHERE begins AND pause BETWEEN usual / 2 AND usual * 2) AS BIGINT) AS regular_ns,
  max(end_ts - ts) AS longest_ns, count(bytes) AS requests,
  CAST(sum(end_ts - ts) FILTER (WHERE bytes > 0 OR is_sync) AS BIGINT) AS large_ns,
  CAST(sum(bytes) AS BIGINT) AS bytes, count(*) FILTER (WHERE jumps AND bytes > 0) AS jumping
FROM pauses, (SELECT median(pause) FILTER (WHERE begins) AS usual FROM pauses)"""


# What other tasks computed between the first large request and the end of the last one, at least: before and
# after, they may have computed all the time.
_BESIDE = """spans AS (SELECT min(ts) AS first_ts, max(end_ts) AS last_ts FROM turns),
beside AS (SELECT p.cpu_user_ns + coalesce(p.cpu_system_ns, 0) - greatest(0, s.first_ts - p.start_ts)
    - greatest(0, p.end_ts - s.last_ts) AS ns
  FROM processes p, spans s WHERE p.utid NOT IN (FROM main))"""


# Where no thread has most of the bytes: an event loop's helpers, each of which takes the next request.
# Whether the loop computes meanwhile shows in its own waiting: it is the thread that computes most.
def _loops_sql(settings: Settings) -> str:
    return f"""owners AS (SELECT p.upid FROM large l JOIN processes p ON p.utid = l.utid
  WHERE NOT EXISTS (FROM main) GROUP BY p.upid
  HAVING sum(l.bytes) >= 0.9 * (SELECT sum(bytes) FROM large)),
loops AS (SELECT p.upid, first(p.utid ORDER BY coalesce(p.cpu_user_ns, 0) DESC, p.utid) AS utid
  FROM processes p
  WHERE p.upid IN (FROM owners) GROUP BY p.upid),
handed AS (SELECT l.*, o.utid AS loop FROM large l JOIN processes p ON p.utid = l.utid
    JOIN loops o ON o.upid = p.upid WHERE l.utid <> o.utid AND l.bytes > 0),
idle AS (SELECT e.utid, e.ts, e.ts + e.dur AS end_ts FROM events e JOIN loops o ON o.utid = e.utid
  WHERE e.call_id IN (SELECT id FROM calls WHERE family IN ({WAITING_CALLS})) AND e.dur > 0),
waits AS (SELECT sum(least(i.end_ts, h.end_ts) - greatest(i.ts, h.ts)) AS ns FROM handed h
  JOIN idle i ON i.ts < h.end_ts AND i.end_ts > h.ts),
helpers AS (SELECT DISTINCT utid FROM handed
  WHERE (SELECT ns FROM waits) >= {settings.least_loop_wait} * (SELECT sum(end_ts - ts) FROM handed)),
{_wanders_sql(settings)}"""


# Or one task does it that a runtime lets wander from thread to thread, as Go's does: its requests never meet,
# and the threads that do them compute, too. What goes on meanwhile shows in what the process computes in all.
def _wanders_sql(settings: Settings) -> str:
    return f"""taken AS (SELECT p.upid, l.utid, l.ts,
    max(l.end_ts) OVER (PARTITION BY p.upid ORDER BY l.ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
      AS before
  FROM large l JOIN processes p ON p.utid = l.utid WHERE l.bytes > 0 AND p.upid IN (SELECT upid FROM owners)),
alone AS (SELECT upid FROM taken GROUP BY upid HAVING count(DISTINCT utid) > 1
  AND count(*) FILTER (WHERE ts < before) = 0),
takers AS (SELECT utid FROM taken GROUP BY upid, utid
  QUALIFY count(*) >= {settings.least_wanderer} * sum(count(*)) OVER (PARTITION BY upid)),
computed AS (SELECT p.upid, sum(p.cpu_user_ns) AS ns, sum(p.cpu_user_ns) FILTER (WHERE p.utid IN
    (FROM takers)) AS taken_ns FROM processes p GROUP BY p.upid),
wanders AS (SELECT DISTINCT t.upid, t.utid FROM taken t JOIN computed c ON c.upid = t.upid
  WHERE t.upid IN (SELECT upid FROM alone) AND NOT EXISTS (FROM helpers) AND c.taken_ns > 0
    AND c.taken_ns >= {settings.least_wandering} * c.ns)"""


def _query(settings: Settings) -> str:
    return f"""SELECT ts, dur, direction, bytes, file FROM call_ends WHERE bytes >= {settings.least_bytes}
ORDER BY ts"""


_MESSAGE = N_(
    "{phases} times I/O ({io_ns} on average, in requests of {mean_bytes}) and computing ({compute_ns}) "
    "took turns; {io_share} of that time was I/O."
)

RULE = Rule(
    name="io-not-overlapped",
    title=N_("Computing waits for I/O, and I/O for computing"),
    looks_for=N_(
        "Regular turns of computing and of large requests, of which both take a good part of the time."
    ),
    why=N_("With two buffers, the next piece could be read, or the last one written, during the computing."),
    advice=advise(
        any=N_("Use two buffers in turn: read or write the one in a thread while the other is computed on."),
        c=N_("Use a thread, POSIX aio_write or io_uring; posix_fadvise(WILLNEED) starts reading ahead."),
        cpp=N_("Start std::async for the next block, and compute on the current one."),
        fortran=N_("Open with ASYNCHRONOUS='YES', and WAIT before the buffer is used again."),
        python=N_("Let concurrent.futures.ThreadPoolExecutor(1) read the next block: I/O releases the lock."),
        mpi_io=N_("Use MPI_File_iwrite_at (or iwrite_all) and MPI_Wait before the buffer is used again."),
        hdf5=N_("Use the asynchronous VOL connector, or write in a thread of its own."),
    ),
    fine_when=N_("The run is short, memory is scarce, or the next piece depends on the result of this one."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS, Need.TIMES),
    views=("programs", "plain_files"),
    yields_to=(
        *("serial-phases", "redundant-reads", "sync-heavy", "slow-call", "synchronous-flags"),
        *("read-after-write", "redundant-writes", "random-access", "backward-access"),
        *("copy-through-user-space", "whole-file-for-a-few-bytes"),
    ),
    # Its cost is all I/O that could go on meanwhile, needed or not.
    yields_at=0.2,
    is_of_waiting=True,
    # There is less to hide once other faults are gone.
    comes_last=True,
)
