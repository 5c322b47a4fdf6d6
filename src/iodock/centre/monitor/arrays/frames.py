"""Converts the readings of an array to frames, in the form in which an agent pushes data. Their counters
begin at 0 and only grow."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

from iodock.centre.monitor.arrays.mapping import Declared, Mapped
from iodock.centre.monitor.arrays.readings import SECOND, Reading, Value, readings
from iodock.shared.bounded.doubts import MOST_BYTES_PER_S, MOST_OPERATIONS_PER_S, TOO_FAST, Doubts
from iodock.shared.errors import RequestError
from iodock.shared.units import number_text

SOURCE = "array"
RESTARTED = "a counter became smaller: it restarted, and its counts in between are lost"
_LONGEST = 3
"""A rate per second is not extended over a gap that is longer than this multiple of the usual interval."""
_WRAP = float(1 << 32)
_MOST_PER_S = {"bytes": MOST_BYTES_PER_S, "count": MOST_OPERATIONS_PER_S, "time": 1e12, "level": 1e15}

Key = tuple[str, str, str]
"""Identifies a counter by target, operation and quantity."""


@dataclass
class _State:
    grown: dict[Key, float] = field(default_factory=dict)
    levels: dict[Key, float] = field(default_factory=dict)
    last: dict[Key, float] = field(default_factory=dict)
    """Values of all counters after the readings so far."""


@dataclass(frozen=True)
class Imported:
    """The frames made from one file."""

    host: str
    frames: list[bytes]
    begin: int
    end: int
    readings: int
    notes: tuple[str, ...]


def imported(path: Path, mapped: Mapped) -> Imported:
    """Makes frames from a file. If the file has grown since an earlier import, its first frames are the same
    as before, so the collector recognizes them and counts nothing twice. Raises RequestError."""
    from iodock import _native

    doubts = Doubts()
    found = readings(path, mapped, doubts)
    interval = _interval(path, found)
    began = found[0].at - interval
    if began < 0:
        raise RequestError(f"{path}: the times are before 1970", "check [time] of the map")
    state = _State()
    # The first batch has all counters of the file with the value 0, including those that appear only in later
    # readings, because the growth of a counter is known only relative to an earlier value.
    for one in found:
        for value in one.values:
            if value[0].kind != "level":
                state.grown.setdefault(_key(value), 0.0)
    batches = [(began, _parts(state, mapped))]
    before = began
    for one in found:
        state.levels.clear()
        seconds = min(one.at - before, _LONGEST * interval) / SECOND
        for value in one.values:
            _take(state, value, seconds, one, doubts)
        batches.append((one.at, _parts(state, mapped)))
        before = one.at
    spool = hashlib.sha256(f"array {mapped.host} {began} {sorted(state.grown)}".encode()).digest()[:16]
    frames = [
        _native.monitor_frame(spool, number, mapped.host, at, parts)
        for number, (at, parts) in enumerate(batches, 1)
    ]
    return Imported(mapped.host, frames, found[0].at, found[-1].at, len(found), tuple(doubts.notes()))


def _interval(path: Path, found: Sequence[Reading]) -> int:
    if len(found) < 2:
        raise RequestError(
            f"{path}: contains only one reading", "growth needs two or more: import a longer file"
        )
    return int(median(later.at - one.at for one, later in pairwise(found)))


def _key(value: Value) -> Key:
    return (value[1], *value[0].metric)


def _take(state: _State, value: Value, seconds: float, one: Reading, doubts: Doubts) -> None:
    declared, _, said, wraps = value
    key = _key(value)
    if declared.kind == "level":
        state.levels[key] = said
        return
    growth = _growth(state, declared, key, (said, wraps), seconds, one, doubts)
    if growth > _MOST_PER_S[key[2]] * max(seconds, 1.0):
        doubts.count(TOO_FAST, f"{declared.name} {number_text(growth, 6)}", one.where)
        growth = 0.0
    state.grown[key] += growth


def _growth(
    state: _State, declared: Declared, key: Key, said: tuple[float, bool], seconds: float, one: Reading,
    doubts: Doubts,
) -> float:  # fmt: skip
    value, wraps = said
    if declared.kind == "rate":
        return value * seconds
    if declared.kind == "sum":
        return value
    before, state.last[key] = state.last.get(key, value), value
    if value >= before:
        return value - before
    over = value + _WRAP * declared.factor - before
    # A 32-bit counter that became smaller overflowed if it was in the upper half of its range before.
    # Otherwise the array was restarted and reset it.
    if wraps and before >= _WRAP * declared.factor / 2:
        return over
    doubts.count(
        RESTARTED, f"{declared.name} from {number_text(before, 6)} to {number_text(value, 6)}", one.where
    )
    return 0.0


def _parts(state: _State, mapped: Mapped) -> list[tuple[str, str, list[tuple[str, str, int]]]]:
    """Lists the counters and levels of each target. The target is written as FILE_SYSTEM/TARGET, because
    frames have no separate field for the file system."""
    by_target: dict[str, list[tuple[str, str, int]]] = {}
    for values in (state.grown, state.levels):
        for (target, operation, quantity), value in values.items():
            by_target.setdefault(target, []).append((operation, quantity, round(value)))
    return [(SOURCE, f"{mapped.file_system}/{target}", values) for target, values in by_target.items()]
