"""Parses the lines of a CSV file, or the output of SNMP tools, to readings. A reading has the values of all
counters at one time."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from iodock.centre.monitor.arrays.mapping import Declared, Mapped
from iodock.shared.bounded import files
from iodock.shared.bounded.doubts import CUT_ROW, NO_NUMBER, Doubts
from iodock.shared.bounded.limits import COUNTERS
from iodock.shared.errors import RequestError

SECOND = 1_000_000_000
NO_TIME = "a line without its time: check [time] of the map"
NO_TARGET = "a line without its target: check target_column of the map"
NO_OBJECT = "a line that is neither a time nor OID = TYPE: VALUE"
BEFORE_TIME = "a value before the first time: print date +%s before each snmpwalk"
_NUMBER = re.compile(r"\s*-?[0-9][0-9,]*(\.[0-9]+)?\s*%?\s*")
_OBJECT = re.compile(r"(\S+) = (?:([A-Za-z][\w-]*(?: \w+)?): ?)?(.*)")
_MOST_S = 1 << 33
"""Latest accepted time, since 1970."""

Value = tuple[Declared, str, float, bool]
"""A counter, its target, the value in the counter's unit, and whether the counter wraps at 32 bits."""


@dataclass
class Reading:
    """All values that were read at one time."""

    at: int
    """Time of the reading, ns since the epoch."""
    values: list[Value] = field(default_factory=list)
    where: str = ""


def readings(path: Path, mapped: Mapped, doubts: Doubts) -> list[Reading]:
    """Reads a file and sorts its readings by time. Invalid values are counted in DOUBTS. Raises RequestError
    if no reading is valid."""
    try:
        content = files.text(path, COUNTERS)
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise RequestError(f"{path}: {error}", "give it as UTF-8 text") from error
    lines = content.replace("\0", "\ufffd").splitlines()
    read = _of_csv if mapped.form == "csv" else _of_snmp
    by_moment: dict[int, Reading] = {}
    for one in read(path, lines, mapped, doubts):
        by_moment.setdefault(one.at, Reading(one.at, where=one.where)).values.extend(one.values)
    found = [by_moment[at] for at in sorted(by_moment) if by_moment[at].values]
    if not found:
        why = next(iter(doubts.notes()), "no line contains a counter of the map")
        raise RequestError(f"{path}: nothing to import: {why}", f"compare it with {mapped.path}")
    return found


def _of_csv(path: Path, lines: list[str], mapped: Mapped, doubts: Doubts) -> Iterator[Reading]:
    """Yields a reading for each line of CSV. Lines before the line with the column names are skipped."""
    rows = csv.reader(lines, delimiter=mapped.delimiter)
    names: list[str] = []
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not names:
                names = [cell.lstrip("\ufeff") for cell in cells] if _is_head(cells, mapped) else []
                if names:
                    _check_columns(path, rows.line_num, names, mapped)
            elif any(cells):
                where = f"{path}:{rows.line_num}"
                if len(cells) != len(names):
                    doubts.count(CUT_ROW, f"{len(cells)} cells under {len(names)} columns", where)
                    continue
                yield from _of_row(dict(zip(names, cells, strict=True)), where, mapped, doubts)
    except csv.Error as error:
        doubts.count(CUT_ROW, str(error), f"{path}:{rows.line_num}")
    if not names:
        raise RequestError(
            f"{path}: no line has a column {mapped.time_column!r}",
            f"check [time] and delimiter of {mapped.path}",
        )


def _is_head(cells: list[str], mapped: Mapped) -> bool:
    return mapped.time_column in [cell.lstrip("\ufeff") for cell in cells]


def _check_columns(path: Path, line: int, names: list[str], mapped: Mapped) -> None:
    for one in mapped.counters:
        for column in (one.name, one.target_column):
            if column is not None and column not in names:
                raise RequestError(
                    f"{path}:{line}: no column {column!r}", f"columns: {', '.join(names)[:200]}"
                )


def _of_row(row: dict[str, str], where: str, mapped: Mapped, doubts: Doubts) -> Iterator[Reading]:
    at = moment(row[mapped.time_column], mapped)
    if at is None:
        doubts.count(NO_TIME, repr(row[mapped.time_column][:40]), where)
        return
    found = Reading(at, where=where)
    for one in mapped.counters:
        said = row[one.target_column] if one.target_column else one.target
        target = mapped.targets.get(said or "", said or "")
        if not target or "/" in target:
            doubts.count(NO_TARGET, repr(target[:40]), where)
        elif row[one.name] != "":
            # An empty cell means that the value is unknown. It is skipped and not counted as an error.
            value = _number(row[one.name], one.name, where, doubts)
            if value is not None:
                found.values.append((one, target, value * one.factor, False))
    yield found


def _of_snmp(path: Path, lines: list[str], mapped: Mapped, doubts: Doubts) -> Iterator[Reading]:
    """Yields the readings in the output of SNMP tools. Each reading begins with a line that contains only a
    time. Lines with objects that the site did not declare are ignored."""
    found: Reading | None = None
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        text = line.strip()
        if not text:
            continue
        if (at := moment(text.lstrip("# "), mapped)) is not None:
            if found:
                yield found
            found = Reading(at, where=where)
        elif not (parts := _OBJECT.fullmatch(text)):
            doubts.count(NO_OBJECT, repr(text[:40]), where)
        elif (declared := _declared(parts[1], mapped)) is None:
            continue
        elif found is None:
            doubts.count(BEFORE_TIME, parts[1][:40], where)
        else:
            one, target = declared
            value = _number(parts[3].strip('"').partition(" ")[0], parts[1], where, doubts)
            if value is not None:
                found.values.append((one, target, value * one.factor, parts[2] == "Counter32"))
    if found:
        yield found


def _declared(name: str, mapped: Mapped) -> tuple[Declared, str] | None:
    """Returns the declared counter for an object identifier, and its target. The target is the declared one,
    or the rest of the identifier (its index), or the name that the map gives to this index. Returns None if
    no counter is declared for the identifier."""
    for one in mapped.counters:
        if name == one.name or name.startswith(f"{one.name}."):
            index = name[len(one.name) :].strip(".").strip('"')
            target = one.target or mapped.targets.get(index, index) or "0"
            return None if "/" in target else (one, target)
    return None


def _number(said: str, name: str, where: str, doubts: Doubts) -> float | None:
    if not _NUMBER.fullmatch(said) or said.lstrip().startswith("-"):
        doubts.count(NO_NUMBER, f"{name} {said[:40]!r}", where)
        return None
    return float(said.strip().rstrip("% ").replace(",", ""))


def moment(said: str, mapped: Mapped) -> int | None:
    """Parses a time and returns it in ns since the epoch, or None if the text is not a time."""
    try:
        if mapped.time_form is not None:
            found = datetime.strptime(said, mapped.time_form)
        elif re.fullmatch(r"[0-9]{9,11}(\.[0-9]+)?", said):
            return round(float(said) * SECOND)
        else:
            found = datetime.fromisoformat(said)
        if found.tzinfo is None:
            found = found.replace(tzinfo=mapped.zone or UTC)
        seconds = found.timestamp()
    except (ValueError, OverflowError):
        return None
    return round(seconds * SECOND) if 0 < seconds < _MOST_S else None
