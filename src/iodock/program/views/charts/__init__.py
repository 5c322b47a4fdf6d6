"""Draws each analysis as a chart from one altair specification, whatever the output format (PNG, SVG, PDF,
HTML).

The drawing library is imported only when something is drawn. A specification contains its own data, names no
address and loads nothing from the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iodock.shared.charts.options import ChartOptions
from iodock.shared.errors import RequestError

if TYPE_CHECKING:
    import altair

    from iodock.program.views.charts.registry import ChartKind
    from iodock.shared.answer import Answer

__all__ = ["ChartOptions", "UnknownChart", "chart_docs", "charts_for", "render_chart", "specification"]


class UnknownChart(ValueError):
    """Raised if a chart, or one of its series, does not exist. The text lists the existing ones."""


def charts_for(analysis: str) -> list[str]:
    """Returns the names of the charts of an analysis. Its default chart comes first."""
    from iodock.program.views.charts.registry import kinds_for

    return [kind.name for kind in kinds_for(analysis)]


def chart_docs(analysis: str) -> dict[str, str]:
    """Returns the description of each chart of an analysis by the chart's name. Its default chart comes
    first."""
    from iodock.program.views.charts.registry import kinds_for

    return {kind.name: kind.doc for kind in kinds_for(analysis)}


def render_chart(
    answer: Answer, chart: str | None = None, options: ChartOptions | None = None
) -> altair.Chart | altair.LayerChart:
    """Returns an answer as an altair chart, ready to be saved or shown in a notebook.

    CHART is a name from `charts_for(answer.analysis)`; None takes the first. If there is nothing to draw, the
    picture says why; this is never an error. Raises UnknownChart for a chart or a series (`options.only`)
    that does not exist, and RequestError if an answer has only a part of its rows and the chart needs all of
    them.
    """
    from iodock.program.views.charts.source import CannotDraw
    from iodock.shared.charts.frame import empty, finish

    options = options or ChartOptions()
    kind = _kind(answer.analysis, chart)
    _check_series(kind, options)
    _check_rows(kind, answer)
    try:
        picture = kind.draw(answer, options)
    except CannotDraw as nothing:
        picture = empty(str(nothing), kind.title, options)
    return finish(answer, picture, options)


def specification(
    answer: Answer, chart: str | None = None, options: ChartOptions | None = None
) -> dict[str, Any]:
    """Returns the Vega-Lite specification of `render_chart` as plain data, for pages that draw the chart
    themselves."""
    # altair does not check the specification against its schema here, because that takes longer than drawing.
    # Tests check every chart.
    found: dict[str, Any] = render_chart(answer, chart, options).to_dict(validate=False)
    found.pop("$schema", None)
    return found


def _kind(analysis: str, chart: str | None) -> ChartKind:
    from iodock.program.views.charts.registry import kinds_for

    kinds = kinds_for(analysis)
    if chart is None:
        return kinds[0]
    for kind in kinds:
        if kind.name == chart:
            return kind
    raise UnknownChart(f"{analysis} has no chart {chart!r}; it has {', '.join(kind.name for kind in kinds)}")


def _check_rows(kind: ChartKind, answer: Answer) -> None:
    given = [f"--{name}" for name in ("top", "sort") if answer.options.get(name) is not None]
    if kind.needs_all and given:
        raise RequestError(
            f"chart {kind.name} draws all rows, so {' and '.join(given)} can't be used",
            "tables and data have --top and --sort",
        )


def _check_series(kind: ChartKind, options: ChartOptions) -> None:
    unknown = [name for name in options.only if name not in kind.only]
    if unknown:
        there = f"it has {', '.join(kind.only)}" if kind.only else "the chart has one series only"
        raise UnknownChart(f"chart {kind.name} has no series {unknown[0]!r}; {there}")
