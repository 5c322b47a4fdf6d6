"""mdtest 1.9 to 4.1: its text, there is no other form.

Traps: the colon after an operation is glued, spaced or missing; 4.x prints a table of times after that of
rates where asked; an operation that was not asked for has a row of zeros. Up to 3.3 the deviation is the
population's, over iterations and processes; from 4.0 on it is that of a sample of iterations.
"""

from __future__ import annotations

import re
from dataclasses import replace

from iodock.health.measurements import Cell, Json, Measurements, Protocol, Unit
from iodock.health.readers.base import Reader, Source, date, number, option, sample_spread, whole, words

_LAUNCHED = re.compile(r"^mdtest-(\S+) was launched with (\d{1,9}) total task\(s\) on (\d{1,9}) node\(s\)")
_ROW = re.compile(r"^\s+((?:Directory|File|Tree) \w+)\s*:?\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$")
_SUMMARY = re.compile(r"^SUMMARY(?: (\w+))?.*\(of (\d{1,9}) iterations\)")
_WHAT = {
    "creation": "create",
    "stat": "stat",
    "read": "read",
    "removal": "remove",
    "rename": "rename",
}
_HINT = "mdtest ends with a table `SUMMARY rate`: let it run to its end, and copy its whole output"


def sniff(source: Source) -> float:
    """Sure of the line that says how it was launched."""
    return 0.95 if re.search(r"^mdtest-\S+ was launched with", source.start, re.MULTILINE) else 0.0


def read(source: Source) -> Measurements:
    """A cell for each operation that was measured. Raises MeasurementError without a table of rates."""
    version, processes, nodes = _launch(source)
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
    cells, zeros = _cells(source, version, processes, nodes, _variant(command))
    if not cells:
        raise source.wrong(len(source.lines), "no rate of mdtest in it", _HINT)
    notes = [f"not measured, so left out: {', '.join(zeros)}"] if zeros else []
    return Measurements(replace(protocol, notes=tuple(notes)), tuple(cells))


def _launch(source: Source) -> tuple[str, int, int]:
    for line in source.lines:
        if found := _LAUNCHED.match(line):
            return found[1], int(found[2]), int(found[3])
    raise source.wrong(1, "no line of mdtest says how it was launched", _HINT)


def _member(source: Source, name: str) -> str | None:
    found = re.search(rf"^{name}\s*: *(.*)$", source.text, re.MULTILINE)
    return found[1].strip() if found else None


def _between(source: Source, start: str) -> str | None:
    found = re.search(rf"^{start}(.*?) --$", source.text, re.MULTILINE)
    return found[1] if found else None


def _settings(command: str | None) -> dict[str, Json]:
    given = words(command)
    items = {"items_per_process": whole(option(given, "-n")), "file_bytes": whole(option(given, "-w"))}
    return {name: value for name, value in items.items() if value}


def _variant(command: str | None) -> dict[str, str]:
    """What makes rates differ for another reason than the number of processes."""
    given = words(command)
    short = "".join(word[1:] for word in given if re.match(r"-[A-Za-z]+$", word))
    variant = {"directories": "one-per-process" if "u" in short else "shared"}
    written = whole(option(given, "-w"))
    return {**variant, "file_bytes": str(written)} if written else variant


def _cells(
    source: Source, version: str, processes: int, nodes: int, variant: dict[str, str]
) -> tuple[list[Cell], list[str]]:
    cells, zeros = [], []
    rates, iterations = False, 1
    for line, text in enumerate(source.lines, 1):
        if summary := _SUMMARY.match(text):
            rates, iterations = summary[1] in (None, "rate"), int(summary[2])
        row = _ROW.match(text) if rates else None
        if row is None:
            continue
        operation = _operation(row[1])
        most, least, mean, deviation = (number(row[at]) or 0.0 for at in range(2, 6))
        if mean == 0:
            zeros.append(operation)
            continue
        cells.append(
            Cell(
                test="mdtest",
                operation=operation,
                size_bytes=None,
                processes=processes or None,
                nodes=nodes or None,
                value=mean,
                unit=Unit.OPERATIONS_PER_S,
                repeats=iterations or None,
                spread=_spread(version, deviation, mean, iterations, processes),
                minimum=least,
                maximum=most,
                variant=variant,
                source=source.at(line),
            )
        )
    return cells, zeros


def _operation(name: str) -> str:
    what, done = name.lower().split(" ")
    return f"{what}-{_WHAT.get(done, done)}"


def _spread(version: str, deviation: float, mean: float, iterations: int, processes: int) -> float | None:
    if iterations < 2:
        return None
    if version.split(".")[0] in ("1", "2", "3"):
        return sample_spread(deviation, mean, iterations * max(processes, 1))
    return deviation / mean


READER = Reader("mdtest", "mdtest 1.9 to 4.1: text", sniff, read)
