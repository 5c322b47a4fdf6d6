"""Formats a check-up as one self-contained HTML page without scripts. The page contains remarks, graphs,
conditions and all cells, in the style of the report of a run."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib import metadata, resources

from iodock.file_system.health.measurements import Cell, Measurements, Protocol, Unit
from iodock.file_system.views.measurement_curves import Figure, figures
from iodock.file_system.views.measurement_lines import svg
from iodock.file_system.views.measurements_words import (
    busy_text,
    cache_text,
    in_common,
    operation_text,
    size_text,
    spread_text,
    test_text,
    time_text,
    value_text,
    variant_text,
)
from iodock.file_system.views.remarks_text import none_text, remark_text
from iodock.shared.language import N_, Language
from iodock.shared.pages.markup import Markup, join, tag
from iodock.shared.pages.sheet import Page, document, joined
from iodock.shared.text import shorten, visible

SECTIONS = {
    "remarks": N_("Remarks"),
    "graphs": N_("Graphs"),
    "protocol": N_("How the measurements were made"),
    "cells": N_("All values"),
}
_GRAPHS_LEAD = N_(
    "Points show the value of all processes together, bars one standard deviation of the repeats. The "
    "vertical axis is logarithmic. Numbers in the graphs refer to the remarks below them."
)
_MOST_CELLS = 5_000
Row = tuple[str, str, bool]
"""A row of a table: heading, text, and whether the text is a number."""


def render(measurements: Measurements, text: Language) -> str:
    """Renders the HTML page of a check-up."""
    style = joined("css") + (resources.files(__package__) / "health_page.css").read_text(encoding="utf-8")
    target = measurements.protocol.target or measurements.protocol.file_system or ""
    title = text.gettext(N_("Check-up of a file system: {target}"), target=visible(target)).rstrip(": ")
    page = Page(
        title=join(title),
        header=_header(measurements, text),
        navigation=join(
            *(tag("li", tag("a", text.gettext(word), href=f"#{name}")) for name, word in SECTIONS.items())
        ),
        body=join(*_sections(measurements, text)),
        footer=tag("p", text.gettext("Created by {writer}.", writer=f"iodock {metadata.version('iodock')}")),
        style=style,
        images=True,
    )
    return document(page, text)


def _header(measurements: Measurements, text: Language) -> Markup:
    protocol = measurements.protocol
    target = protocol.target or protocol.file_system or text.gettext(N_("several results"))
    kicker = tag("p", text.gettext(N_("Check-up of a file system")), class_="kicker")
    return join(kicker, tag("h1", tag("bdi", shorten(target, 120), class_="command", translate="no")))


def _sections(measurements: Measurements, text: Language) -> tuple[Markup, ...]:
    return (
        _section("remarks", text, _remarks(measurements, text)),
        _section("graphs", text, _graphs(measurements, text)),
        _section("protocol", text, *_protocols(measurements, text)),
        _section("cells", text, _cells(measurements, text)),
    )


def _section(name: str, text: Language, *children: Markup) -> Markup:
    heading = tag("h2", text.gettext(SECTIONS[name]), id=f"{name}-title")
    return tag("section", heading, *children, id=name, aria_labelledby=f"{name}-title")


def _remarks(measurements: Measurements, text: Language) -> Markup:
    common = in_common(measurements.cells)
    if measurements.remarks:
        items = (tag("li", remark_text(remark, text, common)) for remark in measurements.remarks)
        return tag("ul", *items, class_="all-remarks")
    return tag("p", none_text(measurements, text), class_="empty")


def _graphs(measurements: Measurements, text: Language) -> Markup:
    drawn = [
        _figure(one, measurements, text) for one in figures(measurements.cells, measurements.remarks, text)
    ]
    if not drawn:
        why = text.gettext(N_("No graph: a graph needs several numbers of processes, or several sizes"))
        return tag("p", why, class_="empty")
    lead = tag("p", text.gettext(_GRAPHS_LEAD), class_="note")
    return join(lead, tag("div", *drawn, class_="figures-grid"))


def _figure(figure: Figure, measurements: Measurements, text: Language) -> Markup:
    common = in_common(measurements.cells)
    picture = base64.b64encode(svg(figure, text).encode()).decode()
    said = [tag("li", remark_text(remark, text, common)) for remark in figure.remarks]
    return tag(
        "figure",
        tag("figcaption", figure.title),
        tag("img", src=f"data:image/svg+xml;base64,{picture}", alt=figure.title),
        tag("ol", *said, class_="remarks") if said else None,
    )


def _protocols(measurements: Measurements, text: Language) -> list[Markup]:
    parts = measurements.protocol.parts or (measurements.protocol,)
    return [tag("dl", *_facts(part, text), class_="facts") for part in parts[:50]]


def _facts(protocol: Protocol, text: Language) -> list[Markup]:
    tool = " ".join(part for part in (protocol.tool, protocol.version) if part)
    limits = (f"{one.name} {value_text(one.bytes_per_s, Unit.BYTES_PER_S)}" for one in protocol.limits)
    settings = (
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in protocol.settings.items()
        if value is not None
    )
    facts: list[tuple[str, str | None]] = [
        (N_("program"), tool),
        (N_("started"), protocol.started),
        (N_("finished"), protocol.finished),
        (N_("host"), protocol.host),
        (N_("measured in"), protocol.target),
        (N_("file system"), protocol.file_system),
        (N_("command"), protocol.command),
        (N_("limits"), text.listed(limits)),
        (N_("settings"), text.listed(settings)),
        *((N_("note"), note) for note in protocol.notes),
    ]
    return [
        tag("div", tag("dt", text.gettext(name)), tag("dd", visible(value))) for name, value in facts if value
    ]


def _cells(measurements: Measurements, text: Language) -> Markup:
    common = in_common(measurements.cells)
    rows = [_row(cell, text, common) for cell in measurements.cells[:_MOST_CELLS]]
    if not rows:
        return tag("p", text.gettext(N_("no cell was measured")), class_="empty")
    shown = [at for at in range(len(rows[0])) if any(row[at][1] for row in rows)]
    head = [_cell("th", rows[0][at][0], rows[0][at][2]) for at in shown]
    body = [tag("tr", *(_cell("td", row[at][1], row[at][2]) for at in shown)) for row in rows]
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))
    frame = tag("div", table, class_="table-frame", tabindex="0")
    note = tag("p", variant_text(common), class_="note") if common else None
    return join(note, frame)


def _cell(name: str, content: str, is_number: bool) -> Markup:
    return tag(name, content, class_="number" if is_number else "text", scope="col" if name == "th" else None)


def _row(cell: Cell, text: Language, common: dict[str, str]) -> Sequence[Row]:
    latency = cell.latency_ns
    return (
        (text.gettext(N_("test")), test_text(cell.test, text), False),
        (text.gettext(N_("operation")), operation_text(cell.operation, text), False),
        (text.gettext(N_("how")), variant_text(cell.variant, common), False),
        (text.gettext(N_("size")), size_text(cell.size_bytes), True),
        (text.gettext(N_("processes")), "" if cell.processes is None else f"{cell.processes:,}", True),
        (text.gettext(N_("nodes")), "" if cell.nodes is None else f"{cell.nodes:,}", True),
        (text.gettext(N_("value")), value_text(cell.value, cell.unit), True),
        (text.gettext(N_("spread")), spread_text(cell.spread), True),
        (text.gettext(N_("repeats")), "" if cell.repeats is None else f"{cell.repeats:,}", True),
        ("p50", time_text(latency.p50 if latency else None), True),
        ("p99", time_text(latency.p99 if latency else None), True),
        (text.gettext(N_("longest")), time_text(latency.max if latency else None), True),
        (text.gettext(N_("cache")), cache_text(cell.cache, text), False),
        (text.gettext(N_("other load")), busy_text(cell, text), False),
    )
