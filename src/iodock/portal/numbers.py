"""Numbers and times as pages show them. Files for download have them plain."""

from __future__ import annotations

import time

SECOND = 1_000_000_000
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")


def scaled(value: float, unit: str) -> str:
    """`1.23 GB`, `960`: three digits and a decimal prefix."""
    size, power = abs(value), 0
    while size >= 999.5 and power < len(_DECIMAL) - 1:
        size, power = size / 1000, power + 1
    # A count is a whole number until it is scaled.
    digits = 0 if size >= 99.95 or (power == 0 and size == int(size)) else 1 if size >= 9.995 else 2
    sign = "-" if value < 0 else ""
    return f"{sign}{size:.{digits}f} {_DECIMAL[power]}{unit}".replace(" /", "/").rstrip()


def amount(value: object, kind: str) -> str:
    """A number of a kind (see tables.Column) with its unit; nothing for nothing."""
    if not isinstance(value, (int, float)):
        return ""
    if value == 0:
        return "0"
    if kind == "seconds":
        return duration(float(value))
    if kind == "short_seconds":
        return short_time(float(value))
    if kind == "share":
        return f"{value * 100:.{1 if value < 0.0995 else 0}f} %"
    if kind == "integer":
        return f"{value:,.0f}"
    units = {"bytes": "B", "bytes_rate": "B/s", "rate": "/s"}
    return scaled(float(value), units.get(kind, ""))


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    if whole < 172_800:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def short_time(seconds: float) -> str:
    """`55 µs`, `2.50 ms`, `240 s`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return scaled(seconds / size, unit) if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1e9:.0f} ns"


def moment(ns: int) -> str:
    """Date and time of the collector's zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ns / SECOND))


def tick(ns: int, length: int) -> str:
    """A time on an axis that is so long, ns."""
    form = "%H:%M" if length <= 172_800 * SECOND else "%m-%d"
    return time.strftime(form, time.localtime(ns / SECOND))


def zone(ns: int) -> str:
    """The collector's time zone."""
    return time.strftime("%Z", time.localtime(ns / SECOND))


def nice_top(value: float) -> float:
    """The end of an axis: 1, 2, 2.5 or 5 times a power of ten, not less than VALUE."""
    if value <= 0:
        return 1.0
    power: float = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= value)
