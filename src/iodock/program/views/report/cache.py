"""Makes the report's table of files whose pages the kernel loaded into the page cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iodock.program.relations.pages import are_known
from iodock.program.store import Store
from iodock.program.views.report.ask import ask
from iodock.shared.language import N_, Language
from iodock.shared.pages.markup import Markup, file_name, join, tag
from iodock.shared.units import BYTES

MOST = 20
"""Number of files that are shown. Those with most loaded bytes come first."""
_HEADS = (
    N_("File"), N_("Brought in"), N_("distinct bytes of these"), N_("Pieces"), N_("Read by calls"),
    N_("Accessed through maps"), N_("Read amplification"),
)  # fmt: skip
_LEAD = N_(
    "Pages that were loaded into memory for the program's reads, including the system's read-ahead. Read "
    "amplification: bytes loaded for each byte that was read or accessed. Files that were already in "
    "memory are not listed."
)


def brought(store: Store) -> list[Mapping[str, Any]]:
    """Returns the first rows of `iodock show cache` that have pages loaded for reading. The list is empty
    if this was not recorded."""
    if not are_known(store):
        return []
    rows = ask(store, "cache", user_files=True).table.to_pylist()
    return [row for row in rows if row["pages"]][:MOST]


def cache_table(rows: Sequence[Mapping[str, Any]], text: Language) -> Markup | None:
    """Makes the table that is shown below the table of files. Returns None if no pages were loaded."""
    if not rows:
        return None
    heads = tag("tr", *(tag("th", text.gettext(head), scope="col") for head in _HEADS))
    table = tag("table", tag("thead", heads), tag("tbody", *map(_row, rows)))
    return join(
        tag("h3", text.gettext("Loaded into the page cache")),
        tag("p", text.gettext(_LEAD), class_="note"),
        tag("div", table, class_="table-frame", tabindex="0"),
    )


def _row(row: Mapping[str, Any]) -> Markup:
    factor = row["amplification"]
    numbers = (
        BYTES.text(row["brought_bytes"]),
        BYTES.text(row["different_bytes"]),
        f"{row['ranges']:,}",
        *("" if row[name] is None else BYTES.text(row[name]) for name in ("read_bytes", "touched_bytes")),
        "" if factor is None else f"{factor:.2f}",
    )
    return tag(
        "tr",
        tag("th", file_name(row["file"]), scope="row"),
        *(tag("td", number, class_="number") for number in numbers),
    )
