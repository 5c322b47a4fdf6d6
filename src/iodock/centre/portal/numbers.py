"""Formats times and axes for pages. `views/amounts.py` formats amounts."""

from __future__ import annotations

import time

from iodock.centre.views.amounts import amount, duration, short_time
from iodock.shared.units import BYTES, BYTES_PER_SECOND

__all__ = ["amount", "decades_top", "duration", "moment", "nice_top", "short_time", "tick", "zone"]
SECOND = 1_000_000_000


def moment(ns: int) -> str:
    """Formats a time (ns since the epoch) as date and time in the collector's time zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ns / SECOND))


def tick(ns: int, length: int) -> str:
    """Formats a time (ns since the epoch) for an axis whose length is LENGTH ns."""
    form = "%H:%M" if length <= 172_800 * SECOND else "%m-%d"
    if length < 600 * SECOND:
        # On an axis of less than ten minutes, several labels would be equal without seconds.
        form = "%H:%M:%S"
    return time.strftime(form, time.localtime(ns / SECOND))


def zone(ns: int) -> str:
    """Returns the name of the collector's time zone at a time (ns since the epoch)."""
    return time.strftime("%Z", time.localtime(ns / SECOND))


def nice_top(value: float, kind: str = "") -> float:
    """Returns the end of an axis for values up to VALUE. It is 1, 2, 2.5 or 5 times a power of ten, or for
    bytes a round number of a binary unit."""
    if value <= 0:
        return 1.0
    if kind in ("bytes", "bytes_rate"):
        return (BYTES if kind == "bytes" else BYTES_PER_SECOND).ticks(value, 2)[-1]
    power: float = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= value)


def decades_top(value: float) -> float:
    """Returns the end of a logarithmic axis that begins at 1, which is a power of ten. If the axis has more
    than four decades, their number is even, because then only every second decade has a label and the end
    needs one."""
    decades = 1
    while 10.0**decades < value:
        decades += 1 if decades < 4 else 2
    return 10.0**decades
