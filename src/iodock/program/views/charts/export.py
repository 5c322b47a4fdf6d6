"""Draws the chart of an answer in each output format."""

from __future__ import annotations

from iodock.program.views.charts import ChartOptions, specification
from iodock.shared.answer import Answer
from iodock.shared.charts import draw as drawing


def draw(form: str, answer: Answer, chart: str | None = None, options: ChartOptions | None = None) -> bytes:
    """Draws the chart of this name in one of `CHART_FORMATS`. If the name is None, draws the analysis's
    first chart. Raises UnknownChart for a name that does not exist."""
    options = options or ChartOptions()
    spec = specification(answer, chart, options)
    if form == "png":
        return drawing.png_of(spec, options.scale)
    if form == "svg":
        return drawing.svg_of(spec).encode()
    if form == "pdf":
        return drawing.pdf_of(spec)
    return drawing.html_of(spec, options.theme, options.width is not None)
