"""Reads times with the labels `real`, `user` and `sys`, in three lines or in one. Such times are written by
bash, ksh and POSIX `time`, `time -p`, macOS, BSD, and by GNU time with such a format (in its manual: `%E
real,%U user,%S sys`).

A time has the form `0m1.002s`, `1.00`, or `26:27.30` (GNU time's %E). The fraction has a comma if the locale
does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from iodock.program.ratio.clocks import unit_seconds
from iodock.program.ratio.reader import Reader, Reading, Sample
from iodock.program.ratio.record import Record

_TIME = r"(\d[\dhms:.,]*)"
_NAME = r"(real|elapsed|user|sys|system)"
_BETWEEN = r"[\s,;]+"
_LABEL_FIRST = rf"{_NAME}(?:\s*[:=]\s*|\s+){_TIME}"
_LABEL_LAST = rf"{_TIME}\s*{_NAME}"
_LABEL = re.compile(rf"\s*{_LABEL_FIRST}\s*", re.IGNORECASE)
_DAMAGED = re.compile(rf"\s*{_NAME}(?:\s*[:=]\s*|\s+)\S*\d\S*\s*", re.IGNORECASE)


def _three(one: str) -> re.Pattern[str]:
    return re.compile(rf"\s*{one}{_BETWEEN}{one}{_BETWEEN}{one}\s*", re.IGNORECASE | re.ASCII)


_LABELS_FIRST, _LABELS_LAST = _three(_LABEL_FIRST), _three(_LABEL_LAST)
_SHORT = {"elapsed": "real", "system": "sys"}
_LABELS = {"real", "user", "sys"}


def sniff(sample: Sample) -> float:
    """Returns 0.9 if the file contains times with the three labels, and otherwise 0."""
    return 0.9 if next(_found(enumerate(sample.lines, 1)), None) else 0.0


def read(reading: Reading) -> Iterator[Record]:
    """Yields one record for each group of the three labels."""
    for line, times in _found(reading.lines(), reading):
        yield Record(
            name=f"{reading.source.name}:{line}",
            real=times["real"],
            user=times["user"],
            system=times["sys"],
            at=reading.at(line),
        )


def _found(
    lines: Iterator[tuple[int, str]] | enumerate[str], reading: Reading | None = None
) -> Iterator[tuple[int, dict[str, float]]]:
    """Yields the line number of the first label, and the three times. Lines other than empty ones must not
    come between the labels. If only two of the three lines are found, or if one of them has no valid time,
    counts this as a damaged line in READING."""
    times: dict[str, float | None] = {}
    first = lone = 0
    for number, line in lines:
        if not line.strip():
            continue
        if whole := _in_one_line(line):
            yield number, whole
        label = _labelled(line)
        if label is None or label[0] in times:
            if _lacks_one(times):
                _count(reading, first)
            lone = first if set(times) == {"real"} else lone
            times = {}
        if label is not None:
            first = first if times else number
            times[label[0]] = label[1]
            if set(times) == {"sys"} and lone and number == lone + 2:
                # There is exactly one line between `real` and `sys`. It must be the line of `user`, which is
                # damaged.
                _count(reading, lone)
        if len(times) == len(_LABELS):
            known = {name: seconds for name, seconds in times.items() if seconds is not None}
            if len(known) == len(_LABELS):
                yield first, known
            else:
                _count(reading, first)
            times = {}
    if _lacks_one(times):
        _count(reading, first)


def _lacks_one(times: dict[str, float | None]) -> bool:
    """Returns whether exactly two of the three lines were found, and at least one has a valid time. A single
    line is not counted as damage, because it may be output of the measured program."""
    return len(times) == 2 and any(seconds is not None for seconds in times.values())


def _count(reading: Reading | None, line: int) -> None:
    if reading is not None:
        reading.losses.count("damaged-line", reading.at(line))


def _in_one_line(line: str) -> dict[str, float] | None:
    if found := _LABELS_LAST.fullmatch(line):
        pairs = zip(found.groups()[1::2], found.groups()[::2], strict=True)
    elif found := _LABELS_FIRST.fullmatch(line):
        pairs = zip(found.groups()[::2], found.groups()[1::2], strict=True)
    else:
        return None
    times = {_name(label): unit_seconds(text.rstrip(",")) for label, text in pairs}
    known = {label: seconds for label, seconds in times.items() if seconds is not None}
    return known if set(known) == _LABELS else None


def _labelled(line: str) -> tuple[str, float | None] | None:
    """Returns the label of a line and its time. The time is None if it can't be parsed. Returns None if the
    line has no label."""
    if found := _LABEL.fullmatch(line):
        return _name(found[1]), unit_seconds(found[2])
    damaged = _DAMAGED.fullmatch(line)
    return (_name(damaged[1]), None) if damaged else None


def _name(label: str) -> str:
    return _SHORT.get(label.lower(), label.lower())


READER = Reader("shell-time", "time of bash, ksh and POSIX, time -p", sniff, read)
