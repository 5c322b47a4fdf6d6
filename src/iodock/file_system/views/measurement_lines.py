"""Draws the graphs of a check-up, which show rates over processes or sizes. Points with remarks have a circle
and the number of the remark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from iodock.file_system.health.measurements import Unit
from iodock.file_system.views.measurement_curves import Figure, rows_of
from iodock.shared.charts.draw import svg_of
from iodock.shared.charts.frame import WIDTH, colour, values
from iodock.shared.charts.theme import THEMES, Theme, vega_config
from iodock.shared.language import N_, Language
from iodock.shared.text import cells as width_of
from iodock.shared.units import BYTES_PER_SECOND, COUNT_PER_SECOND, decades

_HEIGHT = 300
_DASHES = ((1, 0), (6, 3), (2, 2))


def svg(figure: Figure, text: Language, theme_name: str = "light") -> str:
    """Draws the graph as an SVG picture. The package vl-convert is needed for this."""
    return svg_of(specification(figure, text, theme_name))


def specification(figure: Figure, text: Language, theme_name: str = "light") -> dict[str, Any]:
    """Returns the Vega-Lite specification of the graph, including its data."""
    import altair

    theme = THEMES[theme_name]
    rows = rows_of(figure, text)
    order = list(dict.fromkeys(row["place"] for row in sorted(rows, key=lambda row: row["rank"])))
    names = list(dict.fromkeys(row["series"] for row in rows))
    x = altair.X(
        field="place",
        type="ordinal",
        sort=order,
        title=_x_title(figure, rows, text),
        axis=altair.Axis(labelAngle=-45 if _wide(order) else 0, grid=False),
        scale=altair.Scale(paddingOuter=0.3),
    )
    base = altair.Chart(values(rows)).encode(x=x)
    line = base.mark_line(point=altair.OverlayMarkDef(size=34), strokeWidth=1.8, clip=True).encode(
        y=_y(figure, rows, text), color=colour("series", names, _colours(names, theme)), detail="series:N"
    )
    if len(names) > len(theme.categories):
        dashes = [list(_DASHES[at // len(theme.categories) % len(_DASHES)]) for at in range(len(names))]
        scale = altair.Scale(domain=names, range=dashes)
        line = line.encode(
            strokeDash=altair.StrokeDash(field="series", type="nominal", scale=scale, legend=None)
        )
    bars = base.mark_rule(strokeWidth=1.2, opacity=0.55).encode(
        y=altair.Y(field="low", type="quantitative"),
        y2="high:Q",
        color=colour("series", names, _colours(names, theme)),
    )
    layers = [bars, line, *_marks(rows, x, theme)]
    chart = altair.layer(*layers).properties(width=WIDTH, height=_HEIGHT).configure(**vega_config(theme))
    found: dict[str, Any] = chart.to_dict(validate=False)
    found.pop("$schema", None)
    return found


def _marks(rows: Sequence[dict[str, Any]], x: Any, theme: Theme) -> list[Any]:
    """Draws a circle around each point with remarks, and the numbers of the remarks above it."""
    import altair

    marked = _gathered([row for row in rows if row["numbers"]])
    if not marked:
        return []
    base = altair.Chart(values(marked)).encode(x=x, y=altair.Y(field="value", type="quantitative"))
    ring = base.mark_point(size=150, color=theme.failed, strokeWidth=1.8, filled=False)
    behind = base.mark_text(dy=-15, fontSize=12, fontWeight=700, stroke=theme.background, strokeWidth=4)
    number = base.mark_text(dy=-15, fontSize=12, fontWeight=700, color=theme.failed)
    return [ring, behind.encode(text="numbers:N"), number.encode(text="numbers:N")]


def _gathered(marked: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Combines points at the same position whose circles would overlap. The combined circle has the numbers
    of all their remarks."""
    kept: list[dict[str, Any]] = []
    for row in marked:
        near = next(
            (one for one in kept if one["place"] == row["place"] and _near(one["value"], row["value"])), None
        )
        if near is None:
            kept.append({name: row[name] for name in ("place", "value", "numbers")})
        else:
            numbers = {int(one) for one in f"{near['numbers']},{row['numbers']}".split(",")}
            near["numbers"] = ", ".join(map(str, sorted(numbers)))
    return kept


def _near(one: float, other: float) -> bool:
    return abs(math.log(one / other)) < math.log(1.5)


def _colours(names: Sequence[str], theme: Theme) -> list[str]:
    return [theme.categories[at % len(theme.categories)] for at in range(len(names))]


def _wide(order: Sequence[str]) -> bool:
    return sum(width_of(place) for place in order) > 80


def _y(figure: Figure, rows: Sequence[dict[str, Any]], text: Language) -> Any:
    import altair

    low, high = min(row["low"] for row in rows) * 0.8, max(row["high"] for row in rows) * 1.5
    moves = figure.cells[0].unit is Unit.BYTES_PER_S
    unit = BYTES_PER_SECOND if moves else COUNT_PER_SECOND
    ticks = _powers(low, high) if moves else _round_numbers(low, high)
    title = text.gettext(N_("throughput")) if moves else text.gettext(N_("operations per second"))
    return altair.Y(
        field="value",
        type="quantitative",
        title=title,
        scale=altair.Scale(type="log", domain=[low, high], nice=False),
        axis=altair.Axis(values=ticks, labelExpr=unit.log_label_expression()),
    )


def _powers(low: float, high: float) -> list[float]:
    """Returns powers of two from LOW to HIGH. If there are more than nine, some are left out at regular
    intervals."""
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    stride = max(1, math.ceil((last - first + 1) / 9))
    return [2.0**power for power in range(first, last + 1, stride)]


def _round_numbers(low: float, high: float) -> list[float]:
    """Returns the powers of ten between LOW and HIGH. In a range of at most four decades, the values 2 and 5
    times each power are added."""
    powers = decades(low, high)
    return powers if high / low > 1e4 else [factor * power for power in powers for factor in (1.0, 2.0, 5.0)]


def _x_title(figure: Figure, rows: Sequence[dict[str, Any]], text: Language) -> str:
    if figure.by_size:
        return text.gettext(N_("I/O size"))
    by_nodes = any(" x " in row["place"] for row in rows)
    return text.gettext(N_("nodes x processes per node")) if by_nodes else text.gettext(N_("processes"))
