"""Makes the tables of a comparison for its page. Each row has two bars: the value before, and below it the
value after."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from iodock.program.comparison.data import Change, Comparison, Listing, Row, Sureness
from iodock.program.views.diff_words import (
    MATCHED,
    NO_FILE,
    cells,
    file_words,
    line_name,
    shown_totals,
    spread,
    total_name,
)
from iodock.shared.labels import PARTS
from iodock.shared.language import N_, Language
from iodock.shared.pages.markup import Markup, file_name, join, tag
from iodock.shared.text import visible

_BAR = 100
"""Length of the longest possible bar."""


@dataclass(frozen=True, slots=True)
class Line:
    """Describes a row of a table."""

    name: Markup
    change: Change
    measure: str
    calls: Change | None = None
    kind: str = ""
    """Style of the row: `inner` for a call of the file above, `total` for a sum."""
    most: float | None = None
    """Value that has the longest bar; None: it is the largest value of the table."""

    @property
    def judged(self) -> bool:
        """Returns whether a larger value is worse. This is true for time and failures. For bytes and
        access sizes a larger value may be worse or better, and for noise it is neither."""
        if self.change.sureness is Sureness.NOISE:
            return False
        return self.measure == "failed" or self.measure.endswith("_ns")


def table(
    title: str,
    first: str,
    lines: Sequence[Line],
    text: Language,
    *,
    logarithmic: bool = False,
    note: str = "",
) -> Markup | None:
    """Makes the table. Returns None if there are no rows."""
    if not lines:
        return None
    is_sure = any(cells(line.change, line.measure, text).sure for line in lines)
    with_calls = any(line.calls is not None for line in lines)
    # Rows with totals do not determine the scale. Otherwise the bars of the other rows would be too short.
    most = max((_largest(line.change) for line in lines if line.kind != "total"), default=0.0)
    body = [_row(line, most, logarithmic, with_calls, is_sure, text) for line in lines]
    caption = tag(
        "caption",
        tag("span", title, class_="caption-title"),
        tag("span", note, class_="caption-note") if note else None,
    )
    head = tag("thead", tag("tr", *_headings(first, with_calls, is_sure, text)))
    framed = tag("table", caption, head, tag("tbody", *body))
    return tag("div", framed, class_="table-frame", tabindex="0", role="region", aria_label=title)


def _headings(first: str, with_calls: bool, is_sure: bool, text: Language) -> Iterator[Markup]:
    yield tag("th", first, scope="col")
    for word in (N_("before"), N_("after"), N_("change")):
        yield tag("th", text.gettext(word), scope="col", class_="number")
    yield tag("th", "", class_="share")
    bars = tag("span", text.gettext(N_("before above, after below")), class_="visually-hidden")
    yield tag("th", bars, scope="col")
    if with_calls:
        yield tag("th", text.gettext(N_("calls")), scope="col", class_="number")
    if is_sure:
        yield tag("th", text.gettext(N_("certainty")), scope="col")


def _row(
    line: Line, most: float, logarithmic: bool, with_calls: bool, is_sure: bool, text: Language
) -> Markup:
    shown = cells(line.change, line.measure, text)
    change = line.change.difference or 0
    side = None if not line.judged or not change else "faster" if change < 0 else "slower"
    several = len(line.change.before_runs) + len(line.change.after_runs) > 2
    columns = [
        tag("td", shown.before, class_="number"),
        tag("td", shown.after, class_="number"),
        tag("td", shown.difference, class_=f"number {side}" if side else "number"),
        tag("td", shown.share, class_="number share"),
        tag("td", None if line.kind == "total" else _pair(line, line.most or most, logarithmic)),
    ]
    if with_calls:
        columns.append(tag("td", "" if line.calls is None else _arrow(line.calls, text), class_="number"))
    if is_sure:
        columns.append(
            tag("td", shown.sure, class_="text", title=spread(line.change, line.measure) if several else None)
        )
    return tag("tr", tag("th", line.name, scope="row"), *columns, class_=line.kind or None)


def _arrow(change: Change, text: Language) -> str:
    shown = cells(change, "count", text)
    return shown.before if shown.before == shown.after else f"{shown.before} → {shown.after}"


def _largest(change: Change) -> float:
    return max(change.before or 0.0, change.after or 0.0)


def _pair(line: Line, most: float, logarithmic: bool) -> Markup:
    change = line.change
    more = " more" if line.judged and (change.difference or 0) > 0 else ""
    return tag(
        "svg",
        _bar(_length(change.before, most, logarithmic), "0", "was"),
        _bar(_length(change.after, most, logarithmic), "8", f"is{more}"),
        viewBox=f"0 0 {_BAR} 15",
        preserveAspectRatio="none",
        class_="pair",
        aria_hidden="true",
    )


def _bar(length: float, top: str, kind: str) -> Markup | None:
    if length <= 0:
        return None
    return tag("rect", x="0", y=top, width=f"{length:.2f}", height="7", class_=kind)


def _length(value: float | None, most: float, logarithmic: bool) -> float:
    if not value or most <= 0:
        return 0.0
    if logarithmic:
        # On this logarithmic scale even a value of 1 has a visible bar.
        return _BAR * math.log10(1 + 9 * value) / math.log10(1 + 9 * most)
    return max(0.6, _BAR * value / most)


def totals_tables(comparison: Comparison, text: Language) -> Iterator[Markup | None]:
    """Yields a table of the run as a whole, then tables of the kinds of I/O."""
    shown = dict(shown_totals(comparison))
    lines = [
        Line(join(total_name(measure, comparison, text)), change, measure, most=_scale(measure, shown))
        for measure, change in shown.items()
    ]
    yield table(text.gettext(N_("In total")), "", lines, text)
    measure = measure_of(comparison)
    lines = [
        Line(join(text.gettext(PARTS[row.name])), row.changes[measure], measure)
        for row in comparison.parts
        if any((row.changes[measure].before, row.changes[measure].after))
    ]
    title = N_("Time inside calls, by kind") if comparison.time else N_("Calls, by kind")
    yield table(text.gettext(title), "", lines, text)


def _scale(measure: str, shown: Mapping[str, Change]) -> float:
    """Returns the largest total among those whose bars have the same scale as MEASURE."""
    groups = (("count", "failed"), ("read_bytes", "written_bytes"), ("files",))
    times = tuple(name for name in shown if name.endswith("_ns"))
    group = next(one for one in (*groups, times) if measure in one)
    return max(_largest(shown[name]) for name in group if name in shown)


def measure_of(comparison: Comparison) -> str:
    """Returns the name of the measure by which rows are ranked."""
    return "total_time_ns" if comparison.time else "count"


def files_table(title: str, listing: Listing, comparison: Comparison, text: Language) -> Markup | None:
    """Makes the table of files that got faster, or of those that got slower, each with the calls that
    caused the change. The bars of both tables have the same scale."""
    measure = measure_of(comparison)
    shown = [*comparison.faster.rows, *comparison.slower.rows]
    most = max((_largest(row.changes[measure]) for row in shown), default=0.0)
    lines: list[Line] = []
    for row in listing.rows:
        lines.append(
            Line(_file_cell(row, text), row.changes[measure], measure, row.changes["count"], most=most)
        )
        if row.matched not in MATCHED:
            lines += [_inner(call, measure, most) for call in row.calls]
    lines += sums(listing, measure, text)
    return table(title, text.gettext(N_("file")), lines, text, note=_shown_of(listing, text))


def _inner(call: Row, measure: str, most: float) -> Line:
    name = tag("code", visible(call.name))
    return Line(name, call.changes[measure], measure, call.changes["count"], "inner", most)


def _file_cell(row: Row, text: Language) -> Markup:
    words = file_words(row, text)
    name = file_name(row.name) if row.name else join(text.gettext(NO_FILE))
    return join(name, tag("span", words, class_="words") if words else None)


def calls_table(comparison: Comparison, text: Language) -> Markup | None:
    """Makes the table of calls, with the largest change first."""
    measure = measure_of(comparison)
    listing = comparison.calls
    lines = [
        Line(tag("code", visible(row.name)), row.changes[measure], measure, row.changes["count"])
        for row in listing.rows
    ]
    lines += sums(listing, measure, text)
    return table(
        text.gettext(N_("Calls")), text.gettext(N_("call")), lines, text, note=_shown_of(listing, text)
    )


def lines_table(comparison: Comparison, text: Language) -> Markup | None:
    """Makes the table of source lines of the program, with the largest change first. Returns None if the
    runs have no source lines."""
    measure = measure_of(comparison)
    lines = [
        Line(tag("code", line_name(one, text)), one.changes[measure], measure, one.changes["count"])
        for one in comparison.lines
    ]
    return table(text.gettext(N_("Lines of the program")), text.gettext(N_("line")), lines, text)


def sums(listing: Listing, measure: str, text: Language) -> list[Line]:
    """Makes the rows 'other' and 'total' of a table."""
    rows = [(N_("other"), listing.other), (N_("total"), listing.total if listing.of > 1 else None)]
    return [
        Line(join(text.gettext(word)), row.changes[measure], measure, row.changes["count"], "total")
        for word, row in rows
        if row is not None
    ]


def _shown_of(listing: Listing, text: Language) -> str:
    if listing.of <= len(listing.rows):
        return ""
    shown = {"shown": f"{len(listing.rows):,}", "of": f"{listing.of:,}"}
    return text.gettext(N_("({shown} of {of})"), **shown)
