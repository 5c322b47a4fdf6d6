"""Specifications to bytes, by vl-convert: a renderer inside this process, which needs no browser and no network."""

from __future__ import annotations

import json
import re
from typing import Any

from iodock.answer import Answer
from iodock.views.charts import ChartOptions, specification
from iodock.views.charts.theme import CJK_FONT, FONT

#: Nothing may be loaded while drawing: the data is in the specification. An empty list denies every address.
_NO_ADDRESS: list[str] = []

_EAST_ASIAN = re.compile("[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; \
style-src 'unsafe-inline'; img-src data: blob:">
<title>{title}</title>
<style>
html {{ background: {background}; color: {ink}; font-family: {font}; }}
body {{ margin: 1rem auto; padding: 0 1rem; max-width: {page_width}; }}
#chart {{ width: 100%; overflow-x: auto; }}
.vega-embed {{ width: 100%; }}
@media print {{ details {{ display: none; }} body {{ margin: 0; }} }}
</style>
<script>{bundle}</script>
</head>
<body>
<div id="chart" role="img" aria-label="{title}"><noscript>This chart needs JavaScript.</noscript></div>
<script>
vegaEmbed("#chart", {spec}, {{mode: "vega-lite", renderer: "svg", tooltip: {{theme: "{tooltip}"}},
  actions: {{export: {{png: true, svg: true}}, source: false, compiled: false, editor: false}}}})
  .catch(function (error) {{ document.getElementById("chart").textContent = String(error); }});
</script>
</body>
</html>
"""


def to_png(answer: Answer, chart: str | None, options: ChartOptions) -> bytes:
    """A PNG picture, `options.scale` pixels for each of the chart's."""
    import vl_convert

    spec = _static(answer, chart, options)
    drawn: bytes = vl_convert.vegalite_to_png(spec, scale=options.scale, allowed_base_urls=_NO_ADDRESS)
    return drawn


def to_svg(answer: Answer, chart: str | None, options: ChartOptions) -> bytes:
    """An SVG picture, UTF-8, with text as text."""
    import vl_convert

    spec = _static(answer, chart, options)
    drawn: str = vl_convert.vegalite_to_svg(spec, allowed_base_urls=_NO_ADDRESS)
    return drawn.encode()


def to_pdf(answer: Answer, chart: str | None, options: ChartOptions) -> bytes:
    """A PDF of one page, the size of the chart, fonts embedded."""
    import vl_convert

    spec = _static(answer, chart, options)
    drawn: bytes = vl_convert.vegalite_to_pdf(spec, allowed_base_urls=_NO_ADDRESS)
    return drawn


def _static(answer: Answer, chart: str | None, options: ChartOptions) -> str:
    """The specification as JSON. The renderer swaps a whole text to the first font that has a missing character,
    of any style it finds; so where there are East Asian ones, a family that has them is asked for by name."""
    spec = specification(answer, chart, options)
    text = json.dumps(spec, ensure_ascii=False)
    if _EAST_ASIAN.search(text):
        spec["config"]["font"] = f"{CJK_FONT}, {spec['config']['font']}"
    return json.dumps(spec)


def to_html(answer: Answer, chart: str | None, options: ChartOptions) -> bytes:
    """A page that works offline: the libraries and the data are in it, and it is forbidden to load anything."""
    import html

    import vl_convert

    from iodock.views.charts.frame import WIDTH, theme_of

    spec = specification(answer, chart, options)
    title = _plain_title(spec)
    if options.width is None:
        spec = _stretched(spec)
    theme = theme_of(options)
    page = _PAGE.format(
        title=html.escape(title, quote=True),
        background=theme.background,
        ink=theme.ink,
        font=FONT,
        page_width="none" if options.width else f"{WIDTH + 320}px",
        bundle=vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"),
        spec=in_script(spec),
        tooltip="dark" if options.theme == "dark" else "light",
    )
    return page.encode()


def in_script(value: Any) -> str:
    """JSON that may stand inside a `<script>` element: no name in it can end the element or open a comment."""
    text = json.dumps(value)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _stretched(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification as wide as the page. Heights stay: a bar needs its line."""
    return spec | {"width": "container", "autosize": {"type": "fit-x", "contains": "padding", "resize": True}}


def _plain_title(spec: dict[str, Any]) -> str:
    title = spec.get("title")
    lines = title.get("text", "") if isinstance(title, dict) else ""
    text = " ".join(lines) if isinstance(lines, list) else str(lines)
    return text or "iodock chart"
