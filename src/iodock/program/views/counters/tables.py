"""Makes tables of counters. Each row has a bar."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from iodock.program.views.counters.data import Row
from iodock.shared.labels import HEADINGS
from iodock.shared.language import N_, Language
from iodock.shared.pages.markup import Markup, file_name, join, tag
from iodock.shared.units import BYTES, NANOSECONDS, number_text

_BAR = 100.0
_WORDS = {
    "interface": N_("interface"),
    "lower_bytes": N_("from"),
    "direction": N_("direction"),
    "ranks": N_("ranks"),
    "fastest_rank": N_("fastest rank"),
    "fastest_time_ns": N_("its time"),
    "fastest_bytes": N_("its bytes"),
    "slowest_rank": N_("slowest rank"),
    "slowest_time_ns": N_("its time"),
    "slowest_bytes": N_("its bytes"),
    "variance_time_s2": N_("variance, s²"),
    "count": N_("operations"),
}
_VALUES = {"read": N_("read"), "write": N_("write")}


@dataclass(frozen=True, slots=True)
class Bar:
    """Describes the quantity that the bar of each row shows."""

    of: Callable[[Row], float | None]
    logarithmic: bool = False
    kind: Callable[[Row], str] = lambda row: "is"


def table(
    title: str,
    names: Sequence[str],
    rows: Sequence[Row],
    text: Language,
    bar: Bar | None = None,
    note: str = "",
) -> Markup | None:
    """Makes a table of the columns NAMES of the rows. Columns that are empty in all rows are left out.
    Returns None if there are no rows."""
    if not rows:
        return None
    shown = [name for name in names if any(row[name] is not None for row in rows)]
    most = max((bar.of(row) or 0.0 for row in rows), default=0.0) if bar else 0.0
    body = [tag("tr", *_cells(shown, row, text), _bar_cell(bar, row, most)) for row in rows]
    heads = [tag("th", _heading(name, text), scope="col", class_=_class(name)) for name in shown]
    if bar:
        heads.append(tag("th", "", scope="col", aria_label=text.gettext(N_("bar"))))
    caption = tag(
        "caption",
        tag("span", title, class_="caption-title"),
        tag("span", note, class_="caption-note") if note else None,
    )
    framed = tag("table", caption, tag("thead", tag("tr", *heads)), tag("tbody", *body))
    return tag("div", framed, class_="table-frame", tabindex="0", role="region", aria_label=title)


def _heading(name: str, text: Language) -> str:
    word = _WORDS.get(name, HEADINGS.get(name, name))
    return text.gettext(word)


def _class(name: str) -> str | None:
    return None if name in ("file", "interface", "direction") else "number"


def _cells(names: Sequence[str], row: Row, text: Language) -> list[Markup]:
    first, *others = names
    head = tag("th", _shown(first, row[first], text), scope="row")
    return [head, *(tag("td", _shown(name, row[name], text), class_=_class(name)) for name in others)]


def _shown(name: str, value: Any, text: Language) -> Markup:
    if value is None:
        # The last bin has no upper bound. A row without a file covers all ranks, so its cell stays empty.
        return join(text.gettext(N_("and more"))) if name == "upper_bytes" else join("")
    if name == "file":
        return file_name(str(value))
    if name.endswith("_ns"):
        return join(NANOSECONDS.text(value))
    if name.endswith("_bytes"):
        return tag("span", BYTES.text(value), title=f"{value:,} B")
    if isinstance(value, float):
        return join(number_text(value))
    if isinstance(value, int):
        return join(f"{value:,}")
    return join(text.gettext(_VALUES.get(str(value), str(value))))


def _bar_cell(bar: Bar | None, row: Row, most: float) -> Markup | None:
    if bar is None:
        return None
    length = _length(bar.of(row) or 0.0, most, bar.logarithmic)
    drawn = (
        tag("rect", x="0", y="3", width=f"{length:.2f}", height="9", class_=bar.kind(row)) if length else None
    )
    svg = tag(
        "svg", drawn, viewBox="0 0 100 15", preserveAspectRatio="none", class_="pair", aria_hidden="true"
    )
    return tag("td", svg)


def _length(value: float, most: float, logarithmic: bool) -> float:
    if value <= 0 or most <= 0:
        return 0.0
    if logarithmic:
        return _BAR * math.log10(1 + 9 * value) / math.log10(1 + 9 * most)
    return max(0.6, _BAR * value / most)
