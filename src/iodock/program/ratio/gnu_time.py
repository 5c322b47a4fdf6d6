"""Reads the output of GNU `time -v`, and of GNU `time` without options.

Source: the manual of GNU time 1.9, and real outputs. Output of the measured program may come before these
lines, between them, and directly in front of a line without a line break. In pasted text, tabs may be blanks
or missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from iodock.program.ratio.clocks import clock_seconds, whole_number
from iodock.program.ratio.reader import Reader, Reading, Sample
from iodock.program.ratio.record import Record

BLOCK_BYTES = 512
"""GNU time counts file-system inputs and outputs in blocks of this size (getrusage)."""
_COMMAND = re.compile(r'(?:^|\s)Command being timed: "(.*)"$', re.M)
_ELAPSED = "Elapsed (wall clock) time (h:mm:ss or m:ss)"
_USER, _SYSTEM = "User time (seconds)", "System time (seconds)"
_READ, _WRITTEN, _STATUS = "File system inputs", "File system outputs", "Exit status"
_NAMES = "|".join(map(re.escape, (_ELAPSED, _USER, _SYSTEM, _READ, _WRITTEN, _STATUS)))
_FIELD = re.compile(rf"\s*({_NAMES}): (.*)$")
_LINE = re.compile(r"(?<!\d)(\d+[.,]\d\d)user (\d+[.,]\d\d)system (\d+:[\d:.,]+)elapsed (?:\d+|\?)%CPU")
_NEARLY = re.compile(r"user \S{1,40}system |system \S{1,40}elapsed |elapsed \S{1,20}%CPU \(")
"""Matches a part of a line of times, which shows that the line is damaged."""
_INPUTS = re.compile(r"(\d+)inputs\+(\d+)outputs ")


def sniff_verbose(sample: Sample) -> float:
    """Returns 1.0 if the file contains two lines that no other program writes, 0.5 if it contains one of
    them, and otherwise 0."""
    return (bool(_COMMAND.search(sample.text)) + (f"{_ELAPSED}: " in sample.text)) / 2


def read_verbose(reading: Reading) -> Iterator[Record]:
    """Yields one record per block of lines that `time -v` wrote."""
    fields: dict[str, str] = {}
    first = 0
    for number, line in reading.source.lines():
        command = _COMMAND.search(line)
        if command:
            yield from _verbose(fields, reading, first)
            fields, first = {"": command[1]}, number
        elif found := _FIELD.match(line):
            first = first or number
            fields[found[1]] = found[2]
            if found[1] == _STATUS:
                yield from _verbose(fields, reading, first)
                fields, first = {}, 0
    yield from _verbose(fields, reading, first)


def _verbose(fields: dict[str, str], reading: Reading, line: int) -> Iterator[Record]:
    if not fields:
        return
    at = reading.at(line)
    real = clock_seconds(fields.get(_ELAPSED, ""))
    user = clock_seconds(fields.get(_USER, ""))
    if real is None or user is None:
        reading.losses.count("damaged-line", at)
        return
    yield Record(
        name=fields.get("") or f"{reading.source.name}:{line}",
        real=real,
        user=user,
        system=clock_seconds(fields.get(_SYSTEM, "")),
        at=at,
        io_bytes=block_bytes(fields.get(_READ), fields.get(_WRITTEN)),
    )


def block_bytes(*counts: str | None) -> int | None:
    """Returns the bytes of the inputs and outputs that GNU time reports in blocks, or None if there are no
    such numbers."""
    known = [number for count in counts if count and (number := whole_number(count)) is not None]
    return sum(known) * BLOCK_BYTES if known else None


def sniff_default(sample: Sample) -> float:
    """Returns 0.95 if the file contains a line of GNU time's default format, and otherwise 0. Other programs
    hardly ever write such a line."""
    return 0.95 if any(map(_LINE.search, sample.lines)) else 0.0


def read_default(reading: Reading) -> Iterator[Record]:
    """Yields one record per line of times. The line after it contains the I/O."""
    waiting: Record | None = None
    for number, line in reading.lines():
        if waiting is not None:
            blocks = _INPUTS.match(line)
            yield waiting._replace(io_bytes=block_bytes(*blocks.groups()) if blocks else None)
            waiting = None
        if found := _LINE.search(line):
            waiting = _default(found, reading, number)
        elif _NEARLY.search(line):
            reading.losses.count("damaged-line", reading.at(number))
    if waiting is not None:
        yield waiting


def _default(found: re.Match[str], reading: Reading, line: int) -> Record:
    return Record(
        name=f"{reading.source.name}:{line}",
        real=clock_seconds(found[3]),
        user=clock_seconds(found[1]),
        system=clock_seconds(found[2]),
        at=reading.at(line),
    )


VERBOSE = Reader("gnu-time-verbose", "GNU time -v", sniff_verbose, read_verbose)
DEFAULT = Reader("gnu-time", "GNU time without options", sniff_default, read_default)
