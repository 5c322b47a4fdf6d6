"""Draws the heatmap, with ranks from top to bottom and time from left to right."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10

from iodock.program.views.counters.data import Heat
from iodock.shared.language import N_, Language
from iodock.shared.pages.markup import Markup, tag
from iodock.shared.units import BYTES, NANOSECONDS

_WIDTH, _ROW = 840.0, 7.0
_LEAST, _STRONGEST = 0.15, 1.0


def heat_figure(heat: Heat, text: Language) -> Markup:
    """Draws the cells that have bytes. More bytes make a cell more opaque. Reads and writes are next to
    each other in different colours."""
    height = max(_ROW * heat.rows, 3 * _ROW)
    most = max((max(read, written) for _, _, read, written in heat.cells), default=0)
    title = text.gettext(N_("Bytes of each rank over time, {interface}"), interface=heat.interface)
    picture = tag(
        "svg",
        tag("title", title),
        *_rects(heat, height / heat.rows, most, text),
        viewBox=f"0 0 {_WIDTH:g} {height:g}",
        class_="heat",
        role="img",
        aria_label=title,
    )
    return tag(
        "figure",
        tag("figcaption", title, class_="caption-title"),
        tag("div", picture, class_="heat-frame"),
        tag("p", _said(heat, most, text), class_="note"),
        _legend(text),
    )


def _rects(heat: Heat, row_height: float, most: int, text: Language) -> Iterator[Markup]:
    width = _WIDTH / heat.columns
    for row, column, read, written in heat.cells:
        said = text.gettext(
            N_("rank {rank}, {at} after the start: read {read}, written {written}"),
            rank=f"{row * heat.ranks_per_row:,}",
            at=NANOSECONDS.text(column * heat.cell_ns),
            read=BYTES.text(read),
            written=BYTES.text(written),
        )
        parts = [(read, "heat-read"), (written, "heat-write")]
        shown = [(value, kind) for value, kind in parts if value]
        for at, (value, kind) in enumerate(shown):
            yield tag(
                "rect",
                tag("title", said),
                x=f"{column * width:.2f}",
                y=f"{(row + at / len(shown)) * row_height:.2f}",
                width=f"{width:.2f}",
                height=f"{row_height / len(shown):.2f}",
                fill_opacity=f"{_strength(value, most):.2f}",
                class_=kind,
            )


def _strength(value: int, most: int) -> float:
    # The scale is logarithmic, because the bytes of cells differ by powers of ten.
    share = log10(1 + value) / log10(1 + most) if most else 0.0
    return _LEAST + (_STRONGEST - _LEAST) * share


def _said(heat: Heat, most: int, text: Language) -> str:
    return text.gettext(
        N_(
            "From left to right: {time} in cells of {cell}. From top to bottom: {ranks} ranks, {every} per"
            " row. A stronger colour means more bytes, on a logarithmic scale up to {most}."
        ),
        time=NANOSECONDS.text(heat.end_ns - heat.start_ns),
        cell=NANOSECONDS.text(heat.cell_ns),
        ranks=f"{heat.ranks:,}",
        every=f"{heat.ranks_per_row:,}",
        most=BYTES.text(most),
    )


def _legend(text: Language) -> Markup:
    entries = (("read", N_("read")), ("write", N_("written")))
    shown = (
        tag("span", tag("span", class_=f"swatch heat-{kind}"), text.gettext(word), class_="legend-entry")
        for kind, word in entries
    )
    return tag("p", tag("span", *shown, class_="legend"), class_="note")
