"""Compares two check-ups of one file system. The comparison reports changes that exceed the spread, and lists
cells that it can't compare.

Two cells form a pair if they have the same test, operation, unit, size, processes, nodes and variant. Repeats
of one run show how values vary within minutes, not from day to day. The error of an operation's change is
therefore the larger of two errors: the one from the spread of repeats, and the one from the differences
between cells. If the changes of the cells differ by more than a limit, the difference is not due to chance:
the cells really changed by different amounts. The second error is then computed from the limit instead.

Verdict and interval agree: an operation has changed if its interval excludes zero. The intervals are so wide
that, with a probability of 95 %, all intervals of one comparison contain the true changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev

from iodock.file_system.health.busy import is_high
from iodock.file_system.health.measurements import Cache, Cell, Measurements, Protocol
from iodock.file_system.health.remarks.curves import split
from iodock.file_system.health.remarks.noise import Noise, noise_of, t_limit
from iodock.shared.language import N_
from iodock.shared.message import Message

MARGIN = 0.05
"""A smaller change is not a regression, however certain it is."""
_CELL_MARGIN = 0.10
_BY_CHANCE = math.log(1.5)
_TIMES_REPEATS = 3.0
"""From one day to another, the changes of cells may differ by chance: by half, or by three times the spread
of their own repeats."""
_LARGE = math.log(1.3)
"""A change of this size is never dismissed as spread."""
_ENOUGH = 3
"""With fewer repeats, only a clear change is reported."""
_ALPHA = 0.05
"""Probability of a false alarm in a whole comparison."""


class Verdict(StrEnum):
    """What the comparison concludes about an operation or a cell."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    SAME = "same"
    UNSURE = "unsure"
    """The change is within the spread of single repeats, which is too large to call the results equal."""
    TOO_FEW = "too-few-repeats"
    """There may be a change, but more repeats are needed to decide."""


@dataclass(frozen=True)
class Pair:
    """One cell as measured in both check-ups, and the verdict on its change."""

    base: Cell
    now: Cell
    verdict: Verdict

    @property
    def change(self) -> float:
        """Returns the relative change: 0.1 means 10 % better, -0.1 means 10 % worse. A larger value is better
        for a rate, a smaller one for a time."""
        return math.exp(_gain(self.base, self.now)) - 1.0


@dataclass(frozen=True)
class Change:
    """The mean change of one operation of a test. The mean is taken over all cells of the operation."""

    test: str
    operation: str
    variant: tuple[tuple[str, str], ...]
    pairs: tuple[Pair, ...]
    change: float
    low: float | None
    high: float | None
    """Upper end of the interval of the true change. The confidence is 95 % for all operations together. None:
    the spread is not known."""
    verdict: Verdict


@dataclass(frozen=True)
class Incomparable:
    """Cells that were not compared, and the reason."""

    cells: tuple[Cell, ...]
    why: Message


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison: all changes, the cells that were not compared, and warnings."""

    base: Protocol
    now: Protocol
    changes: tuple[Change, ...]
    incomparable: tuple[Incomparable, ...]
    warnings: tuple[Message, ...]
    """Sentences about differences between the conditions of the two measurements."""

    @property
    def regressed(self) -> bool:
        """Returns whether the verdict on any operation or cell is a regression."""
        return any(
            change.verdict is Verdict.REGRESSION
            or any(pair.verdict is Verdict.REGRESSION for pair in change.pairs)
            for change in self.changes
        )

    @property
    def undecided(self) -> tuple[Change, ...]:
        """Returns the changes of operations whose verdict needs more repeats."""
        return tuple(change for change in self.changes if change.verdict is Verdict.TOO_FEW)


Key = tuple[object, ...]


def compare(base: Measurements, now: Measurements) -> Comparison:
    """Compares the check-up NOW with the earlier check-up BASE."""
    then, later = _keyed(base.cells), _keyed(now.cells)
    incomparable = [*_unpaired(then, later)]
    both = [(then[key], later[key]) for key in then if key in later]
    differ = [(one, other) for one, other in both if not _same_cache(one, other)]
    incomparable += _left_out(
        [one for one, _ in differ], N_("read from the cache in only one of the results")
    )
    groups = _grouped([(one, other) for one, other in both if _same_cache(one, other)])
    measured = [(group, noise) for group in groups if (noise := _noise(group)) is not None]
    known = {id(group) for group, _ in measured}
    pairs = sum(len(group) for group, _ in measured)
    changes = [_change(group, noise, len(measured), pairs) for group, noise in measured]
    changes += [_unrepeated(group) for group in groups if id(group) not in known]
    warnings = tuple(_warnings(base, now))
    return Comparison(base.protocol, now.protocol, tuple(changes), tuple(incomparable), warnings)


def _same_cache(one: Cell, other: Cell) -> bool:
    """Returns whether two cells used the cache in the same way. Older versions of iodock did not label writes
    and did not examine the layers below a file system, so a missing label matches every label, and `uncached`
    matches `maybe-cached`."""
    labels = {one.cache, other.cache}
    return len(labels) == 1 or None in labels or labels == {Cache.UNCACHED, Cache.MAYBE_CACHED}


def _keyed(cells: Sequence[Cell]) -> dict[Key, Cell]:
    """Returns the cells by the properties that identify them. If several cells have the same properties, the
    first one is kept. Cells whose value is 0 are left out."""
    keyed: dict[Key, Cell] = {}
    for cell in cells:
        if cell.value > 0:
            variant = tuple(sorted(cell.variant.items()))
            where = (cell.size_bytes, cell.processes, cell.nodes)
            keyed.setdefault((cell.test, cell.operation, cell.unit, where, variant), cell)
    return keyed


def _unpaired(then: dict[Key, Cell], later: dict[Key, Cell]) -> Iterator[Incomparable]:
    yield from _left_out(
        [cell for key, cell in then.items() if key not in later], N_("measured only in the first result")
    )
    yield from _left_out(
        [cell for key, cell in later.items() if key not in then], N_("measured only in the second result")
    )


def _left_out(cells: list[Cell], why: str) -> list[Incomparable]:
    groups = split(cells, lambda cell: (cell.test, cell.operation))
    return [Incomparable(tuple(group), Message(why)) for group in groups]


def _grouped(pairs: list[tuple[Cell, Cell]]) -> list[list[tuple[Cell, Cell]]]:
    groups: dict[Key, list[tuple[Cell, Cell]]] = {}
    for one, other in pairs:
        key = (one.test, one.operation, one.unit, one.cache, tuple(sorted(one.variant.items())))
        groups.setdefault(key, []).append((one, other))
    return list(groups.values())


def _noise(group: list[tuple[Cell, Cell]]) -> Noise | None:
    """Returns the common spread of the repeats in both runs, or None if no cell was repeated in both."""
    if any(cell.spread is None for pair in group for cell in pair):
        group = [pair for pair in group if all(cell.spread is not None for cell in pair)]
    return noise_of([cell for pair in group for cell in pair], 1e-3) if group else None


def _gain(base: Cell, now: Cell) -> float:
    ratio = math.log(now.value / base.value)
    return ratio if base.unit.more_is_better else -ratio


def _change(group: list[tuple[Cell, Cell]], noise: Noise, groups: int, cells: int) -> Change:
    known = [(base, now) for base, now in group if base.spread is not None and now.spread is not None]
    gains = [_gain(base, now) for base, now in known]
    mean, (error, degrees) = fmean(gains), _error_of_mean(known, gains, noise)
    reach = t_limit(_ALPHA / groups, degrees) * error
    low, high = (math.exp(one) - 1.0 for one in (mean - reach, mean + reach))
    verdict = _verdict(mean, reach, MARGIN, noise, known)
    pairs = tuple(_pair(base, now, noise, cells) for base, now in group)
    return Change(*_named(group[0][0]), pairs, math.exp(mean) - 1.0, low, high, verdict)


def _named(cell: Cell) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    return cell.test, cell.operation, tuple(sorted(cell.variant.items()))


def _error_of_mean(
    group: Sequence[tuple[Cell, Cell]], gains: Sequence[float], noise: Noise
) -> tuple[float, float]:
    """Returns the standard error of the mean gain, and its degrees of freedom."""
    errors = [math.hypot(noise.error(base), noise.error(now)) for base, now in group]
    within = math.sqrt(sum(error**2 for error in errors)) / len(errors)
    if len(gains) < 3:
        return within, noise.degrees
    differ = stdev(gains)
    by_chance = max(_BY_CHANCE, _TIMES_REPEATS * max(errors))
    if differ > by_chance:
        return max(by_chance / math.sqrt(len(gains)), within), noise.degrees
    between = differ / math.sqrt(len(gains))
    return (between, float(len(gains) - 1)) if between > within else (within, noise.degrees)


def _pair(base: Cell, now: Cell, noise: Noise, cells: int) -> Pair:
    if base.spread is None or now.spread is None:
        return Pair(base, now, Verdict.TOO_FEW)
    error = math.hypot(noise.error(base), noise.error(now))
    reach = t_limit(_ALPHA / cells, noise.degrees) * error
    return Pair(base, now, _verdict(_gain(base, now), reach, _CELL_MARGIN, noise, [(base, now)]))


def _unrepeated(group: list[tuple[Cell, Cell]]) -> Change:
    """Returns the change of an operation that was measured only once. Without repeats its spread is not
    known, so its verdict is TOO_FEW. The change is still reported, because it may be large."""
    pairs = tuple(Pair(base, now, Verdict.TOO_FEW) for base, now in group)
    mean = fmean(_gain(base, now) for base, now in group)
    return Change(*_named(group[0][0]), pairs, math.exp(mean) - 1.0, None, None, Verdict.TOO_FEW)


def _verdict(
    gain: float, reach: float, margin: float, noise: Noise, group: Sequence[tuple[Cell, Cell]]
) -> Verdict:
    """Returns the verdict on a change. GAIN is the logarithm of the ratio of the values, and the interval
    extends from GAIN - REACH to GAIN + REACH."""
    if abs(gain) > reach and abs(gain) > math.log1p(margin):
        return Verdict.REGRESSION if gain < 0 else Verdict.IMPROVEMENT
    if abs(gain) + reach < 2.0 * math.log1p(margin):
        return Verdict.SAME
    if abs(gain) > reach:
        # The interval excludes zero, but the change is smaller than the margin.
        return Verdict.SAME
    fewest = min(cell.repeats or 1 for pair in group for cell in pair)
    is_large = abs(gain) > min(noise.sigma, _LARGE)
    return Verdict.TOO_FEW if fewest < _ENOUGH or is_large else Verdict.UNSURE


_BUSY = (
    N_("the machine was busy with other programs during {busy} of {cells} cells of the first result"),
    N_("the machine was busy with other programs during {busy} of {cells} cells of the second result"),
)


def _warnings(base: Measurements, now: Measurements) -> Iterator[Message]:
    """Yields warnings about high load by other programs, and about settings that differ between the two
    check-ups. Both may explain a change."""
    for text, measured in zip(_BUSY, (base, now), strict=True):
        if high := sum(is_high(cell) for cell in measured.cells):
            yield Message(text, {"busy": high, "cells": len(measured.cells)})
    named = (
        ("file_system", N_("the file systems are of different types: {base} and {now}")),
        ("target", N_("different folders were measured: {base} and {now}")),
        ("host", N_("measured from different hosts: {base} and {now}")),
        ("tool", N_("measured by different programs: {base} and {now}")),
        ("version", N_("measured by different versions: {base} and {now}")),
    )
    for name, text in named:
        then, later = getattr(base.protocol, name), getattr(now.protocol, name)
        if then and later and then != later:
            yield Message(text, {"base": then, "now": later})
    for name in ("class", "memory_bytes"):
        then, later = base.protocol.settings.get(name), now.protocol.settings.get(name)
        if then is not None and later is not None and then != later:
            said = {"name": name, "base": str(then), "now": str(later)}
            yield Message(N_("the setting {name} differs: {base} and {now}"), said)
