"""Formats a check-up as a PDF for printing. It shows all graphs below each other, with the remarks on
each."""

from __future__ import annotations

from typing import Any

from iodock.file_system.health.measurements import Measurements
from iodock.file_system.views.measurement_curves import Figure, figures
from iodock.file_system.views.measurement_lines import specification
from iodock.file_system.views.measurements_words import in_common
from iodock.file_system.views.remarks_text import remark_text
from iodock.shared.charts.draw import pdf_of
from iodock.shared.charts.frame import WIDTH
from iodock.shared.charts.theme import THEMES, vega_config
from iodock.shared.language import N_, Language
from iodock.shared.text import heading, visible

_WRAP = int(WIDTH * 1.15)


def render(measurements: Measurements, text: Language) -> bytes:
    """Renders the PDF. It has a single page that is as high as all graphs together."""
    return pdf_of(sheet(measurements, text))


def sheet(measurements: Measurements, text: Language) -> dict[str, Any]:
    """Makes the Vega-Lite specification of the page."""
    drawn = figures(measurements.cells, measurements.remarks, text)
    config = vega_config(THEMES["light"])
    # The title of a graph is centred over the graph itself. By default, Vega would centre it over the whole
    # page.
    config["title"] = {**config["title"], "frame": "bounds"}
    views = [_view(one, measurements, text) for one in drawn] or [_nothing(text)]
    # Vega-Lite accepts named data sets only at the top level of a specification, so those of all graphs are
    # moved there.
    datasets = {name: rows for view in views for name, rows in view.pop("datasets", {}).items()}
    return {
        "vconcat": views,
        "spacing": 36,
        "title": _title(measurements, text),
        "config": config,
        "datasets": datasets,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
    }


def _title(measurements: Measurements, text: Language) -> dict[str, Any]:
    protocol = measurements.protocol
    target = protocol.target or protocol.file_system or text.gettext(N_("several results"))
    said = " ".join(one for one in (protocol.tool, protocol.version, protocol.started, protocol.host) if one)
    return {
        "text": heading(
            text.gettext(N_("Check-up of a file system: {target}"), target=visible(target)), WIDTH
        ),
        "subtitle": heading(visible(said), _WRAP) if said else [],
        "fontSize": 18,
    }


def _view(figure: Figure, measurements: Measurements, text: Language) -> dict[str, Any]:
    spec = specification(figure, text)
    spec.pop("config", None)
    common = in_common(measurements.cells)
    said = [
        line
        for number, remark in enumerate(figure.remarks, 1)
        for line in heading(f"{number}. {remark_text(remark, text, common)}", _WRAP)
    ]
    return {
        **spec,
        "title": {"text": figure.title, "subtitle": said},
        "resolve": {"scale": {"color": "shared"}},
    }


def _nothing(text: Language) -> dict[str, Any]:
    why = text.gettext(N_("No graph: a graph needs several numbers of processes, or several sizes"))
    return {
        "data": {"values": [{"why": why}]},
        "mark": "text",
        "encoding": {"text": {"field": "why"}},
        "width": WIDTH,
    }
