"""Turns a drawn chart into a finished picture: heading, notes, colours, size, and the empty picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from iodock.shared.answer import Answer
from iodock.shared.charts.options import ChartOptions
from iodock.shared.charts.theme import THEMES, Theme, vega_config
from iodock.shared.text import cells, heading, shorten, visible
from iodock.shared.units import Unit

if TYPE_CHECKING:
    import altair

# Width of the plot in pixels unless the user chose one: a column of an A4 page at 96 dots per inch.
WIDTH = 680
HEIGHT = 320
_BAR_PIXELS = 19
# Limit for the width of names, in pixels. Without a limit, an axis draws its title over names that are wider
# than 200 pixels.
_WIDEST_NAMES = 420


@dataclass(frozen=True, slots=True)
class Picture:
    """The marks of a chart, without a frame. `chart` is a single or layered altair view, so that a page may
    stretch it."""

    chart: Any
    title: str
    notes: Sequence[str] = field(default_factory=tuple)
    height: int = HEIGHT


def theme_of(options: ChartOptions) -> Theme:
    """Returns the chosen colours."""
    return THEMES[options.theme]


def bars_height(bars: int) -> int:
    """Returns the height in pixels of a plot with this number of horizontal bars."""
    return max(60, bars * _BAR_PIXELS)


def values(rows: Iterable[dict[str, Any]]) -> Any:
    """Returns rows as chart data that is kept in the specification itself, without a file, an address, or
    altair's limit on rows."""
    import altair

    return altair.InlineData(values=list(rows))


def x_measure(field_name: str, title: str, unit: Unit, maximum: float) -> Any:
    """Makes a horizontal linear axis from 0, with ticks at round numbers of the unit."""
    import altair

    ticks = unit.ticks(maximum)
    return altair.X(
        field=field_name,
        type="quantitative",
        title=title,
        scale=altair.Scale(domain=[0, ticks[-1]], nice=False),
        axis=altair.Axis(values=ticks, labelExpr=unit.label_expression(maximum), labelOverlap=True),
    )


def y_labels(order: Sequence[str], title: str | None = None) -> Any:
    """Makes a vertical axis of names, in the given order."""
    import altair

    return altair.Y(
        field="label",
        type="nominal",
        title=title,
        sort=None,
        scale=altair.Scale(domain=list(order), paddingInner=0.25, paddingOuter=0.15),
        axis=altair.Axis(ticks=False, domain=False, labelPadding=6, minExtent=40, maxExtent=_WIDEST_NAMES),
    )


def colour(
    field_name: str,
    names: Sequence[str],
    colours: Sequence[str],
    title: str | None = None,
    of_several: bool = False,
) -> Any:
    """Makes a colour by series, with a legend. A single series has no legend, unless it is one OF_SEVERAL
    that could be drawn."""
    import altair

    return altair.Color(
        field=field_name,
        type="nominal",
        title=title,
        sort=None,
        scale=altair.Scale(domain=list(names), range=list(colours)),
        legend=altair.Legend(columns=_legend_columns(names)) if of_several or len(names) > 1 else None,
    )


def _legend_columns(names: Sequence[str]) -> Any:
    """Returns the number of entries in each line of a legend, so that long names stay inside the picture.
    Without entries the legend has one line."""
    widest = max(cells(name) for name in names) * 6.5 + 34
    import altair

    fits = sum(cells(name) * 6.5 + 34 for name in names) <= WIDTH
    return altair.Undefined if fits else max(1, int(WIDTH // widest))


def tips(*fields: tuple[str, str]) -> list[Any]:
    """Makes the lines of a tooltip from (field, title) pairs of formatted texts."""
    import altair

    return [altair.Tooltip(field=name, type="nominal", title=title) for name, title in fields]


def finish(answer: Answer, picture: Picture, options: ChartOptions) -> altair.Chart | altair.LayerChart:
    """Returns the picture with heading, notes, size and colours."""
    import altair

    width = options.width or WIDTH
    title = picture.title if options.title is None else options.title
    said = [*_about(answer), *picture.notes, *_cut(answer, picture), *_incomplete(answer)]
    notes = [line for note in said for line in heading(note, int(width * 1.2))]
    chart = picture.chart
    if not isinstance(chart, altair.VConcatChart):
        # Panels have their own sizes, so only other charts get one here.
        chart = chart.properties(width=width, height=options.height or picture.height)
    if title or notes:
        lines = heading(title, width) if title else [""]
        chart = chart.properties(title=altair.TitleParams(text=lines, subtitle=notes or altair.Undefined))
    about = f"{title or picture.title}. {' '.join(picture.notes)}".strip()
    chart = chart.properties(description=visible(about)[:2000]).configure(**vega_config(theme_of(options)))
    return cast("altair.Chart | altair.LayerChart", chart)


def _about(answer: Answer) -> list[str]:
    """Returns the store's name and the filters, so that a picture on its own says what it shows."""
    chosen = [
        f"--{name.replace('_', '-')} {value if isinstance(value, str) else ','.join(value)}"
        for name, value in answer.options.items()
        if name != "by" and (isinstance(value, str) or _is_names(value))
    ]
    parts = [part for part in (answer.store_name, *chosen) if part]
    return [shorten("  ".join(parts), 150)] if parts else []


def _is_names(value: Any) -> bool:
    return isinstance(value, tuple | list) and bool(value) and all(isinstance(one, str) for one in value)


def _cut(answer: Answer, picture: Picture) -> list[str]:
    """Describes the rows that `--top` left out, unless the picture itself shows them."""
    totals = answer.totals
    if totals is None or totals.shown >= totals.of or any(f"{totals.of:,}" in note for note in picture.notes):
        return []
    return [totals.sentence]


def _incomplete(answer: Answer) -> list[str]:
    """Names the losses, because a picture must not look more complete than its data."""
    if not answer.losses:
        return []
    lost = ", ".join(f"{loss.name} {loss.count:,}" for loss in answer.losses)
    return [f"incomplete: {shorten(lost, 120)}"]


def empty(reason: str, title: str, options: ChartOptions) -> Picture:
    """Makes a picture that says that there is nothing to show, and why."""
    import altair

    theme = theme_of(options)
    lines = heading(reason, options.width or WIDTH)
    base = altair.Chart(values([{"head": "Nothing to show", "why": lines}])).encode(
        x=altair.value(altair.expr("width / 2")), y=altair.value(altair.expr("height / 2"))
    )
    head = base.mark_text(fontSize=18, fontWeight=600, dy=-16, color=theme.quiet).encode(text="head:N")
    why = base.mark_text(fontSize=12, dy=10, color=theme.quiet, lineHeight=16).encode(text="why:N")
    return Picture(
        altair.layer(head, why).properties(view=altair.ViewConfig(stroke=theme.grid)), title, (), 160
    )
