"""A flame graph as an SVG file: one box for each frame, as wide as what it weighs.

In a browser a click zooms, `/` searches and Escape shows all again. A viewer without scripts shows the whole.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import BinaryIO

from iodock.program.exports.paths import Paths
from iodock.program.relations.flames import Frame
from iodock.shared.language import Language
from iodock.shared.units import unit_of

_ROW, _TOP = 18, 80
_LEAST_SHARE = 1 / 5000
"""Narrower frames would be less than a pixel wide."""
_COLUMNS = {"time": "total_time_ns", "bytes": "read_bytes", "calls": "count"}
_COLOURS = {
    "program": "#d9d9d9",
    "function": "#f2b45a",
    "call": "#8cc5ea",
    "file": "#9fd4b5",
    "unknown": "#e6e0d4",
}
_ROOT = Frame("program", "")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = """svg{font:12px "Noto Sans","DejaVu Sans","Noto Sans CJK JP","Noto Sans JP",sans-serif}
.frame{cursor:pointer}.frame rect{stroke:#fff;stroke-width:1}.frame:focus{outline:none}
.frame:hover rect,.frame:focus rect{stroke:#111;stroke-width:2}.above rect{opacity:.55}
.found rect{fill:#cc79a7}.key{fill:#0059a0;cursor:pointer;text-decoration:underline}.quiet{fill:#555}"""


@dataclass(slots=True)
class _Box:
    """A frame below its callers."""

    frame: Frame
    weight: int = 0
    inside: dict[int, _Box] = field(default_factory=dict)


def write_flame(paths: Paths, out: BinaryIO, text: Language) -> None:
    """The chosen weight alone."""
    weight = paths.weights[0]
    whole = _Box(_ROOT)
    for path in paths:
        added = path.weight(weight)
        if not added:
            continue
        box = whole
        box.weight += added
        for number in path.frames:
            box = box.inside.setdefault(number, _Box(paths.frames[number]))
            box.weight += added
    boxes = list(_laid_out(whole))
    depth = 1 + max(at for at, _, _ in boxes)
    out.write(_head(paths, text, _TOP + depth * _ROW + 8).encode())
    for at, start, box in boxes:
        out.write(_drawn(at, start, box, whole, weight, text).encode("utf-8", "replace"))
    script = (File(__file__).parent / "flame.js").read_text(encoding="utf-8")
    out.write(f"<script><![CDATA[\n{script}]]></script>\n</svg>\n".encode())


def _laid_out(whole: _Box) -> Iterator[tuple[int, int, _Box]]:
    """Depth, sum of the weights to the left, and box: each before those inside it, from left to right."""
    waiting = [(0, 0, whole)]
    while waiting:
        depth, start, box = waiting.pop()
        yield depth, start, box
        inside, begin = [], start
        for one in sorted(box.inside.values(), key=lambda one: (one.frame.title, one.frame.kind)):
            if one.weight >= whole.weight * _LEAST_SHARE:
                inside.append((depth + 1, begin, one))
            begin += one.weight
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
 data-ask="{_xml(ask)}"><style>{_STYLE}</style>
<rect width="100%" height="100%" fill="#fff"/>
<text x="8" y="20" font-size="15" font-weight="bold">{_xml(titles[paths.weights[0]])}</text>
<text x="8" y="38" class="quiet">{_xml(paths.store.name)}</text>
<text x="8" y="55" class="quiet">{_xml(keys)}</text>
<text x="8" y="73">
<tspan id="search" class="key" tabindex="0" role="button">{_xml(text.gettext("Search"))}</tspan>
<tspan id="whole" class="key" tabindex="0" role="button" dx="12">{_xml(text.gettext("Show all"))}</tspan>
<tspan id="found" dx="12" role="status"></tspan></text>
"""


def _drawn(depth: int, start: int, box: _Box, whole: _Box, weight: str, text: Language) -> str:
    name = _xml(box.frame.title or text.gettext("All"))
    total = whole.weight or 1
    amount = _xml(unit_of(_COLUMNS[weight]).text(box.weight))
    said = f"{name}: {amount}, {100 * box.weight / total:.1f} %"
    place = (
        f'x="{100 * start / total:.6f}%" y="{_TOP + depth * _ROW}" width="{100 * box.weight / total:.6f}%"'
    )
    return f"""<svg class="frame" {place} height="{_ROW}" overflow="hidden" tabindex="0" role="button"
 aria-label="{said}" data-name="{name}" data-depth="{depth}" data-weight="{box.weight}"><title>{said}</title>
<rect width="100%" height="{_ROW}" fill="{_COLOURS[box.frame.kind]}"/><text x="4" y="13">{name}</text></svg>
"""


def _xml(text: str) -> str:
    return html.escape(_NOT_XML.sub("\ufffd", text))
