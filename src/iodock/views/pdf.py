"""An answer as a PDF picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iodock.views.charts.options import ChartOptions

if TYPE_CHECKING:
    from iodock.answer import Answer


def render(answer: Answer, options: ChartOptions | None = None, chart: str | None = None) -> bytes:
    """The chart of that name (the analysis's first if None) as PDF; see `iodock.views.charts`.

    Raises UnknownChart for a name that is not there.
    """
    from iodock.views.charts.export import to_pdf

    return to_pdf(answer, chart, options or ChartOptions())
