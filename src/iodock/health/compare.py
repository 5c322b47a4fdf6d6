"""Two check-ups of one file system: what changed beyond the spread, and what can't be compared.

Cells with the same test, operation, size, processes, nodes and variant are a pair. Repeats of one run tell
how values differ within minutes, not from day to day; so the error of an operation's change takes the larger
of what repeats and what its cells differ by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev

from iodock.findings import Message
from iodock.health.measurements import Cache, Cell, Measurements, Protocol
from iodock.health.remarks.curves import split
from iodock.health.remarks.noise import Noise, noise_of, t_limit, t_tails
from iodock.language import N_

MARGIN = 0.05
"""A change by less is no regression, however sure it is."""
_CELL_MARGIN = 0.10
_ALPHA = 0.05
"""How often chance may flag anything in a whole comparison."""


class Verdict(StrEnum):
    """What became of an operation, or of a cell."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    SAME = "same"
    UNSURE = "unsure"
    """Its change lies within the spread, and the spread is too large to call it the same."""


@dataclass(frozen=True)
class Pair:
    """One cell, then and now."""

    base: Cell
    now: Cell
    error: float
    """Standard error of the logarithm of their ratio."""
    verdict: Verdict

    @property
    def change(self) -> float:
        """0.1 is 10 % better, -0.1 is 10 % worse: more, or less where less is better."""
        return math.exp(_gain(self.base, self.now)) - 1.0


@dataclass(frozen=True)
class Change:
    """An operation of a test, over all its cells."""

    test: str
    operation: str
    variant: tuple[tuple[str, str], ...]
    pairs: tuple[Pair, ...]
    change: float
    low: float
    high: float
    """95 % of the time the true change lies between."""
    verdict: Verdict


@dataclass(frozen=True)
class Incomparable:
    """What was left out, and why."""

    cells: tuple[Cell, ...]
    why: Message


@dataclass(frozen=True)
class Comparison:
    """All of it."""

    base: Protocol
    now: Protocol
    changes: tuple[Change, ...]
    incomparable: tuple[Incomparable, ...]
    warnings: tuple[Message, ...]
    """What differs in how they were measured."""

    @property
    def regressed(self) -> bool:
        """Whether any operation or any cell became worse."""
        return any(
            change.verdict is Verdict.REGRESSION
            or any(pair.verdict is Verdict.REGRESSION for pair in change.pairs)
            for change in self.changes
        )


Key = tuple[object, ...]


def compare(base: Measurements, now: Measurements) -> Comparison:
    """What changed from BASE to NOW."""
    then, later = _keyed(base.cells), _keyed(now.cells)
    incomparable = [*_unpaired(then, later)]
    both = [(then[key], later[key]) for key in then if key in later]
    differ = [(one, other) for one, other in both if not _same_cache(one, other)]
    incomparable += _left_out([one for one, _ in differ], N_("read from the cache in one of them only"))
    groups = _grouped([(one, other) for one, other in both if _same_cache(one, other)])
    measured = [(group, noise) for group in groups if (noise := _noise(group)) is not None]
    known = {id(group) for group, _ in measured}
    unknown = [one for group in groups if id(group) not in known for one, _ in group]
    incomparable += _left_out(unknown, N_("the spread is not known: too few repeats"))
    pairs = sum(len(group) for group, _ in measured)
    changes = tuple(_change(group, noise, len(measured), pairs) for group, noise in measured)
    return Comparison(base.protocol, now.protocol, changes, tuple(incomparable), tuple(_warnings(base, now)))


def _same_cache(one: Cell, other: Cell) -> bool:
    """Earlier versions labelled no writes, and did not look at what lies under a file system."""
    labels = {one.cache, other.cache}
    return len(labels) == 1 or None in labels or labels == {Cache.UNCACHED, Cache.MAYBE_CACHED}


def _keyed(cells: Sequence[Cell]) -> dict[Key, Cell]:
    """Cells by what makes them one measurement; of doubles the first."""
    keyed: dict[Key, Cell] = {}
    for cell in cells:
        if cell.value > 0:
            variant = tuple(sorted(cell.variant.items()))
            where = (cell.size_bytes, cell.processes, cell.nodes)
            keyed.setdefault((cell.test, cell.operation, cell.unit, where, variant), cell)
    return keyed


def _unpaired(then: dict[Key, Cell], later: dict[Key, Cell]) -> Iterator[Incomparable]:
    yield from _left_out(
        [cell for key, cell in then.items() if key not in later], N_("measured in the first only")
    )
    yield from _left_out(
        [cell for key, cell in later.items() if key not in then], N_("measured in the second only")
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
    """Of both runs together; None where a cell was not repeated in either."""
    if any(cell.spread is None for pair in group for cell in pair):
        group = [pair for pair in group if all(cell.spread is not None for cell in pair)]
    return noise_of([cell for pair in group for cell in pair], 1e-3) if group else None


def _gain(base: Cell, now: Cell) -> float:
    ratio = math.log(now.value / base.value)
    return ratio if base.unit.more_is_better else -ratio


def _change(group: list[tuple[Cell, Cell]], noise: Noise, groups: int, cells: int) -> Change:
    pairs = tuple(_pair(base, now, noise, cells) for base, now in group)
    gains = [_gain(pair.base, pair.now) for pair in pairs]
    mean, error = fmean(gains), math.sqrt(sum(pair.error**2 for pair in pairs)) / len(pairs)
    degrees = noise.degrees
    if len(gains) > 2 and (between := stdev(gains) / math.sqrt(len(gains))) > error:
        error, degrees = between, float(len(gains) - 1)
    reach = t_limit(0.05, degrees) * error
    chance = t_tails(mean / error, degrees) * groups
    verdict = _verdict(mean, chance, MARGIN, reach)
    low, high = (math.exp(one) - 1.0 for one in (mean - reach, mean + reach))
    first = group[0][0]
    variant = tuple(sorted(first.variant.items()))
    return Change(first.test, first.operation, variant, pairs, math.exp(mean) - 1.0, low, high, verdict)


def _pair(base: Cell, now: Cell, noise: Noise, cells: int) -> Pair:
    error = math.hypot(noise.error(base), noise.error(now))
    gain = _gain(base, now)
    chance = t_tails(gain / error, noise.degrees) * cells
    return Pair(base, now, error, _verdict(gain, chance, _CELL_MARGIN, t_limit(0.05, noise.degrees) * error))


def _verdict(gain: float, chance: float, margin: float, reach: float) -> Verdict:
    if chance < _ALPHA and abs(gain) > math.log1p(margin):
        return Verdict.REGRESSION if gain < 0 else Verdict.IMPROVEMENT
    return Verdict.SAME if abs(gain) + reach < 2.0 * math.log1p(margin) else Verdict.UNSURE


def _warnings(base: Measurements, now: Measurements) -> Iterator[Message]:
    """What differs between the protocols, so that a change may come from there."""
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
