"""Parses times as programs write them, and returns seconds."""

from __future__ import annotations

import re
from datetime import datetime

# The number of digits is limited, because longer numbers would not fit a float. No time has as many.
_PARTS = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,9}):)?(?:(\d{1,9}):)?(\d{1,15})([.,]\d{1,15})?", re.ASCII)
_clock = _PARTS.fullmatch
_UNITS = re.compile(r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(\d{1,15}(?:[.,]\d{1,15})?)s?", re.ASCII)
_MOST_DIGITS = 18


def whole_number(text: str) -> int | None:
    """Parses ASCII digits such as `34` if the value fits an int64. Returns None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def clock_seconds(text: str) -> float | None:
    """Parses days, hours, minutes and seconds: `1-02:03:04.5`, `26:27.30`, `1:02:03`, `12.5`. None if it is
    not a time."""
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
    """Parses times as shells write them: `1h2m3.456s`, `0m1,002s`, `1.00`. None if it is not a time."""
    found = _UNITS.fullmatch(text.strip())
    if not found:
        return clock_seconds(text)
    hours, minutes, seconds = found.groups()
    return int(hours or 0) * 3_600 + int(minutes or 0) * 60 + float(seconds.replace(",", "."))


def date_seconds(text: str) -> float | None:
    """Parses `2015/01/21 09:30:57` or `2015-01-21T09:30:57` as seconds since 1970. The time zone is taken as
    UTC, because only differences are used. None if it is not a date."""
    try:
        return datetime.fromisoformat(text.strip().replace("/", "-") + "+00:00").timestamp()
    except ValueError:
        return None
