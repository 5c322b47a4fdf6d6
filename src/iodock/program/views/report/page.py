"""Renders the report as one HTML document. Python writes its texts; the page's script draws tables and charts
from its data.

The document loads and sends nothing. Its content security policy allows the one script and the one style
sheet by their hashes, and nothing else. Python escapes all text from the run, or the script inserts it as
text nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from iodock.program.findings import Diagnosis
from iodock.program.views import verdict as words
from iodock.program.views.diagnosis_words import headline
from iodock.program.views.report.cache import cache_table
from iodock.program.views.report.findings import findings_body
from iodock.program.views.report.maps import maps_table
from iodock.program.views.report.source import Sources
from iodock.program.views.report.words import FACTS, SECTIONS, script_words
from iodock.program.views.verdict import Cost, Overview
from iodock.shared.labels import PARTS
from iodock.shared.language import Language, language_in
from iodock.shared.pages.markup import Markup, file_name, join, tag
from iodock.shared.pages.sheet import Page, document, joined
from iodock.shared.text import shorten, visible
from iodock.shared.units import NANOSECONDS, share_text

_HOLDERS = {"calls": "call-holder", "files": "file-holder"}


@dataclass(frozen=True, slots=True)
class LossNote:
    """Describes one kind of loss, with the first place where it occurred."""

    name: str
    count: int
    cure: str
    file: str | None = None
    line: int | None = None
    sample: str | None = None
    names: Sequence[str] = ()
    """Names of some of the lost items, if they are more informative than the number."""


@dataclass(frozen=True, slots=True)
class Report:
    """Holds all data that one page shows."""

    name: str
    """Name of the store, for title and commands."""
    command: str
    writer: str
    made: str
    """Date and time at which the page was made."""
    overview: Overview
    facts: Sequence[tuple[str, str]]
    """Facts about the run, each a key in `FACTS` and its value."""
    losses: Sequence[LossNote]
    data: Mapping[str, Any]
    """The tables that the script draws; see `model.py`."""
    remarks: Sequence[str] = field(default=())
    """Sentences that are shown with the verdict. They are not translated."""
    diagnosis: Diagnosis | None = None
    """The changes to make; None: the section is left out."""
    sources: Sources | None = None
    """Shows the source lines that findings name; None: this was not requested."""
    links: Sequence[int | None] = field(default=())
    """For each of the largest costs, the number of its file in the page's list of names."""
    maps: Sequence[Mapping[str, Any]] = field(default=())
    """Mapped files whose page faults are known, as rows of `show maps`."""
    brought: Sequence[Mapping[str, Any]] = field(default=())
    """Files with pages that were loaded into the page cache, as rows of `show cache`."""


def render(report: Report, language: str = "en") -> str:
    """Renders the HTML document. Raises ValueError for a language without texts."""
    text = language_in(language)
    script, style = _assets("js"), _assets("css")
    page = Page(
        title=join(shorten(text.gettext("I/O check-up: {name}", name=report.command or report.name), 120)),
        header=_header(report, text),
        navigation=_navigation(_sections(report), text),
        body=join(*(_section(name, report, text) for name in _sections(report)), _print_panels()),
        footer=_footer(report, text),
        style=style,
        data=embedded_json({"page": report.data, "text": script_words(script, text)}),
        script=script,
    )
    return document(page, text)


def embedded_json(value: object) -> str:
    """Formats a value as JSON that is safe inside a script element, whatever strings it contains."""
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate can't be encoded as UTF-8. Names should never contain one, but this function also works
    # if they do.
    content = content.encode("utf-8", "replace").decode("utf-8")
    for character in "<>&\u2028\u2029":
        content = content.replace(character, f"\\u{ord(character):04x}")
    return content


_SCRIPT_START = """(() => {
'use strict';
const { page: PAGE, text: TEXT } = JSON.parse(document.getElementById('page-data').textContent);
const NAMES = PAGE.names;
"""


@cache
def _assets(kind: str) -> str:
    """Returns all scripts, or all style sheets, of the page, sorted by name. The scripts share one scope."""
    content = joined(kind)
    return content if kind == "css" else f"{_SCRIPT_START}{content}\n}})();"


def _header(report: Report, text: Language) -> Markup:
    shown = report.command or report.name
    heading = tag(
        "h1", tag("bdi", shorten(shown, 200), class_="command", title=visible(shown), translate="no")
    )
    return join(tag("p", text.gettext("I/O check-up"), class_="kicker"), heading)


def _sections(report: Report) -> list[str]:
    left_out = {
        name
        for name, is_there in (
            ("findings", report.diagnosis is not None),
            ("flame", report.data.get("flame") is not None),
        )
        if not is_there
    }
    return [name for name in SECTIONS if name not in left_out]


def _navigation(names: Sequence[str], text: Language) -> Markup:
    links = (tag("a", text.gettext(SECTIONS[name].short), href=f"#{name}") for name in names)
    return join(*(tag("li", link) for link in links))


def _section(name: str, report: Report, text: Language) -> Markup:
    if name == "verdict":
        return _verdict(report, text)
    heading = tag("h2", text.gettext(SECTIONS[name].title), id=f"{name}-title")
    if name == "findings" and report.diagnosis is not None:
        found = findings_body(report.diagnosis, text, report.sources)
        return tag("section", heading, found, id=name, aria_labelledby=f"{name}-title")
    lead = tag("p", text.gettext(SECTIONS[name].lead), class_="note")
    body = [_losses(report, lead, text)] if name == "unseen" else [lead, tag("div", id=f"{name}-body")]
    if name in _HOLDERS:
        body.append(tag("div", id=_HOLDERS[name]))
    if name == "files":
        body.append(maps_table(report.maps, text) or join())
        body.append(cache_table(report.brought, text) or join())
    return tag("section", heading, *body, id=name, aria_labelledby=f"{name}-title")


def _verdict(report: Report, text: Language) -> Markup:
    overview = report.overview
    diagnosis = report.diagnosis
    verdict = words.judge(overview, text, is_worth_changing=bool(diagnosis and diagnosis.worth_changing))
    headlines = headline(diagnosis.verdict, text) if diagnosis else [verdict.headline]
    sentences = [tag("p", sentence, class_="lead") for sentence in verdict.sentences]
    remarks = [tag("p", text.gettext(remark), class_="lead") for remark in report.remarks]
    left = tag(
        "div",
        *(tag("p", sentence, class_="headline") for sentence in headlines),
        *sentences,
        *remarks,
        _split(overview, text),
        _costs(report, text),
    )
    right = tag("div", tag("h2", text.gettext("The run")), _facts(report, text))
    hidden_heading = tag(
        "h2", text.gettext(SECTIONS["verdict"].title), class_="visually-hidden", id="verdict-title"
    )
    scriptless = text.gettext(
        "The tables and charts of this page need JavaScript; the verdict above does not."
    )
    noscript = tag("noscript", tag("p", scriptless, class_="empty"))
    body = tag("div", left, right, class_="verdict")
    return tag("section", hidden_heading, body, noscript, id="verdict", aria_labelledby="verdict-title")


def _split(overview: Overview, text: Language) -> Markup | None:
    if not overview.parts:
        return None
    if not overview.durations:
        rows = [
            _split_row(part.name, f"{part.count:,}", part.count / max(1, overview.calls), text)
            for part in overview.parts
        ]
        return join(tag("h2", text.gettext("Where the calls went")), tag("ul", *rows, class_="split-list"))
    parts, whole = words.wall_parts(overview), words.whole_ns(overview)
    rows = [_split_row(name, NANOSECONDS.text(time), time / whole, text) for name, time in parts.items()]
    rest = whole - sum(parts.values())
    if rest > 0:
        rows.append(_split_row("rest", NANOSECONDS.text(rest), rest / whole, text))
    if overview.wall_ns:
        note = text.gettext("The bar is the wall time; calls of several threads at the same time share it.")
    else:
        note = text.gettext("The bar shows times summed over threads, which may exceed the wall time.")
    bar = tag("div", id="split-bar")
    listed = tag("ul", *rows, class_="split-list")
    return join(tag("h2", text.gettext("Where the time went")), bar, listed, tag("p", note, class_="note"))


def _split_row(name: str, amount: str, share: float, text: Language) -> Markup:
    key = tag("span", class_=f"key part-{name}", aria_hidden="true")
    return tag(
        "li",
        key,
        tag("span", text.gettext(PARTS[name])),
        tag("span", amount),
        tag("span", share_text(share), class_="share"),
    )


def _costs(report: Report, text: Language) -> Markup | None:
    overview = report.overview
    if not overview.costs:
        return None
    links = [*report.links, *([None] * len(overview.costs))]
    items = [_cost(cost, link, overview, text) for cost, link in zip(overview.costs, links, strict=False)]
    title = text.gettext("Largest costs") if overview.durations else text.gettext("Most frequent calls")
    return join(tag("h2", title), tag("ol", *items, class_="costs"))


def _cost(cost: Cost, link: int | None, overview: Overview, text: Language) -> Markup:
    call = tag("code", visible(cost.call))
    title = call
    if cost.file is not None:
        before, _, after = text.gettext("{call} on {file}", call="\0", file="\1").partition("\0")
        middle, _, end = after.partition("\1")
        title = join(before, call, middle, file_name(cost.file), end)
        if link is not None:
            address = f"#/file/{link}"
            title = tag("a", title, href=address, data_open=address)
        elif cost.files > 1:
            title = tag("a", title, href="#files")
    return tag("li", title, tag("span", words.cost_figures(cost, overview, text), class_="figures"))


def _facts(report: Report, text: Language) -> Markup:
    rows = []
    for key, value in report.facts:
        literal = key in ("command", "directory", "logs")
        shown = file_name(value, 160) if literal else join(visible(value))
        rows.append(tag("div", tag("dt", text.gettext(FACTS[key])), tag("dd", shown)))
    return tag("dl", *rows, class_="facts")


def _losses(report: Report, lead: Markup, text: Language) -> Markup:
    if not report.losses:
        return tag("p", text.gettext("Nothing is known to be missing from this run."), class_="empty")
    items = [_loss(loss, text) for loss in report.losses]
    return join(lead, tag("ul", *items, class_="losses"))


def _loss(loss: LossNote, text: Language) -> Markup:
    return tag(
        "li",
        tag("span", f"{loss.count:,}", class_="count"),
        " ",
        tag("code", loss.name),
        tag("span", text.gettext(loss.cure), class_="cure"),
        None if loss.file is None else tag("span", _first_place(loss, loss.file, text), class_="first"),
        None if not loss.names else tag("span", _names(loss, text), class_="first"),
    )


def _first_place(loss: LossNote, file: str, text: Language) -> str:
    place = {"file": shorten(file, 90), "line": f"{loss.line or 0:,}"}
    if not loss.sample:
        return text.gettext("first in {file}, line {line}", **place)
    return text.gettext("first in {file}, line {line}: {sample}", sample=shorten(loss.sample, 120), **place)


def _names(loss: LossNote, text: Language) -> str:
    names = text.listed(shorten(name, 90) for name in loss.names)
    more = loss.count - len(loss.names)
    return (
        text.ngettext("{names} and {n} more", "{names} and {n} more", more, names=names)
        if more > 0
        else names
    )


def _print_panels() -> Markup:
    return tag("div", id="print-panels", class_="print-only")


def _footer(report: Report, text: Language) -> Markup:
    made = text.gettext(
        "Created by {writer} from {store}, {date}.",
        writer=report.writer,
        store=visible(report.name),
        date=report.made,
    )
    command = f"iodock show summary {shell_word(report.name)} --by file,call"
    same = text.gettext("The same numbers in the terminal:")
    return join(tag("p", made), tag("p", same, " ", tag("code", command), class_="no-print"))


def shell_word(word: str) -> str:
    """Quotes a word for the shell. Control characters become visible escapes."""
    import shlex

    return shlex.quote(visible(word))
