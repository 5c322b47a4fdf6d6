"""`real`, `user` and `sys` under each other: bash, ksh and POSIX `time`, `time -p`, and formats with these
labels.

Forms of a time: `0m1.002s`, with a comma where the locale has one, `1.00`, `26:27.30` (GNU time's %E). macOS
and BSD write the three in one line, numbers first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from iodock.ratio.clocks import clock_seconds, unit_seconds
from iodock.ratio.reader import Reader, Reading, Sample
from iodock.ratio.record import Record

_TIME = r"(\d[\dhms:.,]*)"
_LABEL = re.compile(rf"\s*(real|user|sys)\s*[:=]?\s+{_TIME}\s*", re.IGNORECASE)
_SHORT = r"(\d{1,12}[.,]\d{1,6})"
_ONE_LINE = re.compile(rf"\s*{_SHORT} real\s+{_SHORT} user\s+{_SHORT} sys\s*", re.ASCII)
_LABELS = ("real", "user", "sys")


def sniff(sample: Sample) -> float:
    """Sure of three labelled lines next to each other."""
    return 0.9 if next(_found(enumerate(sample.lines, 1)), None) else 0.0


def read(reading: Reading) -> Iterator[Record]:
    """One record per three lines."""
    for line, times in _found(reading.source.lines()):
        yield Record(
            name=f"{reading.source.name}:{line}",
            real=times["real"],
            user=times["user"],
            system=times["sys"],
            at=reading.at(line),
        )


def _found(lines: Iterator[tuple[int, str]] | enumerate[str]) -> Iterator[tuple[int, dict[str, float]]]:
    """Line number of the first label, and the three times. Any other line in between starts afresh."""
    times: dict[str, float] = {}
    first = 0
    for number, line in lines:
        if not line.strip():
            continue
        if one := _ONE_LINE.fullmatch(line):
            numbers = (clock_seconds(value) or 0.0 for value in one.groups())
            yield number, dict(zip(_LABELS, numbers, strict=True))
        label = _labelled(line)
        if label is None or label[0] in times:
            times = {}
        if label is not None:
            first = first if times else number
            times[label[0]] = label[1]
        if len(times) == len(_LABELS):
            yield first, times
            times = {}


def _labelled(line: str) -> tuple[str, float] | None:
    found = _LABEL.fullmatch(line)
    seconds = unit_seconds(found[2]) if found else None
    return (found[1].lower(), seconds) if found and seconds is not None else None


READER = Reader("shell-time", "time of bash, ksh and POSIX, time -p", sniff, read)
