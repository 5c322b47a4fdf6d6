"""Parses times and durations in the values of options."""

from __future__ import annotations

import re
import time
from datetime import datetime

import click

from iodock.shared.errors import RequestError

_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def length(context: click.Context, parameter: click.Parameter, value: str) -> float:
    """Parses a duration, such as `60`, `500ms`, `5m`, `1h` or `1d`. Returns seconds. Raises RequestError."""
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *(ms|s|m|min|h|d|)", value.strip())
    seconds = float(parts[1]) * _SECONDS[parts[2]] if parts else 0.0
    if not 0 < seconds <= 366 * 86400:
        raise RequestError(f"--{parameter.name} {value} is not a time", "write 60, 500ms, 5m, 1h or 1d")
    return seconds


def moment(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Parses a date, a date with a time, or a duration such as `7d`, which means this long ago. Returns ns
    since the epoch. Raises RequestError."""
    if value is None:
        return None
    try:
        return int(datetime.fromisoformat(value).timestamp() * 1e9)
    except ValueError:
        pass
    try:
        return time.time_ns() - int(length(context, parameter, value) * 1e9)
    except RequestError as error:
        message = f"--{parameter.name} {value} is neither a date nor a time ago"
        raise RequestError(message, "write 2026-04-01, '2026-04-01 12:00' or 7d") from error
