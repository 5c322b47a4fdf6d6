"""Curves over time as SVG. They are drawn here, so a page needs no raw data and no library for drawing.

The drawing is stretched to the page's width, so its texts are HTML next to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from math import log10

from iodock.centre.monitor.questions.spans import Span
from iodock.centre.portal.numbers import amount, decades_top, nice_top, tick

HEIGHT = 100
_TICKS = 4
_MOST_DECADES = 4
"""If a logarithmic axis has at most this number of decades, each one has a label."""


@dataclass(frozen=True)
class Curve:
    """One line of a chart. None: the value of this step is not known."""

    label: str
    values: list[float | None]
    style: str
    """A class of the style sheet: read, write, metadata, c0 ..."""


@dataclass(frozen=True)
class Mark:
    """An event, shown as a line across a chart."""

    ts: int
    """ns since the epoch."""
    severity: str
    label: str


@dataclass(frozen=True)
class Chart:
    """Curves with one axis. `kind`: format of the numbers (see tables.Column)."""

    title: str
    kind: str
    within: Span
    curves: list[Curve] = field(default_factory=list)
    marks: tuple[Mark, ...] = ()
    full: float | None = None
    """The end of the axis; None: chosen from the values."""
    is_logarithmic: bool = False
    """The axis begins at 1; smaller values are drawn there."""

    @property
    def marked(self) -> list[tuple[Mark, float]]:
        """The marks that lie within the axis, each with its position in steps from the left."""
        places = ((mark, (mark.ts - self.within.begin) / self.within.step) for mark in self.marks)
        return [(mark, round(place, 2)) for mark, place in places if 0 <= place <= self.width]

    @cached_property
    def top(self) -> float:
        """The end of the axis. It is cached, because every point of a curve needs it."""
        known = [value for curve in self.curves for value in curve.values if value is not None]
        greatest = max(known, default=0.0)
        if self.full is not None:
            return max(self.full, greatest)
        return decades_top(greatest) if self.is_logarithmic else nice_top(greatest, self.kind)

    @property
    def is_empty(self) -> bool:
        return not any(value for curve in self.curves for value in curve.values)

    @property
    def levels(self) -> list[str]:
        """Labels of the axis from the top, at equal distances."""
        if not self.is_logarithmic:
            return [amount(self.top * part, self.kind) for part in (1, 0.5)] + ["0"]
        decades = round(log10(self.top))
        every = 1 if decades <= _MOST_DECADES else 2
        labels = [amount(10.0**power, self.kind) for power in range(decades, 0, -every)]
        return [*labels, "≤ 1"]

    @property
    def lines(self) -> list[float]:
        """Positions of the labels' lines."""
        spaces = len(self.levels) - 1
        return [round(HEIGHT * place / spaces, 2) for place in range(spaces + 1)]

    @property
    def ticks(self) -> list[str]:
        """Labels of times, from the left."""
        length = self.within.end - self.within.begin
        return [tick(self.within.begin + length * part // _TICKS, length) for part in range(_TICKS + 1)]

    @property
    def width(self) -> int:
        return self.within.steps

    def path(self, curve: Curve) -> str:
        """The `d` attribute of the line, with gaps for unknown values. The value of a step is drawn at the
        step's middle."""
        pieces, is_drawn = [], False
        for place, value in enumerate(curve.values):
            if value is not None:
                height = HEIGHT * (1 - self._share(value))
                pieces.append(f"{'L' if is_drawn else 'M'}{place + 0.5:g} {height:.2f}")
                # A line of one point would be invisible, so a short piece is drawn.
                alone = not is_drawn and (place + 1 == len(curve.values) or curve.values[place + 1] is None)
                pieces += ["h.01"] if alone else []
            is_drawn = value is not None
        return "".join(pieces)

    def _share(self, value: float) -> float:
        """The position of VALUE on the axis, from 0 to 1."""
        if self.is_logarithmic:
            return log10(max(value, 1.0)) / log10(self.top)
        return value / self.top

    @property
    def readout(self) -> str:
        """JSON with the values that the page's script shows at the pointer."""
        rows = [
            [curve.label, ["" if v is None else amount(v, self.kind) for v in curve.values]]
            for curve in self.curves
        ]
        return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def values(
    rows: list[dict[str, object]],
    name: str,
    within: Span,
    *,
    known: tuple[int, int],
    divide: float | None = None,
) -> list[float | None]:
    """Makes a curve from rows with `bucket`: NAME per second, or divided by DIVIDE. Steps outside of KNOWN
    (first and last moment, ns) are None. If no row has a value, all steps are None, because the quantity is
    not counted."""
    by = within.step / 1e9 if divide is None else divide
    if rows and all(row[name] is None for row in rows):
        return [None] * within.steps
    found: list[float | None] = [
        0.0 if _is_known(within, place, known) else None for place in range(within.steps)
    ]
    for row in rows:
        place, value = row["bucket"], row[name]
        if isinstance(place, int) and isinstance(value, (int, float)) and 0 <= place < len(found):
            found[place] = None if found[place] is None else (found[place] or 0.0) + value / by
    return found


def _is_known(within: Span, place: int, known: tuple[int, int]) -> bool:
    begin = within.begin + place * within.step
    return begin + within.step > known[0] and begin + within.step <= known[1]
