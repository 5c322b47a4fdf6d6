"""Reads results of IOzone 3: the table of its automatic mode, the sums of its throughput mode (`-t`), and its
reports (`-R`).

Source: iozone.c. `kB` is 1024 bytes, and with `-O` all numbers are operations per second. In throughput mode
the sum of the children's rates is used, in which each child counts its own time. Results that IOzone itself
reports as wrong are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from iodock.file_system.health.measurements import Cell, Json, MeasurementError, Measurements, Protocol, Unit
from iodock.file_system.health.readers import iozone_table
from iodock.file_system.health.readers.base import (
    CTIME,
    Reader,
    Repeats,
    Source,
    date,
    option,
    several_commands,
    size,
    whole,
)
from iodock.file_system.health.readers.caching import flags, of_iozone
from iodock.file_system.health.readers.iozone_table import COLUMNS, Run

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
_CHILDREN = re.compile(
    r"^.*?Children see throughput for\s+(\d{1,9})\s+(.*?)\s*=\s*(\S+)\s*(\w+)/sec", re.IGNORECASE
)
_EACH = re.compile(r"Each (?:process|thread) writes a (\d+) \w+ file in (\d+) (\w+) records", re.IGNORECASE)
_OPERATIONS = re.compile(
    r"[ \t]*OPS Mode\b|[ \t]*\"?Output is in op(?:s|erations)\b|.*Children see .* ops/sec", re.IGNORECASE
)
_MICROSECONDS = re.compile(
    r"^[ \t]*(?:Output is in microseconds|Microseconds/op)", re.MULTILINE | re.IGNORECASE
)
_ERROR = re.compile(
    r"(?:^\s*(?P<own>(?:Can ?not|Can't|Unable to|Error\b|Failed|Not enough|Out of memory|Invalid"
    r"|iozone: interrupted|\*\*\*)(?!.*throughput for).*)"
    r"|^(?P<system>[^\n]{0,300}?: (?:No such|No space left|Permission denied|Input/output error"
    r"|Read-only file|Disk quota|Stale |Invalid argument|File too large|Too many|Transport endpoint"
    r"|Connection |Interrupted|Bad file|Is a directory|Not a directory|Device or resource|Resource temp"
    r"|Operation not|Cannot allocate|Remote I/O|no mount point).*))$"
)
_TOO_QUICK = "The test completed too quickly to give a good result"
_POOR = re.compile(r"reported inaccurate results\. Sizes (\d{1,15}) [kK]Bytes and below")
_BANNER = "Iozone: Performance Test of File I/O"
_COMMAND = re.compile(r"^\s*Command line used: *(.*)$")
_END = "iozone test complete."
_NONE_MOVED = re.compile(r"^\s*Min throughput per (?:process|thread)\s*=\s*0\.0+\s")
_BYTES = {"kb": 1 << 10, "kbytes": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "bytes": 1, "b": 1}
_HINT = "run `iozone -a` or `iozone -t N -s SIZE -r SIZE`, and keep its complete output"


def sniff(source: Source) -> float:
    """Returns a high certainty if the file contains IOzone's banner, the heading of its table, the heading of
    a report, or a sum over children."""
    start = source.start
    if _BANNER in start:
        return 0.95
    if any(iozone_table.is_head(line) for line in source.first_lines(200)):
        return 0.8
    if re.search(r'^"Writer report"\s*$|^"Reader report"\s*$', start, re.MULTILINE):
        return 0.7
    return 0.8 if _CHILDREN.search(start) else 0.0


def read(source: Source) -> Measurements:
    """Makes a cell for each test, file size and record size. Raises MeasurementError if the file contains no
    rate."""
    if found := _MICROSECONDS.search(source.text):
        line = source.line_of(found.start())
        what = "contains whole microseconds per operation (-N), from which no rate can be computed"
        raise source.wrong(line, what, "run iozone without -N")
    runs = _runs(source)
    errors = _errors(source)
    invalid = _invalid(source, errors)
    repeats = Repeats(source.doubts)
    for run in runs:
        rates = iozone_table.rows(source, run, invalid)
        found_cells = [*_rates(source, rates, run), *_sums(source, run, invalid)]
        for cell in found_cells or _rates(source, iozone_table.reports(source, run), run):
            repeats.add(cell)
    cells = repeats.cells()
    if not cells:
        raise _nothing(source, errors)
    return Measurements(_protocol(source, runs, _notes(source, runs, errors)), cells)


def _runs(source: Source) -> list[Run]:
    """Splits a file into runs. Each run begins with IOzone's banner, or with its command line if the banner
    is missing."""
    found = [Run()]
    for line, text in enumerate(source.lines, 1):
        command = _COMMAND.match(text)
        if _BANNER in text or (command and found[-1].command_line is not None):
            found.append(Run())
        run = found[-1]
        run.lines.append((line, text))
        if command:
            run.command_line = command[1].strip()
        elif _OPERATIONS.match(text):
            run.counts_operations = True
    return found


def _errors(source: Source) -> dict[int, str]:
    """Returns error messages of IOzone and of the system, by line number."""
    found: dict[int, str] = {}
    for line, text in enumerate(source.lines, 1):
        if len(text) < 1000 and (error := _ERROR.match(text)):
            found[line] = (error["own"] or error["system"]).strip()
        elif text.startswith(_TOO_QUICK):
            found[line] = text.strip()
    return found


def _invalid(source: Source, errors: dict[int, str]) -> set[int]:
    """Returns the line numbers of invalid results: a row before an error message, a sum after error messages
    of children, and a row at the end of a file without a final line break, because it may be truncated."""
    found: set[int] = set()
    failed: str | None = None
    last = 0
    for line, text in enumerate(source.lines, 1):
        if line in errors:
            failed = errors[line]
            if iozone_table.is_row(text):
                last = line
            if last:
                found.add(last)
        elif iozone_table.is_row(text):
            last, failed = line, None
        elif _CHILDREN.match(text):
            if failed is not None:
                found.add(line)
            last, failed = 0, None
        elif text.strip():
            last = 0
    ended = source.lines[-1]
    if iozone_table.is_row(ended):
        found.add(len(source.lines))
    for line in sorted(found):
        why = "iozone reported an error in this row, or the row is truncated"
        source.doubts.count(why, f"iozone {source.lines[line - 1].strip()[:60]}", source.at(line))
    return found


def _nothing(source: Source, errors: dict[int, str]) -> MeasurementError:
    for line, said in errors.items():
        # The reader reports IOzone's own error message. Without this line, the caller would report the rows
        # that were left out instead.
        source.doubts.counts.clear()
        return source.wrong(
            line, f"iozone stopped: {said}", "correct the reported problem, and run the benchmark again"
        )
    return source.wrong(len(source.lines), "contains no rate of iozone", _HINT)


def _notes(source: Source, runs: list[Run], errors: dict[int, str]) -> list[str]:
    notes = several_commands(run.command_line for run in runs)
    if any(run.counts_operations for run in runs):
        notes.append("operations per second (-O), no bytes")
    notes += [f"{source.at(line)}: iozone: {said}" for line, said in list(errors.items())[:3]]
    if poor := _POOR.search(source.text):
        notes.append(
            f"iozone calls rates of files of {poor[1]} KiB and less inaccurate: its timer is too coarse"
        )
    begun, ended = source.text.count(_BANNER), source.text.count(_END)
    if begun == 1 and not ended:
        notes.append(f"the output ends without `{_END}`: the run did not end, or the copy is truncated")
    elif begun > ended:
        notes.append(
            f"runs without `{_END}`, which did not end or are truncated: {begun - ended:,} of {begun:,}"
        )
    if idle := sum(1 for text in source.lines if _NONE_MOVED.match(text)):
        notes.append(f"sums in which a process moved nothing (Min throughput 0): {idle:,}")
    return notes


def _member(source: Source, name: str) -> str | None:
    found = re.search(rf"^\s*{name}: *(.*)$", source.text, re.MULTILINE)
    return found[1].strip() if found else None


def _protocol(source: Source, runs: list[Run], notes: list[str]) -> Protocol:
    first = next((run for run in runs if run.command_line is not None), runs[0])
    command = first.command
    version = re.search(r"Version \$Revision: (\S+) \$", source.text)
    given = flags(command, "JjkVrtsfFdluUSLHPibXYgnyq+")
    settings: dict[str, Json] = {"fsync_in_time": "e" in given, "close_in_time": "c" in given}
    return Protocol(
        tool="iozone",
        version=version[1] if version else None,
        started=date(_member(source, "Run began"), CTIME),
        target=option(command, "-f"),
        command=first.command_line,
        settings=settings if command else {},
        notes=tuple(notes),
    )


def _rates(source: Source, rates: Iterable[iozone_table.Rate], run: Run) -> list[Cell]:
    cells = []
    unit = Unit.OPERATIONS_PER_S if run.counts_operations else Unit.BYTES_PER_S
    for one in rates:
        operation, pattern = COLUMNS[one.column]
        what = f"iozone {pattern} {operation}"
        if one.record_bytes > one.file_bytes:
            source.doubts.count("the record is larger than the file", what, source.at(one.line))
            continue
        value = source.rate(one.text, one.line, what)
        if value is not None:
            shape = (one.file_bytes, one.record_bytes, 1)
            cells.append(_cell(source, one.line, (pattern, operation), value, shape, unit, run.command))
    return cells


def _sums(source: Source, run: Run, invalid: set[int]) -> list[Cell]:
    cells = []
    command = run.command
    record, total = iozone_table.record_size(command), size(option(command, "-s"))
    for line, text in run.lines:
        if each := _EACH.search(text):
            factor = _BYTES.get(each[3].lower(), 1 << 10)
            total, record = int(each[1]) * factor, int(each[2]) * factor
        found = _CHILDREN.match(text)
        if found is None or line in invalid:
            continue
        value = source.rate(found[3], line, f"iozone {found[2]}")
        counts = found[4].lower() == "ops"
        factor, kind = _BYTES.get(found[4].lower(), 0), _KINDS.get(found[2].strip().lower())
        if kind is None or not (factor or counts):
            why = "an unknown test or unit"
            source.doubts.count(why, f"iozone {found[2]} ({found[4]}/sec)", source.at(line))
        elif value is not None:
            processes = whole(found[1]) or 1
            shape = ((total or 0) * processes, record, processes)
            unit = Unit.OPERATIONS_PER_S if counts else Unit.BYTES_PER_S
            rate = value if counts else value * factor / 1024
            cells.append(_cell(source, line, (kind[1], kind[0]), rate, shape, unit, command))
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
    """Makes a cell. VALUE is in KiB/s or operations/s. SHAPE consists of the volume in bytes, the record size
    in bytes, and the number of processes."""
    pattern, operation = kind
    volume, record, processes = shape
    cached, reason = of_iozone(operation, command)
    return Cell(
        test="iozone",
        operation=operation,
        size_bytes=record,
        processes=processes,
        # With -+m the children run on several nodes, but the output does not contain their number.
        nodes=None if "-+m" in command else 1,
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


READER = Reader("iozone", "iozone: text, reports of -R", sniff, read)
