"""Estimates the time that a tracer adds because it stops the program at each call. A part of this time is
in the call's duration, the other part around the call."""

from __future__ import annotations

from iodock.program.store import Store

LOGS = {"strace", "truss"}
"""Formats of logs from tracers, by their names in manifests."""
UNTRACED_NS = 1000
"""Without a tracer, a call that needs no device takes 200 to 3,000 ns."""
LEAST_STOP_NS = 2 * UNTRACED_NS
"""If a call or pause is shorter, it contains no stop."""
MOST_STOP_NS = 100 * UNTRACED_NS
"""A stop takes 2 to 60 µs. If the fastest calls of a log take longer than this, the time is their own."""
_LEAST_TRIVIAL = 20
"""If there are fewer calls without work than this, they do not show how much tracing adds."""

# These calls only change or return a number in the kernel, so they take almost no time themselves.
_TRIVIAL = (
    *("rt_sigaction", "rt_sigprocmask", "sigaction", "sigprocmask", "sigaltstack", "arch_prctl", "umask"),
    *("getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getpgrp", "getpgid", "brk"),
    *("set_tid_address", "set_robust_list", "rseq", "prlimit64", "getrlimit", "uname", "setpgid", "getsid"),
)


def how(store: Store) -> str:
    """Returns the name of the method that recorded the run, from its manifest. It is empty if the method
    is unknown."""
    return str((store.manifest.raw.get("captured") or {}).get("how") or "")


def around_ns(store: Store) -> int:
    """Returns the time in ns that tracing adds around each call of a live recording, outside of the call's
    own duration. It is estimated from the shortest quarter of the pauses between a thread's calls, because
    calls of a starting program follow each other at once. The result is 0 for logs, for which it is
    unknown."""
    if how(store) != "ptrace" or not store.manifest.durations:
        return 0
    return int(store.rows(_PAUSES_SQL)[0]["pause"] or 0)


def within_ns(store: Store) -> int:
    """Returns the time in ns that tracing adds to each call's own duration. In live recordings it equals
    the time around the call, because the tracer stops the program before and after each call. For logs it
    is estimated; 0 if it is unknown."""
    if not _is_log(store) or not store.manifest.durations:
        return around_ns(store)
    return shown_ns(store) or 0


def shown_ns(store: Store) -> int | None:
    """Returns the duration in ns of a tracer's stop according to a log. It is the mean duration of calls
    without work. It includes time in which the tracer waited for a processor, and a limited share of
    outliers. If there are too few such calls, the duration of the fastest calls is an upper limit. The
    result is 0 if a call or a pause is too short to contain a stop, and None if the fastest calls take
    longer than any stop."""
    (row,) = store.rows(_TRIVIAL_SQL)
    if int(row["count"]) >= _LEAST_TRIVIAL:
        return int(row["mean"] or 0)
    (row,) = store.rows(_CHEAPEST_SQL)
    # A tracer that stops a program in its calls also stops it between them. A pause shorter than a stop shows
    # that the tracer did not stop the program.
    pause = store.rows(_PAUSES_SQL)[0]["pause"]
    if any(one is not None and one < LEAST_STOP_NS for one in (row["shortest"], pause)):
        return 0
    is_stop = int(row["count"]) >= _LEAST_TRIVIAL and row["cheap"] <= MOST_STOP_NS
    return int(row["cheap"]) if is_stop else None


def between_ns(store: Store) -> int:
    """Returns the time in ns that tracing adds to the pause between two calls: see `around_ns`. For logs
    it is the typical pause, in the run or while its programs started, if a stop can take that long.
    Otherwise it is one stop, as in `within_ns`. If the log has stacks (`strace -k`), it is the typical
    pause of any length, because the tracer reads the stack between calls."""
    if not _is_log(store) or not store.manifest.durations:
        return around_ns(store)
    stop = within_ns(store)
    pause = int(store.rows(_PAUSES_SQL)[0]["middle"] or 0)
    if store.rows_of("stacks"):
        return max(stop, pause)
    return pause if stop and stop <= pause <= MOST_STOP_NS else stop


def is_unknown(store: Store) -> bool:
    """Returns whether a tracer added an unknown amount to the times of a log."""
    return _is_log(store) and (not store.manifest.durations or shown_ns(store) is None)


def _is_log(store: Store) -> bool:
    return not LOGS.isdisjoint(how(store).split("+"))


# Only the first calls are read, because a stop takes equally long throughout the run. In a loop that computes
# between calls, all pauses are longer than the time that tracing adds. The loader runs before that loop, and
# its pauses are short.
_PAUSES_SQL = """WITH seen AS (SELECT utid, ts, coalesce(end_ts, ts + dur) AS ended FROM events
    WHERE dur IS NOT NULL AND ts IS NOT NULL AND side IN (0, 1, 3) LIMIT 100000),
pauses AS (SELECT ts - lag(ended) OVER w AS pause, row_number() OVER w <= 16 AS first FROM seen
  WINDOW w AS (PARTITION BY utid ORDER BY ts))
SELECT least(quantile_disc(pause, 0.25), quantile_disc(pause, 0.25) FILTER (WHERE first)) AS pause,
  least(median(pause), median(pause) FILTER (WHERE first)) AS middle FROM pauses WHERE pause >= 0"""

_TRIVIAL_SQL = f"""SELECT count(*) AS count, least(avg(dur), 3 * median(dur)) AS mean FROM events
WHERE dur IS NOT NULL AND side IN (0, 1, 3)
  AND call_id IN (SELECT id FROM calls WHERE name IN ({", ".join(f"'{name}'" for name in _TRIVIAL)}))"""

# Only the first calls of each kind are read. Otherwise the many calls of a loop would outnumber those of the
# loader.
_CHEAPEST_SQL = """WITH first AS (SELECT dur FROM (FROM events WHERE side IN (0, 1, 3) LIMIT 100000)
  WHERE dur IS NOT NULL QUALIFY row_number() OVER (PARTITION BY call_id ORDER BY ts) <= 20)
SELECT count(*) AS count, min(dur) AS shortest, quantile_disc(dur, 0.1) AS cheap FROM first"""
