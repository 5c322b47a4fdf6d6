"""Shows answers and diagnoses in a notebook, as HTML that has no script or style sheet and loads nothing
from the network."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from urllib.parse import quote

from iodock.program.findings import Diagnosis, Finding, Severity
from iodock.program.views.diagnosis_text import advice_text
from iodock.program.views.diagnosis_words import SEVERITIES, gain_text, headline, more_files
from iodock.program.views.losses import loss_lines
from iodock.shared.answer import Answer, Column
from iodock.shared.errors import IodockError
from iodock.shared.language import N_, Language, language_in
from iodock.shared.pages.markup import Markup, file_name, frame, join, tag
from iodock.shared.sentences import say
from iodock.shared.tables.table import first_columns
from iodock.shared.text import visible

FIRST_ROWS = 20
_MOST_FILES = 3
_MOST_INLINE_BYTES = 1 << 20
# Each cell sets its own alignment, because notebooks align cells to the right.
_CELL = "text-align: left; vertical-align: top; white-space: normal"
_SEVERE = {Severity.HIGH: "#b3261e", Severity.MEDIUM: "#8a5a00", Severity.LOW: "#4d6273"}
"""Background colours for white letters, visible on light and on dark pages."""


def answer_html(answer: Answer, picture: bytes | None = None, no_picture: IodockError | None = None) -> str:
    """Shows an answer as HTML: its picture (SVG), or the reason why there is none, and below it the first
    rows. A column's tooltip explains the column."""
    shown = first_columns(answer, FIRST_ROWS)
    heads = [
        tag("th", one.heading, title=_meaning(one.column), style=None if one.right else _CELL)
        for one in shown
    ]
    rows = [
        tag("tr", *(tag("td", one.cells[row], style=None if one.right else _CELL) for one in shown))
        for row in range(min(FIRST_ROWS, answer.table.num_rows))
    ]
    return join(
        _image(picture, answer.title) if picture else None,
        tag("p", ": ".join(filter(None, (str(no_picture), no_picture.hint)))) if no_picture else None,
        tag(
            "table",
            tag("caption", visible(answer.title)),
            tag("thead", tag("tr", *heads)),
            tag("tbody", *rows),
        ),
        *(tag("p", line) for line in below(answer)),
    )


def below(answer: Answer) -> list[str]:
    """Returns the lines of text below the first rows: the number of further rows, notes, and losses."""
    totals, more = answer.totals, answer.table.num_rows - FIRST_ROWS
    losses = ((loss.name, loss.count, loss.cure) for loss in answer.losses)
    return [
        *([f"and {more:,} more rows"] if more > 0 else []),
        *([totals.sentence] if totals is not None and totals.other is not None else []),
        *map(visible, answer.notes),
        *loss_lines(losses, language_in("en")),
    ]


def _meaning(column: Column) -> str:
    return f"{column.doc} [{column.unit}]" if column.unit else column.doc


def _image(picture: bytes, title: str) -> Markup:
    # The picture is embedded as an image. Scripts do not run inside an image, and the page's style does not
    # apply to it.
    coded = base64.b64encode(picture).decode()
    return tag("img", src=f"data:image/svg+xml;base64,{coded}", alt=title, style="max-width: 100%")


def page_html(path: Path) -> str:
    """Shows the link to a page, and the page in a frame below. A small page is embedded, because not every
    notebook lets a frame read files. A large page is not, because the notebook would store it; then only
    the link is shown, as for a page that can't be read."""
    try:
        address = quote(os.fsencode(os.path.relpath(path)))
        name = tag("p", tag("a", visible(str(path)), href=address, target="_blank"))
        if path.stat().st_size > _MOST_INLINE_BYTES:
            return name
        page = path.read_text("utf-8", "replace")
    except OSError:
        return tag("p", visible(str(path)))
    style = "width: 100%; height: 600px; border: 1px solid #888; background: #fff"
    return join(name, frame(page, visible(path.name), style))


def diagnosis_html(diagnosis: Diagnosis, text: Language) -> str:
    """Shows a diagnosis as HTML: the headline, a row for each finding worth changing, then notes, losses
    and next steps."""
    worth = diagnosis.worth_changing
    notes = [one for one in diagnosis.findings if one.severity is Severity.NOTE]
    return join(
        tag("p", tag("b", " ".join(headline(diagnosis.verdict, text)))),
        _table(worth, text) if worth else None,
        _notes(notes, text) if notes else None,
        *(tag("p", say(remark, text)) for remark in diagnosis.remarks),
        *(tag("p", line) for line in loss_lines(diagnosis.losses, text)),
        tag("p", say(diagnosis.next_step, text)),
    )


def _table(findings: tuple[Finding, ...], text: Language) -> Markup:
    names = (N_("Finding"), N_("Saves"), N_("Files"), N_("What to change"))
    heads = [tag("th", text.gettext(name), style=_CELL) for name in ("", *names)]
    return tag(
        "table",
        tag("thead", tag("tr", *heads)),
        tag("tbody", *(_row(one, text) for one in findings)),
    )


def _row(finding: Finding, text: Language) -> Markup:
    severity = tag(
        "span",
        text.gettext(SEVERITIES[finding.severity]),
        style=f"background: {_SEVERE[finding.severity]}; color: #fff; padding: 0 0.4em; white-space: nowrap",
    )
    title = tag("div", tag("b", say(finding.title, text)), " ", tag("code", finding.rule))
    what = join(title, say(finding.message, text))
    advice = [tag("div", advice_text(one, text).removeprefix("-> ")) for one in finding.advice]
    parts = (severity, what, gain_text(finding, text), _files(finding, text), join(*advice))
    return tag("tr", *(tag("td", part, style=_CELL) for part in parts))


def _files(finding: Finding, text: Language) -> Markup:
    names = [tag("div", file_name(name)) for name in finding.files[:_MOST_FILES]]
    more = more_files(finding, len(names), text)
    return join(*names, tag("div", more) if names and more else None)


def _notes(notes: list[Finding], text: Language) -> Markup:
    items = [tag("li", f"{say(one.title, text)}: {say(one.message, text)}") for one in notes]
    return tag("details", tag("summary", text.gettext(N_("Notes"))), tag("ul", *items))
