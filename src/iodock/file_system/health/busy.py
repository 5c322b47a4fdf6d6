"""Summarises what other programs did on the machine while a cell was measured, and decides whether their load
was high."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iodock.file_system.health.measurements import Cell, Load, Unit, User

HIGH_CPU_SHARE = 0.15
"""If other programs used at least this share of all processors' time, values may be lower than the file
system's own."""
HIGH_STEAL_SHARE = 0.05
HIGH_IO_SHARE = 0.2
"""If another program moved at least this share of the cell's own bytes per second, its I/O counts as high."""
_HIGH_IO_BYTES_PER_S = 10 << 20
"""For a cell that transfers no data, other I/O counts as high from this rate on, in bytes per second."""
_NAMED = 3


def load_of(several: Sequence[Mapping[str, Any]]) -> Load | None:
    """Combines the load that crates/iodock-load/src/busy.rs reported for each repeat of a cell. Each number
    is the largest of any repeat. Returns None if there are no repeats."""
    if not several:
        return None
    return Load(
        load_average=_most(several, "load_average"),
        others_cpu_share=_most(several, "others_cpu_share"),
        steal_share=_most(several, "steal_share"),
        by_cpu=_users(several, "by_cpu", "processors"),
        by_io=_users(several, "by_io", "bytes_per_s"),
    )


def _most(several: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return max((one[name] for one in several if one.get(name) is not None), default=None)


def _users(several: Sequence[Mapping[str, Any]], name: str, amount: str) -> tuple[User, ...] | None:
    known = [one[name] for one in several if one.get(name) is not None]
    if not known:
        return None
    most: dict[str, float] = {}
    for users in known:
        for user in users:
            most[user["name"]] = max(most.get(user["name"], 0.0), user[amount])
    ordered = sorted(most.items(), key=lambda one: (-one[1], one[0]))
    return tuple(User(program, value) for program, value in ordered[:_NAMED])


def high_io(cell: Cell) -> User | None:
    """Returns the other program that moved most data during the cell, if it moved enough to disturb the
    measurement. Returns None otherwise."""
    first = next(iter((cell.load and cell.load.by_io) or ()), None)
    if first is None:
        return None
    moves = cell.unit is Unit.BYTES_PER_S
    least = HIGH_IO_SHARE * cell.value if moves else _HIGH_IO_BYTES_PER_S
    return first if first.amount >= least else None


def high_cpu(cell: Cell) -> float | None:
    """Returns the share of all processors' time that other programs used, or None if it was below
    HIGH_CPU_SHARE or is not known."""
    share = cell.load.others_cpu_share if cell.load else None
    return share if share is not None and share >= HIGH_CPU_SHARE else None


def high_steal(cell: Cell) -> float | None:
    """Returns the share of all processors' time that other virtual machines used, or None if it was below
    HIGH_STEAL_SHARE or is not known."""
    share = cell.load.steal_share if cell.load else None
    return share if share is not None and share >= HIGH_STEAL_SHARE else None


def is_high(cell: Cell) -> bool:
    """Returns whether the load of other programs or virtual machines was high while the cell was measured."""
    return high_cpu(cell) is not None or high_steal(cell) is not None or high_io(cell) is not None
