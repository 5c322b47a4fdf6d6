"""Draws curves over time as SVG. The server draws them, so that a page needs neither the raw data nor a
library for drawing.

The browser stretches the SVG to the page's width, which would distort text. Therefore labels are HTML
elements outside of the SVG."""

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
    """One line of a chart. A value is None if it is not known for its step."""

    label: str
    values: list[float | None]
    style: str
    """A class of the style sheet: read, write, metadata, c0 ..."""


@dataclass(frozen=True)
class Mark:
    """An event that a chart shows as a vertical line."""

    ts: int
    """ns since the epoch."""
    severity: str
    label: str


@dataclass(frozen=True)
class Chart:
    """Curves with a common vertical axis. `kind` is the format of the numbers, as in tables.Column."""

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
        """Returns the marks that lie within the span, each with its position in steps from the left."""
        places = ((mark, (mark.ts - self.within.begin) / self.within.step) for mark in self.marks)
        return [(mark, round(place, 2)) for mark, place in places if 0 <= place <= self.width]

    @cached_property
    def top(self) -> float:
        """Returns the value at the top of the vertical axis. The value is cached, because every point of a
        curve needs it."""
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
        """Returns the labels of the vertical axis from top to bottom. They are drawn at equal distances."""
        if not self.is_logarithmic:
            return [amount(self.top * part, self.kind) for part in (1, 0.5)] + ["0"]
        decades = round(log10(self.top))
        every = 1 if decades <= _MOST_DECADES else 2
        labels = [amount(10.0**power, self.kind) for power in range(decades, 0, -every)]
        return [*labels, "≤ 1"]

    @property
    def lines(self) -> list[float]:
        """Returns the vertical positions of the horizontal lines at the labels, from the top of the
        drawing."""
        spaces = len(self.levels) - 1
        return [round(HEIGHT * place / spaces, 2) for place in range(spaces + 1)]

    @property
    def ticks(self) -> list[str]:
        """Returns the labels of the time axis from left to right."""
        length = self.within.end - self.within.begin
        return [tick(self.within.begin + length * part // _TICKS, length) for part in range(_TICKS + 1)]

    @property
    def width(self) -> int:
        return self.within.steps

    def path(self, curve: Curve) -> str:
        """Returns the `d` attribute of the curve's SVG path, which has gaps for unknown values. The value of
        a step is drawn at the middle of the step."""
        pieces, is_drawn = [], False
        for place, value in enumerate(curve.values):
            if value is not None:
                height = HEIGHT * (1 - self._share(value))
                pieces.append(f"{'L' if is_drawn else 'M'}{place + 0.5:g} {height:.2f}")
                # A path with a single point is invisible, so a very short horizontal line is added to it.
                alone = not is_drawn and (place + 1 == len(curve.values) or curve.values[place + 1] is None)
                pieces += ["h.01"] if alone else []
            is_drawn = value is not None
        return "".join(pieces)

    def _share(self, value: float) -> float:
        """Returns the position of VALUE on the vertical axis, from 0 at the bottom to 1 at the top."""
        if self.is_logarithmic:
            return log10(max(value, 1.0)) / log10(self.top)
        return value / self.top

    @property
    def readout(self) -> str:
        """Returns JSON with the formatted values, which the page's script shows at the pointer."""
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
    """Returns the values of a curve from rows whose `bucket` is the number of a step. They are the values of
    NAME divided by the length of a step in s, or by DIVIDE. Steps outside of KNOWN (first and last known
    time, ns since the epoch) are None. If NAME is None in all rows, all steps are None, because the quantity
    is not counted."""
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
