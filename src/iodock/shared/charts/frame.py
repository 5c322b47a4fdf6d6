"""Completes a chart with its heading, notes, colours and size, and makes the picture that is shown if there
is no data."""

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

# The default width of the plot in pixels. It is the width of a column on A4 paper at 96 dots per inch.
WIDTH = 680
HEIGHT = 320
_BAR_PIXELS = 19
# Maximum width of the names on an axis in pixels. Without this setting, Vega would draw the title of the axis
# over names that are wider than 200 pixels.
_WIDEST_NAMES = 420


@dataclass(frozen=True, slots=True)
class Picture:
    """The marks of a chart without a frame. `chart` is a single or layered altair view, whose width a page
    can change."""

    chart: Any
    title: str
    notes: Sequence[str] = field(default_factory=tuple)
    height: int = HEIGHT


def theme_of(options: ChartOptions) -> Theme:
    """Returns the colours of the theme that the user chose."""
    return THEMES[options.theme]


def bars_height(bars: int) -> int:
    """Returns the height in pixels of a plot with BARS horizontal bars."""
    return max(60, bars * _BAR_PIXELS)


def values(rows: Iterable[dict[str, Any]]) -> Any:
    """Returns rows as chart data that is embedded in the specification. Altair's other ways of passing data
    would need a file or an address, or limit the number of rows."""
    import altair

    return altair.InlineData(values=list(rows))


def x_measure(field_name: str, title: str, unit: Unit, maximum: float) -> Any:
    """Makes a horizontal linear axis that starts at 0. It has ticks at round numbers of the unit."""
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
    """Makes the colours of series and their legend. A single series gets a legend only if OF_SEVERAL states
    that there could be others."""
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
    """Returns the number of entries per line of a legend. All entries are in one line if they fit into the
    width of the picture."""
    widest = max(cells(name) for name in names) * 6.5 + 34
    import altair

    fits = sum(cells(name) * 6.5 + 34 for name in names) <= WIDTH
    return altair.Undefined if fits else max(1, int(WIDTH // widest))


def tips(*fields: tuple[str, str]) -> list[Any]:
    """Makes the lines of a tooltip. Each pair consists of a field that contains formatted text, and its
    title."""
    import altair

    return [altair.Tooltip(field=name, type="nominal", title=title) for name, title in fields]


def finish(answer: Answer, picture: Picture, options: ChartOptions) -> altair.Chart | altair.LayerChart:
    """Returns the chart with its heading, notes, size and colours."""
    import altair

    width = options.width or WIDTH
    title = picture.title if options.title is None else options.title
    said = [*_about(answer), *picture.notes, *_cut(answer, picture), *_incomplete(answer)]
    notes = [line for note in said for line in heading(note, int(width * 1.2))]
    chart = picture.chart
    if not isinstance(chart, altair.VConcatChart):
        # A chart of several panels has a size for each panel, so the size is not set here.
        chart = chart.properties(width=width, height=options.height or picture.height)
    if title or notes:
        lines = heading(title, width) if title else [""]
        chart = chart.properties(title=altair.TitleParams(text=lines, subtitle=notes or altair.Undefined))
    about = f"{title or picture.title}. {' '.join(picture.notes)}".strip()
    chart = chart.properties(description=visible(about)[:2000]).configure(**vega_config(theme_of(options)))
    return cast("altair.Chart | altair.LayerChart", chart)


def _about(answer: Answer) -> list[str]:
    """Returns the name of the store and the filters. A picture that is copied elsewhere then still shows what
    it is about."""
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
    """Returns the number of rows that `--top` left out, unless a note of the picture already mentions it."""
    totals = answer.totals
    if totals is None or totals.shown >= totals.of or any(f"{totals.of:,}" in note for note in picture.notes):
        return []
    return [totals.sentence]


def _incomplete(answer: Answer) -> list[str]:
    """Returns a note about losses, so that readers know that the data is incomplete."""
    if not answer.losses:
        return []
    lost = ", ".join(f"{loss.name} {loss.count:,}" for loss in answer.losses)
    return [f"incomplete: {shorten(lost, 120)}"]


def empty(reason: str, title: str, options: ChartOptions) -> Picture:
    """Makes a picture without data, which states that there is nothing to show, and the reason."""
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
