"""Parses the times that other programs print, and returns seconds."""

from __future__ import annotations

import re
from datetime import datetime

# The number of digits is limited, because a float can't represent longer numbers. No program prints a time
# with that many digits.
_PARTS = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,9}):)?(?:(\d{1,9}):)?(\d{1,15})([.,]\d{1,15})?", re.ASCII)
_clock = _PARTS.fullmatch
_UNITS = re.compile(r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(\d{1,15}(?:[.,]\d{1,15})?)s?", re.ASCII)
_MOST_DIGITS = 18


def whole_number(text: str) -> int | None:
    """Parses ASCII digits such as `34`. Returns None if the text contains anything else or has more than 18
    digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def clock_seconds(text: str) -> float | None:
    """Parses days, hours, minutes and seconds, such as `1-02:03:04.5`, `26:27.30`, `1:02:03` or `12.5`.
    Returns None if the text is not such a time."""
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
    """Parses times as shells print them, such as `1h2m3.456s`, `0m1,002s` or `1.00`. Returns seconds, or None
    if the text is not such a time."""
    found = _UNITS.fullmatch(text.strip())
    if not found:
        return clock_seconds(text)
    hours, minutes, seconds = found.groups()
    return int(hours or 0) * 3_600 + int(minutes or 0) * 60 + float(seconds.replace(",", "."))


def date_seconds(text: str) -> float | None:
    """Parses dates such as `2015/01/21 09:30:57` or `2015-01-21T09:30:57`, and returns seconds since 1970.
    Assumes UTC, because callers use only differences. Returns None if the text is not a date."""
    try:
        return datetime.fromisoformat(text.strip().replace("/", "-") + "+00:00").timestamp()
    except ValueError:
        return None
