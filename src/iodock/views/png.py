"""An answer as a PNG picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iodock.views.charts.options import ChartOptions

if TYPE_CHECKING:
    from iodock.answer import Answer


def render(answer: Answer, options: ChartOptions | None = None, chart: str | None = None) -> bytes:
    """The chart of that name (the analysis's first if None) as PNG; see `iodock.views.charts`.

    Raises UnknownChart for a name that is not there.
    """
    from iodock.views.charts.export import to_png

    return to_png(answer, chart, options or ChartOptions())
