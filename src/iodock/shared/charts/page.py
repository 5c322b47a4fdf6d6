"""Makes an HTML page for a chart. The heading and the notes are text of the page, and the chart is as wide as
the window.

The page contains all scripts and data, and its security policy forbids loading anything.
"""

from __future__ import annotations

import html
import json
from typing import Any

from iodock.shared.charts.frame import WIDTH
from iodock.shared.charts.theme import FONT, Theme
from iodock.shared.text import visible

# Width of the window in pixels below which the chart gets short labels and a vertical legend.
_NARROW = 620

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:">
<title>{title}</title>
<style>
html {{ background: {background}; color: {ink}; font-family: {font}; }}
body {{ margin: 1rem auto; padding: 0 1rem; max-width: {page_width}; }}
h1 {{ font-size: 1.2rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }}
p {{ font-size: .9rem; color: {quiet}; margin: 0 0 .8rem; overflow-wrap: anywhere; }}
#chart {{ width: 100%; overflow-x: auto; }}
#chart .vega-embed {{ width: 100%; }}
@media print {{ body {{ margin: 0; }} }}
</style>
<script>{bundle}</script>
</head>
<body>
{heading}
<div id="chart"><noscript>This chart needs JavaScript.</noscript></div>
<script>
"use strict";
const specification = {spec};
const box = document.getElementById("chart");
let drawnNarrow = null;

/* On a narrow window the labels would leave no room for the plot. */
function squeeze(node, width) {{
  if (node === null || typeof node !== "object") return;
  if (node.legend) node.legend.columns = 1;
  if (node.axis && node.axis.minExtent) node.axis.labelLimit = width * 0.36;
  if (node.axis) node.axis.titleLimit = width * 0.7;
  if (node.mark && node.mark.type === "text") node.mark.limit = width * 0.5;
  for (const [name, value] of Object.entries(node)) {{
    if (name !== "datasets" && name !== "data") squeeze(value, width);
  }}
}}

function draw() {{
  const narrow = {stretches} && box.clientWidth < {narrow};
  const copy = structuredClone(specification);
  /* Panels can't take the width of what they stand in by themselves. */
  const panels = {stretches} && copy.vconcat ? copy.vconcat : [];
  for (const panel of panels) panel.width = Math.max(120, box.clientWidth - 110);
  if (narrow === drawnNarrow && !panels.length) return;
  drawnNarrow = narrow;
  if (narrow) squeeze(copy, box.clientWidth);
  const options = {{mode: "vega-lite", renderer: "svg", actions: false, tooltip: {{theme: "{tooltip}"}}}};
  vegaEmbed(box, copy, options)
    .catch(function (error) {{ box.textContent = String(error); }});
}}
draw();
window.addEventListener("resize", draw);
</script>
</body>
</html>
"""


def page(spec: dict[str, Any], bundle: str, theme: Theme, fixed_width: bool) -> str:
    """Makes the page that draws SPEC with the drawing libraries in BUNDLE. If FIXED_WIDTH is set, the chart
    keeps its own width. Otherwise it is as wide as the window."""
    title, notes = _lines(spec, "text"), _lines(spec, "subtitle")
    heading = "\n".join(
        [f"<h1>{'<br>'.join(map(_escaped, title))}</h1>"] * bool(any(title))
        + [f"<p>{'<br>'.join(map(_escaped, notes))}</p>"] * bool(notes)
    )
    spec = {name: value for name, value in spec.items() if name != "title"}
    if not fixed_width and "vconcat" not in spec:
        spec |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    return _PAGE.format(
        title=_escaped(" ".join(title).strip() or "iodock chart"),
        heading=heading,
        background=theme.background,
        ink=theme.ink,
        quiet=theme.quiet,
        font=FONT,
        page_width="none" if fixed_width else f"{WIDTH + 320}px",
        bundle=bundle,
        spec=in_script(spec),
        stretches="false" if fixed_width else "true",
        narrow=_NARROW,
        tooltip="dark" if theme.dark else "light",
    )


def _escaped(line: str) -> str:
    return html.escape(visible(line))


def in_script(value: Any) -> str:
    """Formats a value as JSON that is safe inside a `<script>` element. Characters that could end the element
    or start a comment are replaced by escapes."""
    text = json.dumps(value)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _lines(spec: dict[str, Any], name: str) -> list[str]:
    title = spec.get("title")
    found = title.get(name, []) if isinstance(title, dict) else []
    return [str(line) for line in found] if isinstance(found, list) else [str(found)]
