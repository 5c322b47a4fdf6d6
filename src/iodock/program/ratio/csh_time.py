"""Reads the output of `time` in csh, tcsh and zsh, which is one line.

0.8u 12.3s 26:27.30 0.8% 0+0k 0+0io 0pf+0w ./a.out (csh, tcsh)
./a.out  0.80s user 12.30s system 0% cpu 26:27.30 total (zsh)

In some locales the fractions are written with a comma.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from iodock.program.ratio.clocks import clock_seconds
from iodock.program.ratio.reader import Reader, Reading, Sample
from iodock.program.ratio.record import Record

_CSH = re.compile(r"(?<![\w.,])(\d+[.,]\d+)u (\d+[.,]\d+)s (\d+:[\d:.,]+) \d+(?:[.,]\d+)?%")
_NEARLY_CSH = re.compile(r"\d[.,]\d{1,20}u \d|\d{1,20}io \d{1,20}pf\+\d{1,20}w")
_NEARLY_ZSH = re.compile(r"s user \S{1,40}s system | system \S{1,40}% cpu |% cpu \S{1,40} total")
"""Matches a part of a line of times, which shows that the line is damaged."""
_ZSH = re.compile(
    r"^(.*?)\s*(?<![\w.,])(\d+[.,]\d+)s user (\d+[.,]\d+)s system \d+% cpu ([\d:.,]+) total\s*$", re.M
)


def sniff_csh(sample: Sample) -> float:
    """Returns 0.9 if the file contains a line of csh's `time`, and otherwise 0."""
    return 0.9 if any(map(_CSH.search, sample.lines)) else 0.0


def read_csh(reading: Reading) -> Iterator[Record]:
    """Yields one record per line of csh's `time`."""
    for number, line in reading.lines():
        if found := _CSH.search(line):
            name = f"{reading.source.name}:{number}"
            yield _record(name, found[3], found[1], found[2], reading.at(number))
        elif _NEARLY_CSH.search(line):
            reading.losses.count("damaged-line", reading.at(number))


def sniff_zsh(sample: Sample) -> float:
    """Returns 0.9 if the file contains a line of zsh's `time`, and otherwise 0."""
    return 0.9 if "s user " in sample.text and any(map(_ZSH.match, sample.lines)) else 0.0


def read_zsh(reading: Reading) -> Iterator[Record]:
    """Yields one record per line of zsh's `time`, which contains the command."""
    for number, line in reading.lines():
        if found := _ZSH.match(line):
            name = found[1].strip() or f"{reading.source.name}:{number}"
            yield _record(name, found[4], found[2], found[3], reading.at(number))
        elif _NEARLY_ZSH.search(line):
            reading.losses.count("damaged-line", reading.at(number))


def _record(name: str, real: str, user: str, system: str, at: str) -> Record:
    times = clock_seconds(real), clock_seconds(user), clock_seconds(system)
    return Record(name, *times, at=at)


CSH = Reader("csh-time", "time of csh and tcsh", sniff_csh, read_csh)
ZSH = Reader("zsh-time", "time of zsh", sniff_zsh, read_zsh)
