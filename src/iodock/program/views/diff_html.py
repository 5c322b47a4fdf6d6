"""Renders a comparison as one HTML page, which loads nothing and needs no script. It looks like the
report."""

from __future__ import annotations

from importlib import metadata, resources

from iodock.program.comparison.data import Comparison, FindingChange, RunLabel
from iodock.program.views.diff_tables import Line, calls_table, files_table, lines_table, table, totals_tables
from iodock.program.views.diff_words import (
    STATES,
    finding_cost,
    finding_severity,
    noise_words,
    per_words,
    runs_words,
)
from iodock.shared.language import N_, Language
from iodock.shared.pages.markup import Markup, file_name, join, tag
from iodock.shared.pages.sheet import Page, document, joined
from iodock.shared.sentences import say
from iodock.shared.text import shorten, visible
from iodock.shared.units import BYTES

SECTIONS = {
    "verdict": N_("Verdict"),
    "findings": N_("Findings"),
    "run": N_("The run"),
    "files": N_("Files"),
    "calls": N_("Calls"),
    "sizes": N_("Sizes"),
}
_FILES_LEAD = N_(
    "Each file is judged separately, because one that got faster may hide one that got slower. Below a "
    "file are the calls that made the difference."
)
_CALLS_LEAD = N_("Waiting on pipes and sockets is not counted here.")
_SIZES_LEAD = N_("Number of reads and writes of each size. The bars are logarithmic.")


def diff_html(comparison: Comparison, text: Language) -> str:
    """Renders the HTML document."""
    style = joined("css") + (resources.files(__package__) / "diff_page.css").read_text(encoding="utf-8")
    names = " → ".join(shorten(_names(side, text), 60) for side in (comparison.before, comparison.after))
    made = text.gettext(N_("Created by {writer}."), writer=f"iodock {metadata.version('iodock')}")
    page = Page(
        title=join(text.gettext(N_("I/O compared: {names}"), names=names)),
        header=_header(names, text),
        navigation=_navigation(text),
        body=join(*_sections(comparison, text)),
        footer=tag("p", made),
        style=style,
    )
    return document(page, text)


def _names(side: tuple[RunLabel, ...], text: Language) -> str:
    return text.listed(run.store for run in side)


def _header(names: str, text: Language) -> Markup:
    heading = tag("h1", tag("bdi", names, class_="command", translate="no"))
    return join(tag("p", text.gettext(N_("I/O compared")), class_="kicker"), heading)


def _navigation(text: Language) -> Markup:
    links = (tag("a", text.gettext(word), href=f"#{name}") for name, word in SECTIONS.items())
    return join(*(tag("li", link) for link in links))


def _sections(comparison: Comparison, text: Language) -> tuple[Markup, ...]:
    return (
        _verdict(comparison, text),
        _section("findings", text, _findings(comparison.findings, text)),
        _section("run", text, *totals_tables(comparison, text)),
        _section("files", text, *_files(comparison, text), lead=_FILES_LEAD),
        _section(
            "calls", text, lines_table(comparison, text), calls_table(comparison, text), lead=_CALLS_LEAD
        ),
        _section("sizes", text, *_sizes(comparison, text), lead=_SIZES_LEAD),
    )


def _section(name: str, text: Language, *children: Markup | None, lead: str = "") -> Markup:
    heading = tag("h2", text.gettext(SECTIONS[name]), id=f"{name}-title")
    said = tag("p", text.gettext(lead), class_="note") if lead else None
    shown = [child for child in children if child is not None]
    nothing = None if shown else tag("p", text.gettext(N_("Nothing to show.")), class_="empty")
    return tag("section", heading, said, *shown, nothing, id=name, aria_labelledby=f"{name}-title")


def _verdict(comparison: Comparison, text: Language) -> Markup:
    notes = [note for note in (per_words(comparison, text), runs_words(comparison, text)) if note]
    remarks = [tag("li", say(remark.message, text)) for remark in comparison.remarks]
    left = tag(
        "div",
        tag("p", say(comparison.headline, text), class_="headline"),
        *(tag("p", say(one, text), class_="lead") for one in comparison.sentences),
        *(tag("p", note, class_="lead") for note in notes),
        tag("ul", *remarks, class_="remarks") if remarks else None,
    )
    right = tag(
        "div",
        tag("h2", text.gettext(N_("Before"))),
        _stores(comparison.before),
        tag("h2", text.gettext(N_("After"))),
        _stores(comparison.after),
        _legend(text),
    )
    heading = tag("h2", text.gettext(SECTIONS["verdict"]), class_="visually-hidden", id="verdict-title")
    return tag(
        "section",
        heading,
        tag("div", left, right, class_="verdict"),
        id="verdict",
        aria_labelledby="verdict-title",
    )


def _stores(side: tuple[RunLabel, ...]) -> Markup:
    items = (
        tag(
            "li",
            file_name(run.store),
            tag("span", shorten(run.command, 120), class_="words", title=visible(run.command), translate="no")
            if run.command
            else None,
        )
        for run in side
    )
    return tag("ul", *items, class_="stores")


def _legend(text: Language) -> Markup:
    entries = (
        ("was", N_("before, above")),
        ("is", N_("after, below")),
        ("more", N_("after, where the value got worse")),
    )
    shown = (
        tag("span", tag("span", class_=f"swatch {kind}"), text.gettext(word), class_="legend-entry")
        for kind, word in entries
    )
    return tag("p", tag("span", *shown, class_="legend"), class_="note")


def _files(comparison: Comparison, text: Language) -> tuple[Markup | None, ...]:
    timed = comparison.time is not None
    titles = (
        (N_("Files that got faster"), N_("Files that got slower"))
        if timed
        else (N_("Files with fewer calls"), N_("Files with more calls"))
    )
    listings = (comparison.faster, comparison.slower)
    said = noise_words(comparison, text)
    return (
        *(
            files_table(text.gettext(title), listing, comparison, text)
            for title, listing in zip(titles, listings, strict=True)
        ),
        tag("p", said, class_="note") if said else None,
    )


def _sizes(comparison: Comparison, text: Language) -> tuple[Markup | None, ...]:
    tables = []
    for direction, title in (
        ("read", N_("Reads by size (upper limit)")),
        ("write", N_("Writes by size (upper limit)")),
    ):
        lines = [
            Line(join(BYTES.text(one.upper_bytes)), one.count, "count")
            for one in comparison.sizes
            if one.direction == direction
        ]
        tables.append(table(text.gettext(title), "", lines, text, logarithmic=True))
    return tuple(tables)


def _findings(findings: tuple[FindingChange, ...], text: Language) -> Markup:
    if not findings:
        return tag("p", text.gettext(N_("Findings: none before, none after.")), class_="empty")
    return tag("ul", *(_finding(one, text) for one in findings), class_="changes")


def _finding(one: FindingChange, text: Language) -> Markup:
    said = one.after or one.before
    return tag(
        "li",
        tag("span", text.gettext(STATES[one.state]), class_=f"state state-{one.state}"),
        tag("b", say(one.finding.title, text)),
        " ",
        tag("code", one.finding.rule),
        tag("span", f" [{finding_severity(one, text)}] {finding_cost(one, text)}", class_="figures"),
        None if said is None else tag("p", say(said.message, text)),
    )
