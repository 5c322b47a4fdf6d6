"""Measures the cost of a labelled fault: the faulty run and its clean twin run alternately on this machine,
without a recording.

docs/explanation/labelled-set.md explains the figures.
"""

from __future__ import annotations

import json
import math
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labelled_runs import Failed, Places, Unrunnable, background, checked, command_of, prepare, redirected
from labelled_score import CostClass, Label

LEAST_TURNS = 3
MOST_TURNS = 5
WORTH_SHARE = 0.01
"""Of the faulty run's wall time: what `iodock diagnose` calls more than a note."""
CLEAR = 2.0
"""So far from the limit, as a factor, more turns are not needed."""


@dataclass(frozen=True)
class Times:
    """Times of one quantity for both versions, in seconds, one value for each turn."""

    faulty: tuple[float, ...]
    clean: tuple[float, ...]

    @property
    def gain(self) -> float:
        """Returns the difference of the medians in seconds; negative if the clean twin takes longer."""
        return statistics.median(self.faulty) - statistics.median(self.clean)

    @property
    def noise(self) -> float:
        """Returns two standard errors of the difference of the medians, in seconds."""
        return 2 * math.hypot(_error_of_median(self.faulty), _error_of_median(self.clean))


def _error_of_median(values: Sequence[float]) -> float:
    """Returns the standard error of a median, computed from the interquartile range, which a single disturbed
    turn does not change much. For a normal distribution, the range is 1.349 sigma, and a median's error is
    1.253 sigma / sqrt n (Kendall and Stuart, The Advanced Theory of Statistics, vol. 1)."""
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return 1.253 * (high - low) / 1.349 / math.sqrt(len(values))


@dataclass(frozen=True)
class Cost:
    """Measurements of one faulty run and its twin."""

    wall: Times
    cpu: Times
    """User and system time of all processes."""

    @property
    def limit(self) -> float:
        """Returns 1 % of the faulty run's time, in seconds."""
        return WORTH_SHARE * statistics.median(self.wall.faulty)

    @property
    def is_worth(self) -> bool:
        """Returns whether wall or CPU time show that the fault costs 1 % of its run or more, and more than
        noise."""
        return any(one.gain >= max(self.limit, one.noise) for one in (self.wall, self.cpu))

    @property
    def is_comparable(self) -> bool:
        """Returns whether the twin can show the cost of the fault. A twin that takes longer does other
        work."""
        return any(one.gain >= -one.noise for one in (self.wall, self.cpu))

    @property
    def is_clear(self) -> bool:
        """Returns whether more turns are unlikely to change `is_worth`."""
        if any(one.gain >= CLEAR * max(self.limit, one.noise) for one in (self.wall, self.cpu)):
            return True
        return all(one.gain + one.noise < self.limit / CLEAR for one in (self.wall, self.cpu))


def cost_from(values: Mapping[str, Mapping[str, Sequence[float]]]) -> Cost:
    """Returns a cost from the values that `measured` has stored."""
    wall, cpu = (
        Times(**{side: tuple(times) for side, times in values[key].items()}) for key in ("wall", "cpu")
    )
    return Cost(wall, cpu)


def measured(faulty: Label, clean: Label, places: Places) -> Cost:
    """Runs both versions alternately without a recorder. Raises Unrunnable, Failed."""
    turns: list[tuple[tuple[float, float], tuple[float, float]]] = []
    while True:
        turns.append((seconds_of(faulty, places), seconds_of(clean, places)))
        if len(turns) < LEAST_TURNS:
            continue
        wall, cpu = (
            Times(tuple(one[0][part] for one in turns), tuple(one[1][part] for one in turns))
            for part in (0, 1)
        )
        cost = Cost(wall, cpu)
        if cost.is_clear or len(turns) == MOST_TURNS:
            return cost


def seconds_of(label: Label, places: Places) -> tuple[float, float]:
    """Returns wall and CPU seconds of one run in a fresh folder, without its preparation."""
    with tempfile.TemporaryDirectory(prefix="labelled-") as name:
        folder = Path(name)
        command = redirected(label, command_of(label, places))
        prepare(label, places, folder)
        with background(label, places, folder):
            used, begun = _cpu_seconds(), time.monotonic()
            checked(command, folder, "run")
            return time.monotonic() - begun, _cpu_seconds() - used


def _cpu_seconds() -> float:
    """Returns the CPU time of all processes that this process has waited for, and of their descendants."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def costs_of(
    labels: Sequence[Label], wanted: Collection[str], places: Places, kept: Path, is_quiet: bool
) -> dict[str, Cost]:
    """Returns costs by name, of the wanted runs that have faults and a twin. Takes them from the file `kept`,
    or measures them now and adds them to it."""
    known = _read(kept)
    named = {label.name: label for label in labels}
    for label in labels:
        if label.name not in wanted or label.name in known or not (label.faults and label.twin):
            continue
        try:
            cost = measured(label, named[label.twin], places)
        except (Unrunnable, Failed) as reason:
            _tell(f"{label.name}: cost not measured: {reason}", is_quiet)
            continue
        known[label.name] = asdict(cost)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        _tell(f"{label.name}: {told(cost)}", is_quiet)
    return kept_costs(kept, wanted)


def kept_costs(kept: Path, wanted: Collection[str]) -> dict[str, Cost]:
    """Returns costs by name, of the wanted runs that were measured before."""
    return {name: cost_from(values) for name, values in _read(kept).items() if name in wanted}


def _read(kept: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    return found


def class_of(cost: Cost | None) -> CostClass:
    """Returns the class of a run's faults. COST is None if it was not measured."""
    if cost is None or not cost.is_comparable:
        return CostClass.UNMEASURED
    return CostClass.WORTH if cost.is_worth else CostClass.LITTLE


def told(cost: Cost) -> str:
    """Returns a cost in words."""
    parts = [
        f"{what} {statistics.median(one.faulty):.3f} s, gain {one.gain:.3f} s, noise {one.noise:.3f} s"
        for what, one in (("wall", cost.wall), ("CPU", cost.cpu))
    ]
    verdict = class_of(cost).value
    return f"{'; '.join(parts)}; {len(cost.wall.faulty)} turns: {verdict}"


def _tell(line: str, is_quiet: bool) -> None:
    if not is_quiet:
        print(line, file=sys.stderr, flush=True)
