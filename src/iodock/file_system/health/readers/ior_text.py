"""Reads IOR's text and CSV.

The versions differ: in 2.10, rows end in `EXCEL`. Since 3.0 each iteration has a row. Version 4.1 no longer
prints `Max Write:`.
"""

from __future__ import annotations

import re

from iodock.file_system.health.readers.base import Source, duration, number, whole
from iodock.file_system.health.readers.ior_rows import MIB, Result, Row, Run, spread_of_population
from iodock.shared.bounded.doubts import CUT_ROW

_HEAD = {
    "Began": "began",
    "Run began": "began",
    "Finished": "finished",
    "Run finished": "finished",
    "Command line": "command",
    "Command line used": "command",
    "Machine": "machine",
}
_MEMBER = re.compile(r"^\s*([A-Za-z][A-Za-z ]*?)\s*[:=](?:\s+|$)(.*?)\s*$")
_SETTINGS = frozenset(
    (
        *("api", "test filename", "access", "type", "segments", "ordering in a file", "ordering inter file"),
        *("nodes", "tasks", "clients", "clients per node", "repetitions", "xfersize", "blocksize"),
        *("aggregate filesize", "stonewallingTime", "Lustre stripe size", "stripe count"),
    )
)
_ROW_FIELDS = 6
"""A row of results has at least this number of fields."""
_OPERATIONS = ("write", "read", "remove")


def read_text(source: Source) -> Result:
    """Reads all tests in a file. The file may contain the output of several commands."""
    result = Result()
    columns: list[str] = []
    for at, line in enumerate(source.lines, 1):
        fields = line.split()
        if fields[:2] == ["access", "bw(MiB/s)"] or fields[:2] == ["Operation", "Max"] or _summary(fields):
            columns = fields
        elif fields and fields[0] in _OPERATIONS and columns and result.runs:
            _row(fields, columns, at, result.runs[-1], source)
        elif len(fields) >= _ROW_FIELDS and fields[0] in _OPERATIONS and number(fields[1]) is not None:
            # The header of the test to which this row belongs is damaged or missing.
            source.doubts.count(CUT_ROW, f"ior {fields[0]}", source.at(at))
        elif found := _MEMBER.match(line):
            _member(found[1], found[2], result)
    return result


def _summary(fields: list[str]) -> bool:
    return bool(fields) and fields[0] == "Operation" and fields[1:2] == ["Max(MiB)"]


def _member(name: str, value: str, result: Result) -> None:
    if _HEAD.get(name) == "command":
        result.commanded(value)
    elif name in _HEAD:
        if _HEAD[name] == "began":
            # This line starts the output of another command. Its command line may be missing.
            result.last_command = None
        setattr(result, _HEAD[name], getattr(result, _HEAD[name]) or value)
    elif name == "api":
        # Each test begins with the setting `api`.
        result.test({name: value})
    elif name in _SETTINGS and result.runs:
        result.runs[-1].settings.setdefault(name, value)


def _row(fields: list[str], columns: list[str], line: int, run: Run, source: Source) -> None:
    if columns[0] == "access":
        if len(fields) == len(columns):
            run.rows.append(_iteration(dict(zip(columns, fields, strict=True)), line, source))
        elif len(fields) == 1 or number(fields[1]) is not None:
            source.doubts.count(CUT_ROW, f"ior {fields[0]}", source.at(line))
        return
    # The summary at the end repeats the values of the iterations. It is used only if there are no rows of
    # iterations, as in old versions.
    if any(not row.of_all for row in run.rows):
        return
    most, least, _, deviation = (number(one) for one in (*fields[1:5], *(4 * [None]))[:4])
    mean = source.rate((*fields[3:4], None)[0], line, f"ior {fields[0]}")
    if mean is None:
        return
    count = whole(run.settings.get("repetitions"))
    run.rows.append(
        Row(
            fields[0],
            line,
            mean * MIB,
            minimum=None if least is None else least * MIB,
            maximum=None if most is None else most * MIB,
            spread=spread_of_population(deviation, mean, count),
            of_all=True,
        )
    )


def _iteration(row: dict[str, str], line: int, source: Source) -> Row:
    bandwidth = source.rate(row["bw(MiB/s)"], line, f"ior {row['access']}")
    transfer = number(row.get("xfer(KiB)"))
    return Row(
        row["access"],
        line,
        None if bandwidth is None else bandwidth * MIB,
        seconds=duration(row.get("total(s)")),
        size_bytes=None if transfer is None else round(transfer * 1024),
        processes=whole(row.get("numTasks")) or None,
    )


def read_csv(source: Source) -> Result:
    """Reads the rows of `-O summaryFormat=CSV`. They do not contain the settings of the test."""
    columns = source.lines[0].split(",")
    run = Run()
    for line, text in enumerate(source.lines[1:], 2):
        fields = text.split(",")
        if fields[0] in _OPERATIONS and len(fields) == len(columns):
            run.rows.append(_iteration(dict(zip(columns, fields, strict=True)), line, source))
        elif text.strip():
            source.doubts.count(CUT_ROW, f"ior {fields[0][:20]}", source.at(line))
    return Result(runs=_by_size(run))


def _by_size(run: Run) -> list[Run]:
    """Separates the rows of several tests in one CSV. The tests are distinguished by transfer size and number
    of tasks."""
    runs: dict[tuple[int | None, int | None], Run] = {}
    for row in run.rows:
        runs.setdefault((row.size_bytes, row.processes), Run()).rows.append(row)
    return list(runs.values())
