"""Formats points in time."""

from __future__ import annotations

from datetime import UTC, datetime

from iodock.shared.answer import Clock

NS = 1_000_000_000


def clock_text(ts: int, clock: Clock) -> str:
    """Formats a time in ns. The clock decides the form: `2026-11-21 05:18:08.123456` (UTC) for `epoch`,
    `12:08:20.123456` for `day`, and otherwise `12.345678 s` since the start of the run."""
    seconds, fraction = divmod(ts, NS)
    micro = f"{fraction // 1000:06d}"
    if clock == "epoch":
        try:
            return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{micro}"
        except (OverflowError, ValueError, OSError):
            return f"{seconds}.{micro}"
    if clock == "day":
        days, of_day = divmod(seconds, 86_400)
        later = f" (+{days} d)" if days else ""
        return f"{of_day // 3600:02d}:{of_day // 60 % 60:02d}:{of_day % 60:02d}.{micro}{later}"
    return f"{seconds}.{micro} s"
