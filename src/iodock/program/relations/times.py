"""Parses the values of `--since` and `--until`: seconds from the start of the run, or a clock time. A clock
time is in UTC, or, for a log with times of the day, in the time of the log."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from iodock.program.store import Manifest
from iodock.shared.errors import RequestError

NS = 1_000_000_000
DAY_NS = 86_400 * NS
_CLOCK = re.compile(r"(?:(\d{4}-\d\d-\d\d)[T ])?(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z)?")


def instant_ns(text: str, manifest: Manifest) -> int:
    """Returns the moment that TEXT describes, in ns. Raises RequestError if TEXT is no time, or if the store
    has no times or no clock."""
    start = manifest.first_ts
    if start is None:
        raise RequestError(f"the times of the calls are unknown: {text}", "re-run strace with -ttt")
    try:
        return start + round(float(text) * NS)
    except (ValueError, OverflowError):
        pass
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        raise RequestError(
            f"not a time: {text}", "write seconds from the start (12.5) or a clock time (12:08:20)"
        )
    return _clock_ns(match, start, manifest.clock, text)


def _clock_ns(match: re.Match[str], start: int, clock: str, text: str) -> int:
    date, hour, minute, second, fraction, _ = match.groups()
    # A clock shows second 60 during a leap second.
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 60:
        raise RequestError(f"not a time of the day: {text}", "write hours:minutes:seconds (12:08:20)")
    of_day = (int(hour) * 3600 + int(minute) * 60 + int(second or 0)) * NS + int(
        (fraction or "0").ljust(9, "0")
    )
    if clock == "relative":
        raise RequestError(f"this source has no clock, only times from the start: {text}", "write seconds")
    if clock == "day":
        if date is not None:
            raise RequestError(
                f"this source has times of the day without a date: {text}", "leave the date out"
            )
        # The run may continue after midnight. So a time of day more than 12 hours before its start means the
        # next day.
        return of_day + DAY_NS if of_day < start - DAY_NS // 2 else of_day
    day = date or datetime.fromtimestamp(start // NS, UTC).strftime("%Y-%m-%d")
    try:
        midnight = datetime.fromisoformat(day).replace(tzinfo=UTC)
    except ValueError:
        raise RequestError(f"not a date: {day}") from None
    return int(midnight.timestamp()) * NS + of_day
