"""Compares the diagnosis of a pair with the gain of the correction, and formats the results as tables."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pair import Pair
from pair_runs import Measured

WIDER = 1.5
"""The promised range is widened by this factor before the measured gain is held against it."""
GONE = 0.5
"""A finding has been mended if less than this part of its cost is left."""
RANKS = ("note", "low", "medium", "high")

Finding = dict[str, Any]


@dataclass(frozen=True)
class Judgement:
    """Result of one pair for the diagnosis; times are in seconds."""

    pair: Pair
    first: str
    """Rule of the first finding above a note, of most runs; empty: there was none."""
    wrong_languages: tuple[str, ...]
    """`language (rule)` of advice that does not fit the program."""
    before: float
    after: float
    gain: float
    """Medians of unrecorded runs."""
    recorded_gain: float
    promised: tuple[float, float] | None
    """Least and most, summed over the findings that mending removed; None: nothing was promised."""
    io_seconds: float
    """Of the recorded version before."""
    work_seconds: float
    """Work of program and libraries around the calls, which the findings say goes with them."""
    most: float
    """The upper ends of all findings' gains together."""
    severity: str
    """The highest that any run gave."""
    found: tuple[str, ...]

    @property
    def first_right(self) -> bool:
        return self.first in self.pair.first

    @property
    def inside(self) -> bool:
        if self.promised is None:
            return False
        low, high = self.promised
        return low / WIDER <= self.gain <= high * WIDER

    @property
    def within_io_time(self) -> bool:
        """Returns whether the diagnosis promises no more than the time that the run spent in I/O."""
        return self.most <= self.io_seconds

    @property
    def within_what_could_go(self) -> bool:
        """Returns whether the diagnosis promises no more than the time in I/O and in the work around the
        calls."""
        return self.most <= self.io_seconds + self.work_seconds

    @property
    def is_silent(self) -> bool:
        return self.severity in ("", "note")


def judged(measured: Measured) -> Judgement:
    befores, (after,) = measured.found["before"], measured.found["after"]
    firsts = Counter(_first(found) for found in befores)
    ranges = [_promised(before, after) for before in befores]
    known = [one for one in ranges if one is not None]
    # If most runs promise nothing, the pair counts as without a promise.
    is_promised = len(known) * 2 > len(ranges)
    medians = {side: statistics.median(measured.alone[side]) for side in measured.alone}
    recorded = {side: statistics.median(measured.recorded[side]) for side in measured.recorded}
    severities = [one["severity"] for found in befores for one in found["findings"]]
    return Judgement(
        pair=measured.pair,
        first=firsts.most_common(1)[0][0],
        wrong_languages=tuple(sorted({one for found in befores for one in _wrong(found, measured.pair)})),
        before=medians["before"],
        after=medians["after"],
        gain=medians["before"] - medians["after"],
        recorded_gain=recorded["before"] - recorded["after"],
        promised=(_median(low for low, _ in known), _median(high for _, high in known))
        if is_promised
        else None,
        io_seconds=_median(found["verdict"]["io_seconds"] or 0.0 for found in befores),
        work_seconds=_median(_work(found) for found in befores),
        most=_median(_most(found) for found in befores),
        severity=max(severities, key=RANKS.index, default=""),
        found=tuple(_told(one) for one in befores[0]["findings"]),
    )


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)


def _worth(found: dict[str, Any]) -> list[Finding]:
    return [one for one in found["findings"] if one["severity"] != "note"]


def _first(found: dict[str, Any]) -> str:
    worth = _worth(found)
    return worth[0]["rule"] if worth else ""


def _wrong(found: dict[str, Any], pair: Pair) -> set[str]:
    return {
        f"{advice['language']} ({one['rule']})"
        for one in found["findings"]
        for advice in one["advice"]
        if advice["language"] not in pair.fitting
    }


def _promised(before: dict[str, Any], after: dict[str, Any]) -> tuple[float, float] | None:
    """Returns the gains of the findings that the correction removed, limited to the duration of the run."""
    left: Counter[str] = Counter()
    for one in _worth(after):
        left[one["rule"]] += one["cost_seconds"] or 0.0
    cost: Counter[str] = Counter()
    for one in _worth(before):
        cost[one["rule"]] += one["cost_seconds"] or 0.0
    gone = [one for one in _worth(before) if one["gain"] and left[one["rule"]] <= GONE * cost[one["rule"]]]
    if not gone:
        return None
    wall = before["verdict"]["wall_seconds"]
    return sum(one["gain"][0] for one in gone), min(wall, sum(one["gain"][1] for one in gone))


def _most(found: dict[str, Any]) -> float:
    return sum(one["gain"][1] for one in _worth(found) if one["gain"])


def _work(found: dict[str, Any]) -> float:
    return sum(one.get("work_seconds") or 0.0 for one in _worth(found))


def _told(one: Finding) -> str:
    gain = f" {one['gain'][0]:.2f}-{one['gain'][1]:.2f} s" if one["gain"] else ""
    return f"{one['rule']} ({one['severity']}{gain})"


FAULT_HEADER = [
    "pair",
    "first finding",
    "languages",
    "before -> after",
    "gain",
    "recorded",
    "promised",
    "inside",
    "I/O + work",
    "promised at most",
]
QUIET_HEADER = ["program", "before -> after", "gain", "recorded", "highest severity", "found"]


def fault_row(one: Judgement) -> list[str]:
    """Returns a row for a pair whose correction pays."""
    first = one.first or "nothing"
    wanted = "right" if one.first_right else f"not {' or '.join(one.pair.first)}"
    return [
        one.pair.name,
        f"{first}: {wanted}",
        ", ".join(one.wrong_languages) or "right",
        f"{one.before:.2f} -> {one.after:.2f} s",
        f"{one.gain:.2f} s",
        f"{one.recorded_gain:.2f} s",
        "-" if one.promised is None else f"{one.promised[0]:.2f} to {one.promised[1]:.2f} s",
        _yes(one.inside),
        f"{one.io_seconds:.2f} + {one.work_seconds:.2f} s",
        f"{one.most:.2f} s{'' if one.within_what_could_go else ': too much'}",
    ]


def quiet_row(one: Judgement) -> list[str]:
    """Returns a row for a program that should stay unchanged."""
    return [
        one.pair.name,
        f"{one.before:.2f} -> {one.after:.2f} s",
        f"{one.gain:.2f} s",
        f"{one.recorded_gain:.2f} s",
        one.severity or "nothing found",
        ", ".join(one.found),
    ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def totals(judgements: Sequence[Judgement]) -> list[list[str]]:
    """Returns the results and the goals."""
    faults = [one for one in judgements if one.pair.pays]
    quiet = [one for one in judgements if not one.pair.pays]
    asked = [
        ("first finding right", [one.first_right for one in faults], "22 of 24"),
        ("advice in the program's languages only", [not one.wrong_languages for one in judgements], "all"),
        (f"gain inside the range, widened by {WIDER}", [one.inside for one in faults], "20 of 24"),
        (
            "no more promised than I/O and its work",
            [one.within_what_could_go for one in faults],
            "all",
        ),
        ("no more promised than I/O alone", [one.within_io_time for one in faults], "-"),
        ("nothing above a note where it does not pay", [one.is_silent for one in quiet], "9 of 10"),
    ]
    rows = [["what", "reached", "goal"]]
    return rows + [[what, f"{sum(values)} of {len(values)}", goal] for what, values, goal in asked]


def details(judgements: Sequence[Judgement]) -> list[str]:
    """Returns a line with all findings for each fault pair whose result was not completely right."""
    return [
        f"{one.pair.name}: {', '.join(one.found) or 'nothing found'}"
        for one in judgements
        if one.pair.pays and not (one.first_right and one.inside and not one.wrong_languages)
    ]
