"""Parses IOzone's tables: the rows of its automatic mode, and its reports for a spreadsheet (`-R`).

Source: iozone.c of 3.414, 3.430, 3.471 and 3.489, and runs of 3.489. The width of a column depends on the
version, and its heading is not always above it. A test that was not requested leaves blanks in its column. A
number that is as wide as its column touches the number before it. A wider number shifts all following ones to
the right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from iodock.file_system.health.readers.base import Source, option, size, words
from iodock.shared.bounded.doubts import CUT_ROW

COLUMNS = (
    *(("write", "sequential"), ("write", "rewrite"), ("read", "sequential"), ("read", "reread")),
    *(("read", "random"), ("write", "random"), ("read", "backward"), ("write", "record-rewrite")),
    *(("read", "stride"), ("write", "fwrite"), ("write", "frewrite"), ("read", "fread"), ("read", "freread")),
    *(("write", "pwrite"), ("write", "re-pwrite"), ("read", "pread"), ("read", "re-pread")),
    *(("write", "pwritev"), ("write", "re-pwritev"), ("read", "preadv"), ("read", "re-preadv")),
)
"""Operation and access pattern of each column."""
_NEW = (*(9,) * 13, 9, 9, 8, 9, 9, 10, 10, 9)
_OLD = (8, 8, 9, 9, 8, 8, 8, 9, 9, 9, 9, 8, 9, 8, 9, 8, 9, 9, 10, 10, 9)
"""Widths of the columns: _NEW since 3.430, _OLD before."""
_SIZES_WIDTH = 24
"""Total width of the columns for file and record size. It is smaller if blanks were removed."""
_OF_TEST = {
    "0": (0, 1), "1": (2, 3), "2": (4, 5), "3": (6,), "4": (7,), "5": (8,), "6": (9, 10), "7": (11, 12),
    "9": (13, 14), "10": (15, 16), "11": (17, 18), "12": (19, 20),
}  # fmt: skip
"""Columns that the option `-i N` fills."""
_HEAD = re.compile(r"^\s*(?:kB|KB)\s+reclen(\s+write)\s+rewrite\b.*$")
_START = re.compile(r"^\s*(\d{1,15})\s+(\d{1,15})(?=\D|$)")
_REPORTS = {
    "writer": 0, "re-writer": 1, "reader": 2, "re-reader": 3, "random read": 4, "random write": 5,
    "backward read": 6, "record rewrite": 7, "stride read": 8, "fwrite": 9, "re-fwrite": 10, "fread": 11,
    "re-fread": 12, "pwrite": 13, "re-pwrite": 14, "pread": 15, "re-pread": 16, "pwritev": 17,
    "re-pwritev": 18, "preadv": 19, "re-preadv": 20,
}  # fmt: skip
_REPORT = re.compile(r'^"([A-Za-z-]+(?: [a-z]+)?) report"\s*$')
_QUOTED = re.compile(r'"(\d{1,15})"')


@dataclass
class Run:
    """The lines of one run of IOzone. A file may contain several runs."""

    lines: list[tuple[int, str]] = field(default_factory=list)
    """Number and text of each line."""
    command_line: str | None = None
    counts_operations: bool = False
    """Whether the numbers are operations per second (`-O`)."""

    @cached_property
    def command(self) -> list[str]:
        """The words of the command line, or an empty list if the output does not contain it."""
        return words(self.command_line)


class Rate(NamedTuple):
    """One number of a table, in the unit of the run."""

    line: int
    column: int
    text: str
    file_bytes: int
    record_bytes: int


def is_head(line: str) -> bool:
    """Returns whether the line is the heading of a table."""
    return _HEAD.match(line) is not None


def is_row(line: str) -> bool:
    """Returns whether the line begins with a file size and a record size, as rows do."""
    return _START.match(line) is not None


def rows(source: Source, run: Run, invalid: set[int]) -> Iterator[Rate]:
    """Yields the numbers of all rows, except the rows in the lines INVALID. Rows that can't be split into
    columns are counted in the source's `doubts`."""
    widths, base, most = _NEW, 0, 0
    for line, text in run.lines:
        if head := _HEAD.match(text):
            widths = _OLD if len(head[1]) == _OLD[0] else _NEW
            base, most = head.start(1), len(text.split()) - 2
            continue
        start = _start(text, base) if base else None
        if start is None or line in invalid:
            continue
        end, file_bytes, record_bytes = start
        found = _placed(text, end, base, widths) or _in_order(text[end:], run.command, most)
        if found is None:
            why = (
                "the columns of a row can't be separated: a number is wider than its column, or the row "
                "is cut off"
            )
            source.doubts.count(why, f"iozone {text.strip()[:60]}", source.at(line))
            continue
        for column, value in found:
            yield Rate(line, column, value, file_bytes, record_bytes)


def _start(text: str, base: int) -> tuple[int, int, int] | None:
    """Returns the position at which the numbers of a row begin, its file size and its record size (both in
    bytes). The first number may touch the record size, so the two are separated at BASE, the position where
    the heading's numbers begin. Returns None if the line is not a row."""
    words = text[:base].split()
    if base >= _SIZES_WIDTH and len(words) == 2 and all(re.fullmatch(r"[0-9]{1,15}", one) for one in words):
        return base, int(words[0]) << 10, int(words[1]) << 10
    start = _START.match(text)
    return (start.end(), int(start[1]) << 10, int(start[2]) << 10) if start else None


def _placed(text: str, start: int, base: int, widths: tuple[int, ...]) -> list[tuple[int, str]] | None:
    """Assigns numbers to columns by their positions. Every number must end where a column ends. Returns pairs
    (column, number), or None if a number ends elsewhere."""
    ends = [base + sum(widths[: at + 1]) for at in range(len(widths))]
    found: list[tuple[int, str]] = []
    for word in re.finditer(r"\S+", text[start:]):
        begin, end = start + word.start(), start + word.end()
        if end not in ends:
            return None
        for column in range(len(ends)):
            left = max(begin, ends[column] - widths[column])
            # A word that is longer than a column consists of several numbers that touch each other.
            if left < ends[column] <= end:
                found.append((column, text[left : ends[column]]))
        if begin < base:
            return None
    return found or None


def _in_order(rest: str, command: list[str], most: int) -> list[tuple[int, str]] | None:
    """Assigns numbers to columns by their order. Returns None unless the row has exactly one number for each
    column that the command requested."""
    words = rest.split()
    asked = [column for test in _tests(command) for column in _OF_TEST.get(test, ())]
    columns = sorted(set(asked)) if asked else list(range(min(most, len(COLUMNS))))
    return list(zip(columns, words, strict=True)) if len(words) == len(columns) and words else None


def _tests(command: list[str]) -> list[str]:
    """Returns the values of all options `-i`, which select tests."""
    found = []
    for at, word in enumerate(command):
        if word == "-i" and at + 1 < len(command):
            found.append(command[at + 1])
        elif re.fullmatch(r"-i\d{1,2}", word):
            found.append(word[2:])
    return found


def reports(source: Source, run: Run) -> Iterator[Rate]:
    """Yields the numbers in the reports of `-R`. They are used for runs without a table. There is one report
    per test, with a row per file size."""
    column: int | None = None
    records: list[int] = []
    for line, text in run.lines:
        if report := _REPORT.match(text):
            column, records = _REPORTS.get(report[1].lower()), []
        elif not text.strip():
            continue
        elif text.startswith('"') and column is not None and not records:
            source.doubts.count(CUT_ROW, "iozone", source.at(line))
        elif text.startswith('"') and column is not None:
            file_size = _QUOTED.match(text)
            if file_size is None:
                source.doubts.count(CUT_ROW, "iozone", source.at(line))
                continue
            values = text[file_size.end() :].split()
            if len(values) > len(records):
                source.doubts.count(CUT_ROW, "iozone", source.at(line))
            for record, value in zip(records, values, strict=False):
                yield Rate(line, column, value, int(file_size[1]) << 10, record)
        elif column is not None:
            records = [int(one) << 10 for one in _QUOTED.findall(text)]


def record_size(command: list[str]) -> int | None:
    """Returns the record size in bytes from the option `-r`, or None without this option. A number without a
    letter is in KiB."""
    given = option(command, "-r")
    return None if given is None else size(f"{given}k" if given.isdigit() else given)
