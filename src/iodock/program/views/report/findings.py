"""Renders the report's section on changes: findings with their gain, evidence and advice."""

from __future__ import annotations

from iodock.program.findings import Diagnosis, Finding, Severity
from iodock.program.views.diagnosis_words import (
    SEVERITIES,
    gain_text,
    line_text,
    location_text,
    meanwhile_text,
    more_files,
    whose_advice,
)
from iodock.program.views.report.source import Sources
from iodock.shared.language import N_, Language
from iodock.shared.pages.markup import Markup, file_name, join, tag
from iodock.shared.sentences import say

MOST_IN_FULL = 10
"""Number of findings that are shown in full. Of the others, only the title is shown."""


def findings_body(diagnosis: Diagnosis, text: Language, sources: Sources | None = None) -> Markup:
    """Renders the findings worth changing, then the notes, then the rules that could not run."""
    worth = diagnosis.worth_changing
    notes = [one for one in diagnosis.findings if one.severity is Severity.NOTE]
    shown = [_finding(one, text, sources) for one in worth[:MOST_IN_FULL]]
    rest = [_line(one, text) for one in worth[MOST_IN_FULL:]]
    return join(
        tag("ol", *shown, class_="findings") if shown else None,
        _list(N_("Also"), rest, text),
        _list(N_("Notes"), [_line(one, text) for one in notes], text),
        _silent(diagnosis, text),
        *(tag("p", say(remark, text), class_="note") for remark in diagnosis.remarks),
        tag("p", say(diagnosis.next_step, text), class_="note"),
    )


def _finding(finding: Finding, text: Language, sources: Sources | None) -> Markup:
    severity = tag(
        "span",
        text.gettext(SEVERITIES[finding.severity]),
        class_=f"severity severity-{finding.severity.value}",
    )
    head = tag("h3", say(finding.title, text), " ", severity, " ", tag("code", finding.rule))
    saves = gain_text(finding, text)
    named = [(whose_advice(one, text), say(one.message, text)) for one in finding.advice]
    advice = [tag("li", tag("b", f"{whose}: ") if whose else None, said) for whose, said in named]
    return tag(
        "li",
        head,
        tag("p", say(finding.message, text)),
        tag("p", meanwhile_text(finding, text)) if finding.meanwhile else None,
        tag("p", saves, class_="figures") if saves else None,
        _files(finding, text),
        tag("p", location_text(finding, text)) if finding.locations else None,
        sources(finding) if sources else None,
        tag("p", tag("b", text.gettext(N_("How to make the change")))),
        tag("ul", *advice, class_="advice"),
        tag(
            "p", text.gettext(N_("Ignore this if: {when}"), when=say(finding.fine_when, text)), class_="note"
        ),
        _evidence(finding, text),
    )


def _files(finding: Finding, text: Language) -> Markup | None:
    if not finding.files:
        return None
    names = [tag("li", file_name(name)) for name in finding.files]
    if more := more_files(finding, len(names), text):
        names.append(tag("li", more))
    return tag("ul", *names, class_="finding-files")


def _evidence(finding: Finding, text: Language) -> Markup:
    rows = [tag("div", tag("dt", name), tag("dd", _plain(value))) for name, value in finding.evidence.items()]
    return tag(
        "details",
        tag("summary", text.gettext(N_("Evidence, and a query that shows it"))),
        tag("dl", *rows, class_="facts"),
        tag("pre", tag("code", finding.query)),
    )


def _plain(value: object) -> str:
    return f"{value:,}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _line(finding: Finding, text: Language) -> Markup:
    saves = gain_text(finding, text)
    return tag(
        "li", line_text(finding, text), tag("span", f" ({saves})", class_="figures") if saves else None
    )


def _list(title: str, items: list[Markup], text: Language) -> Markup | None:
    if not items:
        return None
    return join(tag("h3", text.gettext(title)), tag("ul", *items, class_="finding-lines"))


def _silent(diagnosis: Diagnosis, text: Language) -> Markup | None:
    if not diagnosis.silent:
        return None
    items = [tag("li", tag("code", one.rule), f": {say(one.why, text)}") for one in diagnosis.silent]
    title = text.gettext(N_("Not checked"))
    return tag("details", tag("summary", title), tag("ul", *items, class_="finding-lines"))
