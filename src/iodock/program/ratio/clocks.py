"""Parses times as programs write them, in seconds."""

from __future__ import annotations

import re
from datetime import datetime

# No time has more digits than this; longer numbers would not fit a float.
_PARTS = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,9}):)?(?:(\d{1,9}):)?(\d{1,15})([.,]\d{1,15})?", re.ASCII)
_clock = _PARTS.fullmatch
_UNITS = re.compile(r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(\d{1,15}(?:[.,]\d{1,15})?)s?", re.ASCII)
_MOST_DIGITS = 18


def whole_number(text: str) -> int | None:
    """Parses ASCII digits such as `34` whose value fits an int64. None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def clock_seconds(text: str) -> float | None:
    """`1-02:03:04.5`, `26:27.30`, `1:02:03`, `12.5`: days, hours, minutes, seconds. None if it is not a
    time."""
    found = _clock(text.strip()) if text else None
    if found is None:
        return None
    days, first, second, seconds, fraction = found.groups()
    hours, minutes = (first, second) if second is not None else (None, first)
    if days and minutes is None:
        return None
    whole = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60 + int(seconds)
    return whole + float("0" + fraction.replace(",", ".")) if fraction else float(whole)


def unit_seconds(text: str) -> float | None:
    """`1h2m3.456s`, `0m1,002s`, `1.00`: as shells write them. None if it is not a time."""
    found = _UNITS.fullmatch(text.strip())
    if not found:
        return clock_seconds(text)
    hours, minutes, seconds = found.groups()
    return int(hours or 0) * 3_600 + int(minutes or 0) * 60 + float(seconds.replace(",", "."))


def date_seconds(text: str) -> float | None:
    """`2015/01/21 09:30:57` or `2015-01-21T09:30:57`, seconds since 1970 as if it were UTC: only differences
    are used. None if it is not a date."""
    try:
        return datetime.fromisoformat(text.strip().replace("/", "-") + "+00:00").timestamp()
    except ValueError:
        return None
