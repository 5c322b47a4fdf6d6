"""Formats amounts for `iodock monitor top` and the portal, in one way for each quantity. Bytes are in KiB,
MiB and so on. Files for download do not use these formats and have plain numbers."""

from __future__ import annotations

from iodock.shared.units import BYTES, BYTES_PER_SECOND

_NEXT = 0.9995
"""Share of the next unit from which a value is shown in that unit: with three digits it would be rounded to
1."""
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")


def scaled(value: float, unit: str) -> str:
    """Formats a value with three digits and a decimal prefix: `1.23 M/s`, `960`."""
    size, power = abs(value), 0
    while size >= 1000 * _NEXT and power < len(_DECIMAL) - 1:
        size, power = size / 1000, power + 1
    # An integer without a prefix gets no decimals.
    digits = 0 if size >= 99.95 or (power == 0 and size == int(size)) else 1 if size >= 9.995 else 2
    sign = "-" if value < 0 else ""
    return f"{sign}{size:.{digits}f} {_DECIMAL[power]}{unit}".replace(" /", "/").rstrip()


def amount(value: object, kind: str) -> str:
    """Formats a number with its unit. An unknown value (None) gives an empty text. KIND is integer, number,
    bytes, bytes_rate, rate, share (from 0 to 1), seconds or short_seconds."""
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
    if kind in ("bytes", "bytes_rate"):
        # A number of bytes is an integer, but a rate may be half a byte per second.
        return BYTES.text(round(value)) if kind == "bytes" else BYTES_PER_SECOND.text(float(value))
    return scaled(float(value), "/s" if kind == "rate" else "")


def duration(seconds: float) -> str:
    """Formats a duration: `45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    if whole < 172_800:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def short_time(seconds: float) -> str:
    """Formats a short time: `55 µs`, `2.50 ms`, `240 s`."""
    if seconds >= _NEXT * 1000:
        return f"{seconds:,.0f} s"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= _NEXT * size:
            return scaled(seconds / size, unit)
    return f"{seconds * 1e9:.0f} ns"
