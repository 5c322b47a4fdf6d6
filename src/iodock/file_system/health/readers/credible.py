"""Rejects numbers that no benchmark can have measured. All readers use this check.

A faulty benchmark may print a date as a duration, 0 as a rate, `nan`, or an overflowed counter. Such a value
is left out, and counted with its reason and first position. The limits are far above those of any file
system, so that no real measurement is rejected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from iodock.file_system.health.measurements import Cell, Latency, Unit
from iodock.shared.bounded.doubts import (
    DATE,
    MOST_BYTES_PER_S,
    MOST_OPERATIONS_PER_S,
    MOST_SECONDS,
    NO_NUMBER,
    TOO_FAST,
    Doubts,
)
from iodock.shared.units import number_text

MOST_WHOLE = (1 << 63) - 1
MOST_PROCESSES = 1 << 31
TOO_LARGE = "too large, or not a number"
_RATES = (Unit.BYTES_PER_S, Unit.OPERATIONS_PER_S)


class Fault(NamedTuple):
    """An impossible value and the reason why it is impossible."""

    value: str
    why: str


def _as_there(value: float, digits: int = 3) -> str:
    """Formats a number without thousands separators. The message then shows it as the file does, and users
    can search for it there."""
    return number_text(value, digits).replace(",", "")


def credible_cells(cells: Iterable[Cell], doubts: Doubts) -> tuple[Cell, ...]:
    """Returns the cells whose values are possible."""
    return tuple(one for cell in cells if (one := credible_cell(cell, doubts)) is not None)


def credible_cell(cell: Cell, doubts: Doubts) -> Cell | None:
    """Returns CELL with impossible fields set to None. Returns None if the value itself is impossible."""
    fault = fault_of(cell.value, cell.unit, cell.seconds)
    if fault is not None:
        doubts.count(fault.why, f"{cell.test} {cell.operation} {fault.value}", cell.source)
        return None
    return _trimmed(cell, doubts)


def fault_of(value: float, unit: Unit, seconds: float | None = None) -> Fault | None:
    """Returns the reason why a value is impossible, or None if it is possible. SECONDS is the time that the
    measurement took."""
    if seconds is not None and not 0 <= seconds < MOST_SECONDS:
        why = DATE if seconds >= MOST_SECONDS else "a duration below 0, or not a number"
        return Fault(f"{_as_there(seconds, 12)} s", f"{why}, so its rate is wrong too")
    if not math.isfinite(value) or value < 0:
        return Fault(f"{_as_there(value, 6)}", NO_NUMBER)
    if unit is Unit.SECONDS and value >= MOST_SECONDS:
        return Fault(f"{_as_there(value, 12)} s", DATE)
    if unit in _RATES and value == 0:
        return Fault("0", "a rate of 0: nothing was measured, or too little for the printed digits")
    most = {Unit.BYTES_PER_S: MOST_BYTES_PER_S, Unit.OPERATIONS_PER_S: MOST_OPERATIONS_PER_S}.get(unit)
    if most is not None and value > most:
        return Fault(f"{_as_there(value)}/s", TOO_FAST)
    return None


def _trimmed(cell: Cell, doubts: Doubts) -> Cell:
    """Returns CELL with impossible fields set to None. The caller has already checked the value itself."""
    wrong = [name for name in ("minimum", "maximum") if _is_wrong_rate(getattr(cell, name), cell.unit)]
    wrong += [name for name in ("volume_bytes", "size_bytes") if (getattr(cell, name) or 0) > MOST_WHOLE]
    wrong += [name for name in ("processes", "nodes") if (getattr(cell, name) or 0) > MOST_PROCESSES]
    wrong += ["spread"] if cell.spread is not None and not math.isfinite(cell.spread) else []
    for name in wrong:
        what = f"{cell.test} {cell.operation}: {name} {_as_there(getattr(cell, name), 6)}"
        doubts.count(TOO_LARGE, what, cell.source)
    unknown: dict[str, Any] = dict.fromkeys(wrong)
    latency = _credible_latency(cell, doubts)
    if latency is not cell.latency_ns:
        unknown["latency_ns"] = latency
    return replace(cell, **unknown) if unknown else cell


def _is_wrong_rate(value: float | None, unit: Unit) -> bool:
    # A minimum of 0 is possible: it means that a repeat ended without a result.
    return value is not None and value != 0 and fault_of(value, unit) is not None


def _credible_latency(cell: Cell, doubts: Doubts) -> Latency | None:
    latency = cell.latency_ns
    if latency is None:
        return None
    wrong = [
        name
        for name in ("p50", "p99", "p99_9", "max", "min", "mean")
        if (time := getattr(latency, name)) is not None and not 0 <= time < MOST_SECONDS * 1e9
    ]
    wrong += ["count"] if (latency.count or 0) > MOST_WHOLE else []
    for name in wrong:
        what = f"{cell.test} {cell.operation}: latency {name} {_as_there(getattr(latency, name), 6)}"
        doubts.count(TOO_LARGE, what, cell.source)
    unknown: dict[str, Any] = dict.fromkeys(wrong)
    return replace(latency, **unknown) if unknown else latency
