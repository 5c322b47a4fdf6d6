"""Makes the time axis. Times count from the run's start, and the title of the axis has the clock time at
its 0."""

from __future__ import annotations

import datetime
from typing import Any

from iodock.shared.answer import Answer
from iodock.shared.units import NANOSECONDS


def run_start(answer: Answer, first: float) -> float:
    """Returns the clock time of the axis's 0, in ns. It is the run's start, or FIRST if the start is
    unknown or later."""
    start = answer.first_ts
    return float(start) if start is not None and start <= first else first


def time_axis(answer: Answer, origin: float, end: float, later: float = 0.0) -> Any:
    """Makes a horizontal axis from 0 to `end` ns for the field `at`. Its 0 is at the clock's `origin`,
    which is `later` ns after the start of the run."""
    import altair

    zero = f"{NANOSECONDS.text(later)} into the run" if later else "the start"
    began = clock_text(answer, origin)
    ticks = [tick for tick in NANOSECONDS.ticks(end, 8) if tick <= end * (1 + 1e-9)]
    return altair.X(
        field="at",
        type="quantitative",
        title=f"time since {zero}" + (f" ({began})" if began else ""),
        scale=altair.Scale(domain=[0, end], nice=False),
        axis=altair.Axis(
            values=ticks, labelExpr=NANOSECONDS.label_expression(end), labelOverlap=True, grid=False
        ),
    )


def clock_text(answer: Answer, origin: float) -> str:
    """Formats a clock time as `12:08:20.250`, or as `2024-05-01 12:08:20.250 UTC` if the date is known. It
    is empty if the source has no clock time."""
    if answer.clock not in ("day", "epoch"):
        return ""
    seconds, rest = divmod(int(origin), 1_000_000_000)
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (OverflowError, OSError, ValueError):
        return ""  # A damaged log may contain any number as a time.
    text = f"{moment:%H:%M:%S}.{rest // 1_000_000:03d}"
    return text if answer.clock == "day" else f"{moment:%Y-%m-%d} {text} UTC"
