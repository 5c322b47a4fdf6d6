"""Formats the results in a probe store as a status page: one self-contained HTML page without scripts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib import metadata, resources
from statistics import median

from iodock.file_system.probe.daily import Daily
from iodock.file_system.probe.episodes import Episode, Sort
from iodock.file_system.probe.judge import Sight
from iodock.file_system.probe.operations import Operation
from iodock.file_system.probe.remarks import moment, remarks
from iodock.file_system.views.probe_text import COLUMNS, NO_ROUNDS, free_line, rounds_line, rows, title
from iodock.shared.language import N_, Language
from iodock.shared.message import Message
from iodock.shared.pages.markup import Markup, join, tag
from iodock.shared.pages.sheet import Page, document, joined
from iodock.shared.sentences import say
from iodock.shared.text import visible
from iodock.shared.units import NANOSECONDS

WIDTH, HEIGHT, EDGE = 900, 160, 16
BINS = 300
_HOURS = 24
MOST_PATTERNS = 4
"""Largest number of daily patterns that are drawn."""


def probe_html(sights: Sequence[Sight], losses: Sequence[Message], text: Language) -> str:
    """Renders the HTML page with a section for each watch."""
    style = joined("css") + (resources.files(__package__) / "probe_page.css").read_text(encoding="utf-8")
    made = text.gettext(N_("Created by {writer}."), writer=f"iodock {metadata.version('iodock')}")
    heading = text.gettext(N_("File systems under observation"))
    body = [_section(number, one, text) for number, one in enumerate(sights)]
    page = Page(
        title=join(heading),
        header=tag("h1", heading),
        navigation=join(*(_link(number, one) for number, one in enumerate(sights))),
        body=join(*(body or [tag("p", text.gettext(NO_ROUNDS), class_="empty")])),
        footer=join(*(tag("p", say(one, text)) for one in losses), tag("p", made)),
        style=style,
    )
    return document(page, text)


def _link(number: int, sight: Sight) -> Markup:
    return tag("li", tag("a", visible(sight.watch.target), href=f"#watch-{number}", translate="no"))


def _section(number: int, sight: Sight, text: Language) -> Markup:
    lines = [rounds_line(sight, text), free_line(sight, text)]
    return tag(
        "section",
        tag("h2", title(sight, text), class_=f"state-{sight.now.state.value}", id=f"watch-{number}-title"),
        *(tag("p", line, class_="note") for line in lines if line),
        tag("ul", *(tag("li", say(one, text)) for one in remarks(sight)), class_="remarks"),
        _timeline(sight, text),
        *(_daily(name.value, daily, text) for name, daily in _strongest(sight)),
        _table(sight, text),
        id=f"watch-{number}",
        aria_labelledby=f"watch-{number}-title",
    )


def _strongest(sight: Sight) -> list[tuple[Operation, Daily]]:
    """Selects the daily patterns with the largest differences for drawing. The remarks mention all
    patterns."""
    found = sorted(sight.daily.items(), key=lambda one: one[1].busy_ns / one[1].quiet_ns, reverse=True)
    return found[:MOST_PATTERNS]


def _table(sight: Sight, text: Language) -> Markup:
    head = tag("tr", *(tag("th", text.gettext(name), scope="col") for name in COLUMNS))
    body = (
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", one) for one in row[1:])) for row in rows(sight)
    )
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body), class_="probe"), class_="scroll")


def _timeline(sight: Sight, text: Language) -> Markup | None:
    """Draws the durations of rounds over the whole period on a logarithmic axis, and the times of episodes as
    bars."""
    totals = sight.watch.totals
    if len(totals.times) < 2:
        return None
    start, end = sight.watch.first_ts, max(sight.now.ts, sight.watch.first_ts + 1)
    points = list(_binned(totals.times, totals.spans, start, end))
    low, high = min(one for _, one in points), max(one for _, one in points)
    line = " ".join(f"{_x(ts, start, end):.1f},{_y(span, low, high):.1f}" for ts, span in points)
    said = text.gettext(
        N_("Time of a round, {low} to {high}, from {since} to {until}; bars: outliers; lines: marks"),
        low=NANOSECONDS.text(low), high=NANOSECONDS.text(high), since=moment(start), until=moment(end),
    )  # fmt: skip
    bars = (_bar(one, start, end) for one in sight.episodes)
    shape = tag("polyline", points=line, class_="line")
    return tag("figure", _picture(said, *bars, shape, *_marks(sight, start, end)), tag("figcaption", said))


def _marks(sight: Sight, start: int, end: int) -> Iterator[Markup]:
    """Draws a vertical line at the time of each mark."""
    texts = {one.mark.ts: one.mark.text for several in sight.marks.values() for one in several}
    for ts, said in texts.items():
        at = f"{_x(ts, start, end):.1f}"
        tip = tag("title", f"{moment(ts)} {visible(said)}")
        yield tag("line", tip, x1=at, x2=at, y1="0", y2=f"{HEIGHT}", class_="mark")


def _picture(said: str, *shapes: Markup) -> Markup:
    return tag(
        "svg", *shapes, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=said, class_="probe",
        preserveAspectRatio="none",
    )  # fmt: skip


def _binned(times: Sequence[int], spans: Sequence[int], start: int, end: int) -> Iterator[tuple[int, float]]:
    """Divides the period into 300 equal parts, and yields the middle and the median of each part."""
    cells: dict[int, list[int]] = {}
    for ts, ns in zip(times, spans, strict=True):
        cells.setdefault((ts - start) * BINS // (end - start + 1), []).append(ns)
    for at, values in cells.items():
        yield start + (2 * at + 1) * (end - start) // (2 * BINS), median(values)


def _x(ts: int, start: int, end: int) -> float:
    return (ts - start) / (end - start) * WIDTH


def _y(span: float, low: float, high: float) -> float:
    share = math.log(max(span, 1) / max(low, 1)) / math.log(max(high, 2) / max(low, 1)) if high > low else 0.5
    return HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE)


def _bar(one: Episode, start: int, end: int) -> Markup:
    left = _x(one.start_ts, start, end)
    width = max(2.0, min(_x(one.end_ts, start, end), WIDTH) - left)
    kind = "silent" if one.sort is Sort.UNANSWERED else "slow"
    tip = tag("title", f"{moment(one.start_ts)} {', '.join(name.value for name in one.operations)}")
    return tag("rect", tip, x=f"{left:.1f}", y="0", width=f"{width:.1f}", height=f"{HEIGHT}", class_=kind)


def _daily(name: str, found: Daily, text: Language) -> Markup:
    """Draws a bar for each hour of the day, whose height is the usual duration."""
    most = max(found.hours.values())
    step = WIDTH / _HOURS
    tall = {hour: HEIGHT * span / most for hour, span in found.hours.items()}
    bars = [
        tag(
            "rect", tag("title", f"{hour}: {NANOSECONDS.text(span)}"), class_="hour",
            x=f"{hour * step + 2:.1f}", y=f"{HEIGHT - tall[hour]:.1f}",
            width=f"{step - 4:.1f}", height=f"{tall[hour]:.1f}",
        )
        for hour, span in sorted(found.hours.items())
    ]  # fmt: skip
    said = text.gettext(
        N_("{operation} by hour of the day, 0 to 24; the highest bar is {most}"),
        operation=name, most=NANOSECONDS.text(most),
    )  # fmt: skip
    return tag("figure", _picture(said, *bars), tag("figcaption", said))
