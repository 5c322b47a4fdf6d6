"""Reads process accounting as `dump-acct` prints it (GNU accounting utilities), with `|` between fields.

    sleep           |v3|     0.00|     0.00|   200.00|     0|     0| ... |Sat Nov 21 07:58:02 2026

The fields are: command, version, user time, system time and elapsed time in 1/100 s, user id, group id, and
others. Older releases do not print the version (`v3`). Sources for units and order: SS-ken report (2015),
2.3.1, and dump-acct 6.6.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from iodock.program.ratio.clocks import clock_seconds
from iodock.program.ratio.reader import LONGEST_LINE, Reader, Reading, Sample
from iodock.program.ratio.record import Record

TICKS_PER_S = 100
_LINE = re.compile(r"(.*?)\s*\|(?:v\d\|)?\s*([\d.]+)\|\s*([\d.]+)\|\s*([\d.]+)\|\s*(\d+)\|\s*\d+\|")
_ENOUGH = 0.5
_LOOKED_AT = 200


def sniff(sample: Sample) -> float:
    """Returns a certainty that depends on the share of lines with this form."""
    lines = [line for line in sample.lines[:_LOOKED_AT] if line.strip()]
    if not lines:
        return 0.0
    share = sum(1 for line in lines if _LINE.match(line)) / len(lines)
    return 0.9 if share >= _ENOUGH else max(0.3, share) if share else 0.0


def read(reading: Reading) -> Iterator[Record]:
    """Yields one record per process."""
    match, path = _LINE.match, reading.source.path
    for number, line in reading.source.lines():
        found = match(line) if len(line) <= LONGEST_LINE else None
        if found is None:
            if line.strip():
                reading.losses.count("damaged-line", reading.at(number))
            continue
        user, system, real = map(clock_seconds, found.group(2, 3, 4))
        if user is None or system is None or real is None:
            reading.losses.count("damaged-line", reading.at(number))
            continue
        ticks = TICKS_PER_S
        yield Record(
            found[1], real / ticks, user / ticks, system / ticks, None, 1, found[5], "", f"{path}:{number}"
        )


READER = Reader("dump-acct", "text of dump-acct", sniff, read, by="command")
