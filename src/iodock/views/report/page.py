"""The report as one HTML document: words written here, tables and charts drawn by the page from its data.

The document loads nothing and sends nothing: its content security policy allows the one script and the one
style sheet by their hash, and nothing else. All text of the run is escaped here, or put in as text nodes by
the script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from iodock.views import verdict as words
from iodock.views.charts.units import NANOSECONDS
from iodock.views.charts.words import shorten, visible
from iodock.views.report.markup import Markup, file_name, join, tag
from iodock.views.text import Text, text_in
from iodock.views.verdict import Cost, Overview

SECTIONS = ("verdict", "calls", "files", "time", "sizes", "processes", "failures", "unseen")
_HOLDERS = {"calls": "call-holder", "files": "file-holder"}


@dataclass(frozen=True, slots=True)
class LossNote:
    """One kind of loss, and where it was met first."""

    name: str
    count: int
    cure: str
    file: str | None = None
    line: int | None = None
    sample: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """All that one page shows."""

    name: str
    """Of the store, for title and commands."""
    command: str
    writer: str
    made: str
    """Date and time at which the page was made."""
    overview: Overview
    facts: Sequence[tuple[str, str]]
    """Key in the dictionary (`facts.KEY`) and value."""
    losses: Sequence[LossNote]
    data: Mapping[str, Any]
    """The tables that the script draws; see `model.py`."""
    remarks: Sequence[str] = field(default=())
    """Keys of sentences that must stand beside the verdict."""
    links: Sequence[int | None] = field(default=())
    """For each of the largest costs the number of its file among the page's names."""


def render(report: Report, language: str = "en") -> str:
    """The HTML document. ValueError for a language without texts."""
    text = text_in(language)
    script, style = _assets("js"), _assets("css")
    pieces = {
        "LANG": language,
        "SCRIPT_HASH": _hash(script),
        "STYLE_HASH": _hash(style),
        "TITLE": join(shorten(text("title", name=report.command or report.name), 120)),
        "SKIP": join(text("skip")),
        "HEADER": _header(report, text),
        "NAV_LABEL": join(text("nav")),
        "NAV": join(*(tag("li", tag("a", text(f"nav.{name}"), href=f"#{name}")) for name in SECTIONS)),
        "BODY": join(*(_section(name, report, text) for name in SECTIONS), _print_panels()),
        "FOOTER": _footer(report, text),
        "DATA": embedded_json({"page": report.data, "text": text.entries}),
        "STYLE": style,
        "SCRIPT": script,
    }
    return _fill_template(pieces)


def embedded_json(value: object) -> str:
    """JSON that can stand inside a script element, whatever its strings hold."""
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate cannot be written as UTF-8; names never hold one, but nothing here depends on that.
    content = content.encode("utf-8", "replace").decode("utf-8")
    for character in "<>&\u2028\u2029":
        content = content.replace(character, f"\\u{ord(character):04x}")
    return content


def _fill_template(pieces: Mapping[str, str]) -> str:
    template = (resources.files(__package__) / "assets" / "page.html").read_text(encoding="utf-8")
    filled = []
    # One pass over the template only: a place's content is never searched for places.
    for index, part in enumerate(template.split("@")):
        filled.append(pieces[part] if index % 2 else part)
    return "".join(filled)


_SCRIPT_START = """(() => {
'use strict';
const { page: PAGE, text: TEXT } = JSON.parse(document.getElementById('page-data').textContent);
const NAMES = PAGE.names;
"""


@cache
def _assets(kind: str) -> str:
    """All scripts or style sheets, in the order of their names; the scripts in one scope."""
    folder = resources.files(__package__) / "assets" / kind
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(f".{kind}")), key=lambda entry: entry.name
    )
    content = "\n".join(entry.read_text(encoding="utf-8") for entry in files)
    if kind == "css":
        return content
    return f"{_SCRIPT_START}{content}\n}})();"


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _header(report: Report, text: Text) -> Markup:
    shown = report.command or report.name
    heading = tag(
        "h1", tag("bdi", shorten(shown, 200), class_="command", title=visible(shown), translate="no")
    )
    return join(tag("p", text("kicker"), class_="kicker"), heading)


def _section(name: str, report: Report, text: Text) -> Markup:
    if name == "verdict":
        return _verdict(report, text)
    if name == "unseen":
        return tag(
            "section",
            tag("h2", text("unseen.title"), id="unseen-title"),
            _losses(report, text),
            id=name,
            aria_labelledby="unseen-title",
        )
    holder = tag("div", id=_HOLDERS[name]) if name in _HOLDERS else None
    return tag(
        "section",
        tag("h2", text(f"{name}.title"), id=f"{name}-title"),
        tag("p", text(f"{name}.lead"), class_="note"),
        tag("div", id=f"{name}-body"),
        holder,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def _verdict(report: Report, text: Text) -> Markup:
    overview = report.overview
    verdict = words.judge(overview, text)
    sentences = [tag("p", sentence, class_="lead") for sentence in verdict.sentences]
    remarks = [tag("p", text(key), class_="lead") for key in report.remarks]
    left = tag(
        "div",
        tag("p", verdict.headline, class_="headline"),
        *sentences,
        *remarks,
        _split(overview, text),
        _costs(report, text),
    )
    right = tag("div", tag("h2", text("facts.title")), _facts(report, text))
    hidden_heading = tag("h2", text("nav.verdict"), class_="visually-hidden", id="verdict-title")
    noscript = tag("noscript", tag("p", text("noscript"), class_="empty"))
    body = tag("div", left, right, class_="verdict")
    return tag("section", hidden_heading, body, noscript, id="verdict", aria_labelledby="verdict-title")


def _split(overview: Overview, text: Text) -> Markup | None:
    if not overview.parts:
        return None
    if not overview.durations:
        rows = [
            _split_row(part.name, f"{part.count:,}", part.count / max(1, overview.calls), text)
            for part in overview.parts
        ]
        return join(tag("h2", text("verdict.split_counts")), tag("ul", *rows, class_="split-list"))
    whole = whole_ns(overview)
    rows = [
        _split_row(part.name, NANOSECONDS.text(part.time_ns), (part.time_ns or 0) / whole, text)
        for part in overview.parts
    ]
    rest = whole - sum(part.time_ns or 0 for part in overview.parts)
    if rest > 0:
        rows.append(_split_row("rest", NANOSECONDS.text(rest), rest / whole, text))
    note = "verdict.of_wall" if words.parts_fit_wall(overview) else "verdict.summed"
    bar = tag("div", id="split-bar")
    listed = tag("ul", *rows, class_="split-list")
    return join(tag("h2", text("verdict.split")), bar, listed, tag("p", text(note), class_="note"))


def whole_ns(overview: Overview) -> int:
    """What the bar of the verdict stands for: the wall time, or the sum of the parts where that is larger."""
    total = sum(part.time_ns or 0 for part in overview.parts)
    return max(1, total, overview.wall_ns or 0)


def _split_row(name: str, amount: str, share: float, text: Text) -> Markup:
    key = tag("span", class_=f"key part-{name}", aria_hidden="true")
    return tag(
        "li",
        key,
        tag("span", text(f"part.{name}")),
        tag("span", amount),
        tag("span", words.share_text(share), class_="share"),
    )


def _costs(report: Report, text: Text) -> Markup | None:
    overview = report.overview
    if not overview.costs:
        return None
    links = [*report.links, *([None] * len(overview.costs))]
    items = [_cost(cost, link, overview, text) for cost, link in zip(overview.costs, links, strict=False)]
    title = "verdict.costs" if overview.durations else "verdict.costs_counts"
    return join(tag("h2", text(title)), tag("ol", *items, class_="costs"))


def _cost(cost: Cost, link: int | None, overview: Overview, text: Text) -> Markup:
    call = tag("code", visible(cost.call))
    title = call
    if cost.file is not None:
        before, _, after = text("verdict.cost", call="\0", file="\1").partition("\0")
        middle, _, end = after.partition("\1")
        title = join(before, call, middle, file_name(cost.file), end)
        if link is not None:
            address = f"#/file/{link}"
            title = tag("a", title, href=address, data_open=address)
    return tag("li", title, tag("span", words.cost_figures(cost, overview, text), class_="figures"))


def _facts(report: Report, text: Text) -> Markup:
    rows = []
    for key, value in report.facts:
        literal = key in ("command", "directory", "logs")
        shown = file_name(value, 160) if literal else join(visible(value))
        rows.append(tag("div", tag("dt", text(f"facts.{key}")), tag("dd", shown)))
    return tag("dl", *rows, class_="facts")


def _losses(report: Report, text: Text) -> Markup:
    if not report.losses:
        return tag("p", text("unseen.none"), class_="empty")
    items = [_loss(loss, text) for loss in report.losses]
    return join(tag("p", text("unseen.lead"), class_="note"), tag("ul", *items, class_="losses"))


def _loss(loss: LossNote, text: Text) -> Markup:
    first = None
    if loss.file is not None:
        key = "unseen.first" if loss.sample else "unseen.first_file"
        sample = shorten(loss.sample or "", 120)
        first = tag(
            "span",
            text(key, file=shorten(loss.file, 90), line=f"{loss.line or 0:,}", sample=sample),
            class_="first",
        )
    cure = text.get(f"loss.{loss.name}", loss.cure)
    return tag(
        "li",
        tag("span", f"{loss.count:,}", class_="count"),
        " ",
        tag("code", loss.name),
        tag("span", cure, class_="cure"),
        first,
    )


def _print_panels() -> Markup:
    return tag("div", id="print-panels", class_="print-only")


def _footer(report: Report, text: Text) -> Markup:
    made = text("footer.made", writer=report.writer, store=visible(report.name), date=report.made)
    command = f"iodock show summary {shell_word(report.name)} --by file,call"
    return join(tag("p", made), tag("p", text("footer.query"), " ", tag("code", command), class_="no-print"))


def shell_word(word: str) -> str:
    """A word for the shell, control characters shown as escapes."""
    import shlex

    return shlex.quote(visible(word))
