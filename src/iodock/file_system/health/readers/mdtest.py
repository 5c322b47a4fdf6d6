"""Reads the text of mdtest 1.9 to 4.1. mdtest has no other format.

Sources: `summarize_results` in mdtest.c of the versions in IOR's repository, and own runs. The colon after an
operation is attached, separated by blanks, or missing. Version 4 can print a table of times after the table
of rates. An operation that was not requested has a row of zeros. Since 3.4 a table may have statistics over
ranks before those over iterations. Its heading names the columns, and only the statistics over iterations are
used. Up to 3.3 the standard deviation is that of a population (n) over iterations and processes; the one over
iterations is that of a sample (n - 1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from iodock.file_system.health.measurements import Cell, Json, Measurements, Protocol, Unit
from iodock.file_system.health.readers.base import (
    Reader,
    Source,
    date,
    number,
    option,
    sample_spread,
    several_commands,
    whole,
    words,
)
from iodock.shared.bounded.doubts import CUT_ROW

_LAUNCHED = re.compile(
    r"^(?:V-\d+: )?mdtest-(\S+) was launched with (\d{1,9}) total task\(s\) on (\d{1,9}) node\(s\)"
)
_COMMAND = re.compile(r"^(?:V-\d+: )?Command line used\s*: *(.*)$")
_TASKS = re.compile(r"^(?:V-\d+: )?(\d{1,9}) tasks, \d+ (?:file|director)")
_HEAD = re.compile(r"^(?:V-\d+: )?\s*Operation\b.*\bMean\b")
_COLUMN = re.compile(r"per Rank:|per Iteration:|Max|Min|Mean|Std Dev")
_ROW = re.compile(r"^(?:V-\d+: )?\s+((?:Directory|File|Tree) \w+)( \(stonewall\))?\s*:?\s+(\S.*)$")
_OTHER_ROW = re.compile(r"^(?:V-\d+: )?\s+([^:]{1,80}?)\s*: +(\d[\d. ]*)$")
_SUMMARY = re.compile(r"^(?:V-\d+: )?SUMMARY(?: (\w+))?.*\(of (\d{1,9}) iterations\)")
_WHAT = {
    "creation": "create",
    "create": "create",
    "stat": "stat",
    "read": "read",
    "removal": "remove",
    "rename": "rename",
}
_HINT = "mdtest ends with a table `SUMMARY rate`: let it run to its end, and copy its whole output"


def sniff(source: Source) -> float:
    """Returns a high certainty if the file contains the line `mdtest-... was launched with`."""
    return (
        0.95 if re.search(r"^(?:V-\d+: )?mdtest-\S+ was launched with", source.start, re.MULTILINE) else 0.0
    )


def read(source: Source) -> Measurements:
    """Makes a cell for each operation that was measured. Raises MeasurementError if the file contains no
    table of rates."""
    version = _launch(source)
    command = _member(source, "Command line used")
    protocol = Protocol(
        tool="mdtest",
        version=version,
        started=date(_between(source, "-- started at "), "%m/%d/%Y %H:%M:%S"),
        finished=date(_between(source, "-- finished at "), "%m/%d/%Y %H:%M:%S"),
        target=_member(source, "Path") or option(words(command), "-d"),
        command=command,
        settings=_settings(command),
    )
    cells, zeros = _cells(source)
    if not cells:
        times = next((at for at, text in enumerate(source.lines, 1) if _is_of_times(text)), None)
        if times is not None:
            raise source.wrong(
                times, "contains only times of operations, no rates", "run mdtest without -Z, or with -P"
            )
        raise source.wrong(len(source.lines), "contains no rate of mdtest", _HINT)
    zeros = list(dict.fromkeys(zeros))
    notes = [f"not measured, so left out: {', '.join(zeros)}"] if zeros else []
    notes += several_commands(found[1].strip() for text in source.lines if (found := _COMMAND.match(text)))
    return Measurements(replace(protocol, notes=tuple(notes)), tuple(cells))


def _launch(source: Source) -> str:
    for line in source.lines:
        if found := _LAUNCHED.match(line):
            return found[1]
    raise source.wrong(1, "no line of mdtest says how it was launched", _HINT)


def _is_of_times(text: str) -> bool:
    found = _SUMMARY.match(text)
    return found is not None and found[1] == "time"


def _member(source: Source, name: str) -> str | None:
    found = re.search(rf"^(?:V-\d+: )?{name}\s*: *(.*)$", source.text, re.MULTILINE)
    return found[1].strip() if found else None


def _between(source: Source, start: str) -> str | None:
    found = re.search(rf"^(?:V-\d+: )?{start}(.*?) --$", source.text, re.MULTILINE)
    return found[1] if found else None


def _settings(command: str | None) -> dict[str, Json]:
    given = words(command)
    items = {"items_per_process": whole(option(given, "-n")), "file_bytes": whole(option(given, "-w"))}
    return {name: value for name, value in items.items() if value}


def _variant(command: str | None) -> dict[str, str]:
    """Returns properties of a run that affect its rates: whether processes share a directory, and the size of
    the files."""
    given = words(command)
    short = "".join(word[1:] for word in given if re.match(r"-[A-Za-z]+$", word))
    variant = {"directories": "one-per-process" if "u" in short else "shared"}
    written = whole(option(given, "-w"))
    return {**variant, "file_bytes": str(written)} if written else variant


@dataclass
class _Table:
    """Keeps the values of header lines, which apply to the rows after them."""

    version: str = ""
    launched: int | None = None
    nodes: int | None = None
    processes: int | None = None
    variant: dict[str, str] = field(default_factory=dict)
    is_of_rates: bool = False
    iterations: int = 1
    columns: list[str] = field(default_factory=lambda: ["Max", "Min", "Mean", "Std Dev"])
    """Names of the columns: `Max` and so on; columns over ranks are `rank Max` and so on."""

    def head(self, text: str) -> bool:
        """Processes a header line, whose values apply to the rows that follow. Returns False if TEXT is not a
        header line."""
        if found := _LAUNCHED.match(text):
            self.version, self.variant = found[1], {}
            self.launched = self.processes = int(found[2]) or None
            self.nodes = int(found[3]) or None
        elif found := _COMMAND.match(text):
            self.variant = _variant(found[1].strip())
        elif found := _TASKS.match(text):
            self.processes = int(found[1]) or None
        elif found := _SUMMARY.match(text):
            self.is_of_rates, self.iterations = found[1] in (None, "rate"), int(found[2])
        elif _HEAD.match(text):
            self.columns = _columns(text)
        else:
            return False
        return True


def _columns(text: str) -> list[str]:
    columns, of = [], ""
    for found in _COLUMN.findall(text):
        if found.startswith("per "):
            of = "rank " if found == "per Rank:" else ""
        else:
            columns.append(of + found)
    return columns


def _cells(source: Source) -> tuple[list[Cell], list[str]]:
    cells, zeros = [], []
    table = _Table()
    for line, text in enumerate(source.lines, 1):
        if table.head(text) or not table.is_of_rates:
            continue
        if (row := _ROW.match(text)) is None:
            other = _OTHER_ROW.match(text)
            if other and len(other[2].split()) == len(table.columns):
                # The line has as many numbers as a row, but the name of its operation is damaged.
                source.doubts.count(CUT_ROW, other[1], source.at(line))
            continue
        fields = row[3].split()
        if len(fields) != len(table.columns):
            source.doubts.count(CUT_ROW, row[1], source.at(line))
            continue
        values = dict(zip(table.columns, fields, strict=True))
        mean = source.rate(values.get("Mean"), line, row[1])
        if mean is None:
            continue
        if mean == 0:
            zeros.append(_operation(row[1]))
            continue
        cells.append(_cell(table, row, values, mean, source.at(line)))
    return cells, zeros


def _cell(table: _Table, row: re.Match[str], values: dict[str, str], mean: float, source: str) -> Cell:
    variant = {**table.variant, "rate": "stonewall"} if row[2] else table.variant
    return Cell(
        test="mdtest",
        operation=_operation(row[1]),
        size_bytes=None,
        processes=table.processes,
        # If fewer tasks ran than were launched, mdtest does not print on how many nodes they ran.
        nodes=table.nodes if table.processes == table.launched else None,
        value=mean,
        unit=Unit.OPERATIONS_PER_S,
        repeats=table.iterations or None,
        spread=_spread(table, number(values.get("Std Dev")), mean),
        minimum=number(values.get("Min")),
        maximum=number(values.get("Max")),
        variant=variant,
        source=source,
    )


def _operation(name: str) -> str:
    what, done = name.lower().split(" ")
    return f"{what}-{_WHAT.get(done, done)}"


def _spread(table: _Table, deviation: float | None, mean: float) -> float | None:
    if table.iterations < 2 or deviation is None:
        return None
    is_of_ranks = table.version.split(".")[0] in ("1", "2", "3") and len(table.columns) == 4
    if is_of_ranks:
        return sample_spread(deviation, mean, table.iterations * max(table.processes or 1, 1))
    return deviation / mean


READER = Reader("mdtest", "mdtest 1.9 to 4.1: text", sniff, read)
