"""IOzone: the table of its automatic mode, and the sums of its throughput mode (`-t`).

Source: iozone.c. The table's columns are nine characters wide, and empty where a test was not asked for. `kB`
is 1024 bytes. In throughput mode the children's sum is taken, each over its own time.
"""

from __future__ import annotations

import re

from iodock.health.measurements import Cell, Json, Measurements, Protocol, Unit
from iodock.health.readers.base import (
    CTIME,
    Reader,
    Repeats,
    Source,
    date,
    number,
    option,
    size,
    whole,
    words,
)
from iodock.health.readers.caching import of_iozone

_COLUMNS = (
    *(("write", "sequential"), ("write", "rewrite"), ("read", "sequential"), ("read", "reread")),
    *(("read", "random"), ("write", "random"), ("read", "backward"), ("write", "record-rewrite")),
    *(("read", "stride"), ("write", "fwrite"), ("write", "frewrite"), ("read", "fread"), ("read", "freread")),
)
_KINDS = {
    "initial writers": ("write", "sequential"),
    "rewriters": ("write", "rewrite"),
    "readers": ("read", "sequential"),
    "re-readers": ("read", "reread"),
    "random readers": ("read", "random"),
    "random writers": ("write", "random"),
    "reverse readers": ("read", "backward"),
    "stride readers": ("read", "stride"),
    "mixed workload": ("mixed", "mixed"),
    "pwrite writers": ("write", "pwrite"),
    "pread readers": ("read", "pread"),
    "fwriters": ("write", "fwrite"),
    "freaders": ("read", "fread"),
}
_HEAD = re.compile(r"^\s*kB\s+reclen\s+write\s+rewrite", re.IGNORECASE)
_CHILDREN = re.compile(
    r"^.*?Children see throughput for\s+(\d{1,9})\s+(.*?)\s*=\s*([\d.]+)\s*(\w+)/sec", re.IGNORECASE
)
_EACH = re.compile(r"Each (?:process|thread) writes a (\d+) \w+ file in (\d+) (\w+) records", re.IGNORECASE)
_WIDTH = 9
_BYTES = {"kb": 1 << 10, "kbytes": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "bytes": 1, "b": 1}
_HINT = "run `iozone -a` or `iozone -t N -s SIZE -r SIZE`, and keep all that it prints"


def sniff(source: Source) -> float:
    """Sure of its name with a table or sums."""
    start = source.start
    if "Iozone: Performance Test of File I/O" in start:
        return 0.95
    if any(_HEAD.match(line) for line in source.lines[:200]):
        return 0.8
    return 0.8 if _CHILDREN.search(start) else 0.0


def read(source: Source) -> Measurements:
    """A cell for each test, file size and record size. Raises MeasurementError without a rate."""
    command = _member(source, "Command line used")
    if re.search(
        r"^\s*(?:Output is in microseconds|Microseconds/op)", source.text, re.MULTILINE | re.IGNORECASE
    ):
        raise source.wrong(1, "holds microseconds per operation, no rates", "run iozone without -N")
    unit = Unit.OPERATIONS_PER_S if re.search(r"ops/sec", source.text, re.IGNORECASE) else Unit.BYTES_PER_S
    repeats = Repeats(source.doubts)
    for cell in (*_table(source, unit, words(command)), *_sums(source, words(command))):
        repeats.add(cell)
    cells = repeats.cells()
    if not cells:
        raise source.wrong(len(source.lines), "no rate of iozone in it", _HINT)
    return Measurements(_protocol(source, command), cells)


def _member(source: Source, name: str) -> str | None:
    found = re.search(rf"^\s*{name}: *(.*)$", source.text, re.MULTILINE)
    return found[1].strip() if found else None


def _protocol(source: Source, command: str | None) -> Protocol:
    version = re.search(r"Version \$Revision: (\S+) \$", source.text)
    given = words(command)
    settings: dict[str, Json] = {"fsync_in_time": "-e" in given, "close_in_time": "-c" in given}
    return Protocol(
        tool="iozone",
        version=version[1] if version else None,
        started=date(_member(source, "Run began"), CTIME),
        target=option(given, "-f"),
        command=command,
        settings=settings if command else {},
    )


def _table(source: Source, unit: Unit, command: list[str]) -> list[Cell]:
    base = None
    cells = []
    for line, text in enumerate(source.lines, 1):
        if _HEAD.match(text):
            base = text.lower().index("reclen") + len("reclen")
            continue
        start = re.match(r"^\s*(\d{1,15})\s+(\d{1,15})(?=\s|$)", text) if base is not None else None
        if start is None or base is None:
            continue
        for column, value in _values(text, start.end(), base):
            name = (f"{_COLUMNS[column][1]}", _COLUMNS[column][0])
            cells.append(
                _cell(source, line, name, value, (int(start[1]) << 10, int(start[2]) << 10, 1), unit, command)
            )
    return cells


def _values(text: str, start: int, base: int) -> list[tuple[int, float]]:
    """(Column, number) of a row. A number too wide for its column moves those behind it: then the row's
    numbers are taken in order, if there is one for each column."""
    found = [(one.end(), number(one[0])) for one in re.finditer(r"\S+", text[start:])]
    numbers = [(start + end, value) for end, value in found if value is not None]
    places = [(end - base + _WIDTH - 1) // _WIDTH - 1 for end, _ in numbers]
    exact = all((end - base) % _WIDTH == 0 for end, _ in numbers)
    if exact and len(set(places)) == len(places) and all(0 <= place < len(_COLUMNS) for place in places):
        return [(place, value) for place, (_, value) in zip(places, numbers, strict=True)]
    if len(numbers) == len(_COLUMNS):
        return [(place, value) for place, (_, value) in enumerate(numbers)]
    return []


def _sums(source: Source, command: list[str]) -> list[Cell]:
    cells = []
    record, total = size(option(command, "-r")), size(option(command, "-s"))
    for line, text in enumerate(source.lines, 1):
        if each := _EACH.search(text):
            factor = _BYTES.get(each[3].lower(), 1 << 10)
            total, record = int(each[1]) * factor, int(each[2]) * factor
        found = _CHILDREN.match(text)
        factor = _BYTES.get(found[4].lower(), 0) if found else 0
        value = number(found[3]) if found else None
        kind = _KINDS.get(found[2].lower()) if found else None
        if found is None or value is None or kind is None or not factor:
            continue
        processes = whole(found[1]) or 1
        volume = (total or 0) * processes
        cells.append(
            _cell(
                source,
                line,
                (kind[1], kind[0]),
                value * factor / 1024,
                (volume, record, processes),
                Unit.BYTES_PER_S,
                command,
            )
        )
    return cells


def _cell(
    source: Source,
    line: int,
    kind: tuple[str, str],
    value: float,
    shape: tuple[int, int | None, int],
    unit: Unit,
    command: list[str],
) -> Cell:
    """VALUE is in KiB/s or operations/s; SHAPE is volume, record and processes."""
    pattern, operation = kind
    volume, record, processes = shape
    cached, reason = of_iozone(operation, command)
    return Cell(
        test="iozone",
        operation=operation,
        size_bytes=record,
        processes=processes,
        nodes=1,
        value=value * 1024 if unit is Unit.BYTES_PER_S else value,
        unit=unit,
        repeats=1,
        spread=None,
        cache=cached,
        cache_reason=reason,
        variant={"pattern": pattern, **({"file_bytes": str(volume // processes)} if volume else {})},
        volume_bytes=volume or None,
        source=source.at(line),
    )


READER = Reader("iozone", "iozone: text", sniff, read)
