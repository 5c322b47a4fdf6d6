"""Makes the report's table of mapped files from the recorded page faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iodock.program.relations.faults import are_known
from iodock.program.store import Store
from iodock.program.views.report.ask import ask
from iodock.shared.language import N_, Language
from iodock.shared.pages.markup import Markup, file_name, join, tag
from iodock.shared.units import BYTES

MOST = 20
"""Number of files that are shown. Those with the most faults come first."""
_PATTERNS = {"sequential": N_("in order"), "rising": N_("rising"), "random": N_("random")}
_HEADS = (
    N_("File"), N_("Page faults"), N_("number that waited"), N_("Touched"), N_("of the file"), N_("Pieces"),
    N_("Order"),
)  # fmt: skip
_MINOR = ("", "", "minor", "", "", "minor", "")
"""Classes of the columns. A narrow screen omits the `minor` ones."""
_LEAD = N_(
    "Based on page faults, a process's first access to each page. Neighbouring pages that the kernel "
    "maps at the same time are not visible; they count as touched where a file is accessed in order."
)


def mapped(store: Store) -> list[Mapping[str, Any]]:
    """Returns the first rows of `iodock show maps` that have pages. The list is empty if page faults were
    not recorded."""
    if not are_known(store):
        return []
    rows = ask(store, "maps", user_files=True).table.to_pylist()
    return [row for row in rows if row["pages"]][:MOST]


def maps_table(rows: Sequence[Mapping[str, Any]], text: Language) -> Markup | None:
    """Makes the table that is shown below the table of files. Returns None if no mapped file was accessed."""
    if not rows:
        return None
    heads = tag("tr", *(_head(text.gettext(head), minor) for head, minor in zip(_HEADS, _MINOR, strict=True)))
    body = tag("tbody", *(_row(row, text) for row in rows))
    table = tag("table", tag("thead", heads), body)
    return join(
        tag("h3", text.gettext("Read and written through maps")),
        tag("p", text.gettext(_LEAD), class_="note"),
        tag("div", table, class_="table-frame", tabindex="0"),
    )


def _head(word: str, minor: str) -> Markup:
    return tag("th", word, scope="col", class_=minor or None)


def _row(row: Mapping[str, Any], text: Language) -> Markup:
    share, order = row["touched_share"], row["pattern"]
    numbers = (
        f"{row['faults']:,}",
        f"{row['major_faults']:,}",
        BYTES.text(row["touched_bytes"]),
        "" if share is None else f"{share:.0%}",
        f"{row['ranges']:,}",
    )
    return tag(
        "tr",
        tag("th", file_name(row["file"]), scope="row", class_="file"),
        *(
            tag("td", number, class_=f"number {minor}".rstrip())
            for number, minor in zip(numbers, _MINOR[1:], strict=False)
        ),
        tag("td", text.gettext(_PATTERNS[order]) if order else ""),
    )
