"""An answer as a page with one interactive chart, which works offline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iodock.views.charts.options import ChartOptions

if TYPE_CHECKING:
    from iodock.answer import Answer


def render(answer: Answer, options: ChartOptions | None = None, chart: str | None = None) -> bytes:
    """The chart of that name (the analysis's first if None) as HTML, UTF-8; see `iodock.views.charts`.

    Without a width of its own the chart takes the page's. Raises UnknownChart for a name that is not there.
    """
    from iodock.views.charts.export import to_html

    return to_html(answer, chart, options or ChartOptions())
