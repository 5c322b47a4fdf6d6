"""Draws the distribution of a site's jobs over CPU utilisation, with the threshold in use and the proposed
one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iodock.program.views.charts.source import CannotDraw, need_rows
from iodock.shared.answer import Answer
from iodock.shared.charts.frame import Picture, colour, theme_of, tips, values
from iodock.shared.charts.options import ChartOptions
from iodock.shared.units import COUNT, Unit

BELOW, ABOVE = "below the proposed threshold", "above it"
_TICKS = [tenth / 10 for tenth in range(11)]


def draw_jobs(answer: Answer, options: ChartOptions) -> Picture:
    """Number of jobs by CPU utilisation."""
    return _draw(answer, options, "count", "jobs")


def draw_core_hours(answer: Answer, options: ChartOptions) -> Picture:
    """Core-hours of jobs by CPU utilisation."""
    return _draw(answer, options, "core_hours", "core-hours")


def _draw(answer: Answer, options: ChartOptions, column: str, axis_title: str) -> Picture:
    import altair

    need_rows(answer)
    total = dict(answer.totals.total) if answer.totals else {}
    rows = _rows(answer, column, total, axis_title)
    largest = max((row["value"] for row in rows), default=0.0)
    if not largest:
        raise CannotDraw(f"no {axis_title} in this history")
    theme, sides = theme_of(options), [BELOW, ABOVE]
    bars = altair.Chart(values(rows)).mark_rect(stroke=theme.background, strokeWidth=0.5)
    bars = bars.encode(
        x=altair.X(
            field="lower",
            type="quantitative",
            title="CPU utilisation, (user / cores) / elapsed",
            scale=altair.Scale(domain=[0, 1], nice=False),
            axis=altair.Axis(values=_TICKS, format=".1f", grid=False),
        ),
        x2="upper:Q",
        y2="zero:Q",
        y=_count_axis(axis_title, COUNT, largest),
        color=colour("side", sides, [theme.write, theme.read]),
        tooltip=tips(("range", "utilisation"), ("text", axis_title)),
    )
    limits = _limits(total)
    # Texts are drawn last, so that no line covers a text.
    lines = [_line(*one, options) for one in limits] + [_label(*one, options) for one in limits]
    return Picture(altair.layer(bars, *lines), f"{axis_title.capitalize()} by CPU utilisation", _notes(total))


def _count_axis(title: str, unit: Unit, largest: float) -> Any:
    import altair

    ticks = unit.ticks(largest)
    return altair.Y(
        field="value",
        type="quantitative",
        title=title,
        scale=altair.Scale(domain=[0, ticks[-1]], nice=False),
        axis=altair.Axis(values=ticks, labelExpr=unit.label_expression(largest)),
    )


def _rows(answer: Answer, column: str, total: Mapping[str, Any], noun: str) -> list[dict[str, Any]]:
    limit = float(total.get("proposed_io_below", 0.0))
    names = ("lower", "upper", column)
    columns = (answer.table.column(name).to_pylist() for name in names)
    return [
        {
            "lower": lower,
            "upper": upper,
            "value": float(value or 0.0),
            "zero": 0,
            "side": BELOW if upper <= limit + 1e-9 else ABOVE,
            "range": f"{lower:.2f} to {upper:.2f}",
            "text": f"{COUNT.text(value or 0)} {noun}",
        }
        for lower, upper, value in zip(*columns, strict=True)
        if value
    ]


def _limits(total: Mapping[str, Any]) -> list[tuple[float, str, float]]:
    """Returns the position of each threshold, its text, and the height of the text as a share of the plot."""
    if "proposed_io_below" not in total:
        return []
    proposed, in_use = float(total["proposed_io_below"]), float(total["io_below"])
    if abs(proposed - in_use) < 0.005:
        return [(proposed, "threshold in use and proposed", 0.03)]
    return [(proposed, "proposed", 0.03), (in_use, "in use", 0.11)]


def _at(place: float, text: str) -> Any:
    import altair

    rows = [{"at": place, "text": f"{text} {place:.2f}"}]
    return altair.Chart(values(rows)).encode(x=altair.X(field="at", type="quantitative"))


def _line(place: float, text: str, height: float, options: ChartOptions) -> Any:
    dash = [4, 3] if text == "in use" else [1, 0]
    return _at(place, text).mark_rule(color=theme_of(options).ink, strokeDash=dash, strokeWidth=1.4)


def _label(place: float, text: str, height: float, options: ChartOptions) -> Any:
    import altair

    theme = theme_of(options)
    base = _at(place, text).encode(y=altair.value(altair.expr(f"height * {height}")), text="text:N")
    behind = base.mark_text(align="left", dx=5, stroke=theme.background, strokeWidth=5)
    return altair.layer(behind, base.mark_text(align="left", dx=5, color=theme.ink))


def _notes(total: Mapping[str, Any]) -> list[str]:
    if not total:
        return []
    deciles = total["deciles"]
    head = (
        f"{total['count']:,} jobs, {COUNT.text(round(total['core_hours']))} core-hours; "
        f"mean {total['mean']:.2f}, median {total['median']:.2f}, "
        f"a tenth below {deciles[0]:.2f}, a tenth above {deciles[8]:.2f}"
    )
    return [head, str(total["reason"])]
