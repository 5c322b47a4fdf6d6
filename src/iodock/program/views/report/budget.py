"""Limits the size of a page, whatever the run. Long names are shortened first, then details of files are
left out."""

from __future__ import annotations

from typing import Any

from iodock.program.views.report.page import embedded_json
from iodock.shared.text import shorten

MOST_BYTES = 4_500_000
"""Largest size of the data. Texts, script and style take 0.1 MB, and the page stays below 5 MB."""
_NAME_CELLS = (1000, 400, 160)


def fit(data: dict[str, Any], most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """Returns the data, reduced as far as needed to fit into MOST_BYTES. Its entry `cut` lists the numbers
    of the names that were shortened."""
    for cells in _NAME_CELLS:
        if _size(data) <= most_bytes:
            return data
        data = _with_short_names(data, cells)
    details = dict(data["details"])
    while details and _size(data) > most_bytes:
        for number in list(details)[len(details) // 2 :]:
            del details[number]
        data = data | {"details": details}
    return data


def _size(data: dict[str, Any]) -> int:
    return len(embedded_json(data).encode())


def _with_short_names(data: dict[str, Any], cells: int) -> dict[str, Any]:
    names = [name if len(name) <= cells else shorten(name, cells) for name in data["names"]]
    cut = sorted(
        {
            *data.get("cut", ()),
            *(n for n, (old, new) in enumerate(zip(data["names"], names, strict=True)) if old != new),
        }
    )
    return data | {"names": names, "cut": cut}
