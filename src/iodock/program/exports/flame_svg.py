"""Writes a flame graph as an SVG file, with one box for each frame. The width of a box shows the frame's
weight.

In a browser, a click on a box zooms in, `/` searches, and Escape returns to the whole graph. A viewer that
does not run scripts shows the whole graph.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import BinaryIO

from iodock.program.relations.boxes import Box, by_name, tree_of
from iodock.program.relations.paths import Paths
from iodock.shared.language import Language
from iodock.shared.pages.sheet import asset
from iodock.shared.units import unit_of

_ROW, _TOP = 18, 80
_LEAST_SHARE = 1 / 5000
"""Frames with a smaller share would be less than a pixel wide, and are left out."""
_COLUMNS = {"time": "total_time_ns", "bytes": "read_bytes", "calls": "count"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = """svg{font:12px "Noto Sans","DejaVu Sans","Noto Sans CJK JP","Noto Sans JP",sans-serif}
.key{fill:#0059a0;cursor:pointer;text-decoration:underline}.quiet{fill:#555}
"""


def write_flame(paths: Paths, out: BinaryIO, text: Language) -> None:
    """Writes a flame graph whose widths show the chosen weight."""
    weight = paths.weights[0]
    whole = tree_of(paths)
    boxes = list(_laid_out(whole, weight))
    depth = 1 + max(at for at, _, _ in boxes)
    out.write(_head(paths, text, _TOP + depth * _ROW + 8).encode())
    for at, start, box in boxes:
        out.write(_drawn(at, start, box, whole, weight, text).encode("utf-8", "replace"))
    script = asset("js", "44-flame.js")
    out.write(f"<script><![CDATA[\n'use strict';\n{script}startFlameFile();\n]]></script>\n</svg>\n".encode())


def _laid_out(whole: Box, weight: str) -> Iterator[tuple[int, int, Box]]:
    """Yields for each box its depth, the position of its left edge (as a sum of weights), and the box itself.
    A box comes before the boxes inside it, which come from left to right."""
    waiting = [(0, 0, whole)]
    while waiting:
        depth, start, box = waiting.pop()
        yield depth, start, box
        inside, begin = [], start
        for one in sorted(box.inside.values(), key=by_name):
            # In an empty run the root has the weight 0, so every box would pass the second condition.
            if one.weight(weight) and one.weight(weight) >= whole.weight(weight) * _LEAST_SHARE:
                inside.append((depth + 1, begin, one))
            begin += one.weight(weight)
        waiting += reversed(inside)


def _head(paths: Paths, text: Language, height: int) -> str:
    titles = {
        "time": text.gettext("I/O time by program, function, call and file"),
        "bytes": text.gettext("Bytes read and written by program, function, call and file"),
        "calls": text.gettext("Calls by program, function, call and file"),
    }
    ask = text.gettext("Part of a name of a program, function, call or file")
    keys = text.gettext("Click or Enter: zoom. Escape: show all. /: search.")
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{height}" lang="{text.code}"
 data-ask="{_xml(ask)}"><style>{_STYLE}{asset("css", "35-flame.css")}</style>
<rect width="100%" height="100%" fill="#fff"/>
<text x="8" y="20" font-size="15" font-weight="bold">{_xml(titles[paths.weights[0]])}</text>
<text x="8" y="38" class="quiet">{_xml(paths.store.name)}</text>
<text x="8" y="55" class="quiet">{_xml(keys)}</text>
<text x="8" y="73">
<tspan id="search" class="key" tabindex="0" role="button">{_xml(text.gettext("Search"))}</tspan>
<tspan id="whole" class="key" tabindex="0" role="button" dx="12">{_xml(text.gettext("Show all"))}</tspan>
<tspan id="found" dx="12" role="status"></tspan></text>
"""


def _drawn(depth: int, start: int, box: Box, whole: Box, weight: str, text: Language) -> str:
    name = _xml(box.frame.title or text.gettext("All"))
    own, total = box.weight(weight), whole.weight(weight) or 1
    amount = _xml(unit_of(_COLUMNS[weight]).text(own))
    said = f"{name}: {amount}, {100 * own / total:.1f} %"
    place = f'x="{100 * start / total:.6f}%" y="{_TOP + depth * _ROW}" width="{100 * own / total:.6f}%"'
    return f"""<svg class="frame of-{box.frame.kind}" {place} height="{_ROW}" overflow="hidden"
 tabindex="-1" role="button" aria-label="{said}" data-name="{name}" data-depth="{depth}" data-weight="{own}">
<title>{said}</title><rect width="100%" height="{_ROW}"/><text x="4" y="13">{name}</text></svg>
"""


def _xml(text: str) -> str:
    return html.escape(_NOT_XML.sub("\ufffd", text))
