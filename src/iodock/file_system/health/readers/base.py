"""Defines the interface of a reader and of its input, combines rows that are repeats into one cell, and
parses numbers, sizes and options."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from statistics import fmean, median

from iodock.file_system.health.measurements import Cell, Latency, MeasurementError, Measurements, repeated
from iodock.file_system.health.readers.credible import credible_cell
from iodock.shared.bounded import files
from iodock.shared.bounded.doubts import NO_NUMBER, Doubts
from iodock.shared.bounded.limits import MOST_LINES, RESULT
from iodock.shared.bounded.packed import UNPACK_ERRORS, unpacked

_NOTHING = ("", "-", "NA", "N/A")
"""Text that benchmarks write for a missing value."""
_MOST = 1e30
"""Larger numbers are regarded as damage. They would overflow in another unit."""
_LONGEST_LINE = 8192
"""Lines are cut at this length. No line of a table is longer, and few commands are."""
_LONGEST_COMMAND = 1 << 16
"""Longer command lines are damaged, and parsing their quotes would take minutes."""
_SIZE = re.compile(r"([\d.]{1,20})\s*([kKmMgGtTpPeE]?)(?:i?B|bytes?)?\s*$")
_POWERS = {letter: 1 << (10 * power) for power, letter in enumerate(" kmgtpe")}


@dataclass(frozen=True)
class Source:
    """The input of a reader: a file, or a folder with all files of a result."""

    path: Path
    doubts: Doubts = field(default_factory=Doubts, compare=False)
    """Values that were left out, with the reason."""

    @cached_property
    def text(self) -> str:
        """The decompressed text of the file. It is empty for a folder, and for a file that is not text.
        Raises MeasurementError."""
        if self.path.is_dir():
            return ""
        try:
            content = _content(self.path)
        except OSError as error:
            said = error.strerror or str(error)
            raise MeasurementError(
                f"{self.path}: {said}", "specify files that contain benchmark results"
            ) from error
        except UNPACK_ERRORS as error:
            raise MeasurementError(f"{self.path}: the compressed data is damaged", "copy it again") from error
        if content.count(b"\n") > MOST_LINES:
            raise MeasurementError(f"{self.path}: more than {MOST_LINES:,} lines", RESULT.hint)
        return "" if b"\0" in content else content.decode("utf-8", "replace").replace("\r\n", "\n")

    @cached_property
    def whole_lines(self) -> list[str]:
        """The lines in full length. Regular expressions must not be applied to them, because they may take
        quadratic time on very long lines."""
        return self.text.split("\n")

    @cached_property
    def lines(self) -> list[str]:
        """The lines, cut to at most 8,192 characters. Each line that was cut is counted in `doubts`."""
        lines = list(self.whole_lines)
        for at, line in enumerate(lines):
            if len(line) > _LONGEST_LINE:
                lines[at] = line[:_LONGEST_LINE]
                self.doubts.count(
                    f"what is behind {_LONGEST_LINE:,} characters of a line", "the rest", self.at(at + 1)
                )
        return lines

    def first_lines(self, count: int) -> list[str]:
        """Returns the first lines, in which a reader looks for marks of its format. Long lines are cut, but
        not counted in `doubts`, because another reader may read the file and need the whole line."""
        return [line[:_LONGEST_LINE] for line in self.text.split("\n", count)[:count]]

    @property
    def start(self) -> str:
        """The first 65,536 characters of the text, in which a reader looks for marks of its format."""
        return self.text[: 64 << 10]

    def at(self, line: int) -> str:
        """Formats a position as file and line number."""
        return f"{self.path}:{line}"

    def wrong(self, line: int, what: str, hint: str) -> MeasurementError:
        return MeasurementError(f"{self.at(line)}: {what}", hint)

    def rate(self, text: object, line: int, what: str) -> float | None:
        """Parses a rate. Returns None if TEXT is empty or no valid number. Invalid numbers, such as `nan`,
        `-1` and `inf`, are counted in `doubts` under the name WHAT."""
        if text is None or (isinstance(text, str) and text.strip() in _NOTHING):
            return None
        value = number(text)
        if value is None:
            self.doubts.count(NO_NUMBER, f"{what} {text}", self.at(line))
        return value

    def line_of(self, offset: int) -> int:
        """Returns the number of the line that contains the character at OFFSET of `text`."""
        return self.text.count("\n", 0, offset) + 1


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise MeasurementError(
            f"{path}: is not a file" if path.exists() else f"{path}: no such file or folder"
        )
    with files.opened(path) as file, unpacked(file) as stream:
        return files.whole(stream, path, RESULT, MeasurementError)


@dataclass(frozen=True)
class Reader:
    """A reader for the results of one benchmark."""

    name: str
    document: str
    """Names of the formats that it reads, for help pages."""
    sniff: Callable[[Source], float]
    """Returns how certain it is that a file has its format, from 0 to 1."""
    read: Callable[[Source], Measurements]
    """Reads a file. Raises MeasurementError if the file has no result."""


class Repeats:
    """Collects cells. Rows that differ only in their values are repeats of the same cell. The cells keep the
    order of their first repeats. Impossible values are left out, and counted in DOUBTS."""

    def __init__(self, doubts: Doubts) -> None:
        self._doubts = doubts
        self._templates: dict[tuple[object, ...], Cell] = {}
        self._values: dict[tuple[object, ...], list[float]] = {}
        self._latencies: dict[tuple[object, ...], list[Latency]] = {}

    def add(self, cell: Cell) -> None:
        """Adds one repeat, whose measured values are in CELL."""
        credible = credible_cell(cell, self._doubts)
        if credible is None:
            return
        cell = credible
        variant = tuple(sorted(cell.variant.items()))
        key = (cell.test, cell.operation, cell.size_bytes, cell.processes, cell.nodes, cell.unit, variant)
        self._templates.setdefault(key, cell)
        self._values.setdefault(key, []).append(cell.value)
        if cell.latency_ns is not None:
            self._latencies.setdefault(key, []).append(cell.latency_ns)

    def cells(self) -> tuple[Cell, ...]:
        """Returns the cells. The value of each is the median of its repeats."""
        return tuple(
            replace(repeated(cell, self._values[key]), latency_ns=together(self._latencies.get(key, ())))
            for key, cell in self._templates.items()
        )


def together(several: Iterable[Latency]) -> Latency | None:
    """Combines the latencies of several repeats. Minimum and maximum are those of all repeats. A percentile
    is the median of the repeats' percentiles, because the exact one can't be computed from them."""
    given = tuple(several)
    if len(given) < 2:
        return given[0] if given else None
    counts = [one.count for one in given if one.count is not None]
    return Latency(
        p50=_over(median, [one.p50 for one in given]),
        p99=_over(median, [one.p99 for one in given]),
        p99_9=_over(median, [one.p99_9 for one in given]),
        max=_over(max, [one.max for one in given]),
        min=_over(min, [one.min for one in given]),
        mean=_over(fmean, [one.mean for one in given]),
        count=sum(counts) if counts else None,
    )


def _over(function: Callable[[list[float]], float], values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return function(known) if known else None


def number(text: object) -> float | None:
    """Converts TEXT to a number. Returns None unless it is finite and at least 0, because benchmarks print no
    other valid numbers."""
    if isinstance(text, bool):
        return None
    try:
        value = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return value if 0 <= value < _MOST else None


def duration(text: object) -> float | None:
    """Parses a time in the unit of the benchmark, or returns None if TEXT is empty or not a number. An
    impossible time, such as -5 or `nan`, is returned nevertheless: the rate that the benchmark computed from
    it is wrong as well, and `credible_cell` needs the time to reject the rate."""
    if text is None or (isinstance(text, str) and text.strip() in _NOTHING):
        return None
    try:
        return float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def whole(text: object) -> int | None:
    """Converts TEXT to an integer of at least 0, or returns None."""
    value = number(text)
    return None if value is None else int(value)


def size(text: str | None) -> int | None:
    """Parses a size such as `1 MiB`, `47008 bytes`, `16m` or `4k`, and returns bytes. Benchmarks use all
    prefixes as powers of 1024."""
    found = _SIZE.match((text or "").strip())
    amount = number(found[1]) if found else None
    if found is None or amount is None:
        return None
    return round(amount * _POWERS[found[2].lower() or " "])


def words(command: str | None) -> list[str]:
    """Splits a command line into words, as a shell does. If its quotes are unbalanced or the line is very
    long, it is split at blanks instead."""
    text = command or ""
    try:
        return shlex.split(text) if len(text) <= _LONGEST_COMMAND else text.split()
    except ValueError:
        return text.split()


def option(command: list[str], *names: str) -> str | None:
    """Returns the value of an option. Options are written as `-t 1m`, `-t1m`, `-t=1m` or `--name=1m`."""
    for at, word in enumerate(command):
        for name in names:
            if word == name and at + 1 < len(command):
                return command[at + 1]
            if word.startswith(f"{name}="):
                return word[len(name) + 1 :]
            if (
                not name.startswith("--")
                and word.startswith(name)
                and word[len(name) : len(name) + 1].isdigit()
            ):
                return word[len(name) :]
    return None


def several_commands(commands: Iterable[str | None]) -> list[str]:
    """Returns a note if the runs in a file have different command lines, because the protocol shows only the
    first one."""
    count = len({one for one in commands if one is not None})
    if count < 2:
        return []
    return [f"runs of {count:,} commands in one file: the command, times and settings of the first are shown"]


def date(text: str | None, *forms: str) -> str | None:
    """Converts a date to ISO 8601. FORMS are the possible formats for strptime. Returns None if no format
    matches. Benchmarks write dates without a time zone."""
    for form in forms:
        try:
            return datetime.strptime((text or "").strip(), form).isoformat()
        except ValueError:
            continue
    return None


CTIME = "%a %b %d %H:%M:%S %Y"


def sample_spread(population: float | None, mean: float, count: int | None) -> float | None:
    """Returns the spread (standard deviation with n - 1, divided by the mean) of COUNT values. POPULATION is
    their standard deviation with n, which older benchmarks print."""
    if population is None or not count or count < 2 or mean == 0:
        return None
    return population * math.sqrt(count / (count - 1)) / abs(mean)
