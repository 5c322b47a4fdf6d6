"""A diagnosis in the terminal: the verdict, then the few things worth changing, then the notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iodock.findings import Diagnosis, Finding, Severity
from iodock.language import N_, Language
from iodock.views.charts.words import shorten, visible
from iodock.views.diagnosis_words import SEVERITIES, cost_text, say

if TYPE_CHECKING:
    from rich.console import Console

FILE_WIDTH = 100
"""Columns of a diagnosis that goes to a file or a pipe."""
MOST_SHOWN = 5
"""Findings in full; the others a line each."""


def diagnosis_text(diagnosis: Diagnosis, text: Language, on_terminal: bool) -> str:
    """The diagnosis as text: as wide as the terminal and in bold there, else plain."""
    from io import StringIO

    from rich.console import Console

    shape = Console()
    styled = on_terminal and shape.is_terminal
    into = StringIO()
    width = shape.width if styled else FILE_WIDTH
    console = Console(file=into, width=width, force_terminal=styled, highlight=False)
    print_diagnosis(diagnosis, console, text)
    # A wrapped and indented line is filled up with blanks.
    return "".join(f"{line.rstrip()}\n" for line in into.getvalue().splitlines())


def print_diagnosis(diagnosis: Diagnosis, console: Console, text: Language) -> None:
    """Writes the diagnosis to a rich console, as wide as that is."""
    _say(console, say(diagnosis.verdict.text, text), "bold")
    print_findings(diagnosis, console, text)
    console.print()
    _say(console, say(diagnosis.next_step, text))


def print_findings(diagnosis: Diagnosis, console: Console, text: Language, most: int = MOST_SHOWN) -> None:
    """The findings and notes, without verdict and next step; MOST of them in full."""
    worth = diagnosis.worth_changing
    for number, finding in enumerate(worth[:most], 1):
        console.print()
        _print_finding(number, finding, console, text)
    _print_lines(text.gettext(N_("Also")), worth[most:], console, text)
    notes = [one for one in diagnosis.findings if one.severity is Severity.NOTE]
    _print_lines(text.gettext(N_("Notes")), notes, console, text)
    if diagnosis.silent:
        console.print()
        names = text.listed(one.rule for one in diagnosis.silent)
        _say(
            console,
            text.gettext(N_("Not looked for, as the source can't show it: {rules}"), rules=names),
            "dim",
        )


def _print_finding(number: int, finding: Finding, console: Console, text: Language) -> None:
    severity = text.gettext(SEVERITIES[finding.severity])
    _say(console, f"{number}. {say(finding.title, text)} [{severity}] {finding.rule}", "bold")
    _indent(console, say(finding.message, text))
    cost = cost_text(finding, text)
    if cost:
        _indent(console, cost)
    if finding.files:
        _indent(console, _files(finding, console.width, text))
    for advice in finding.advice:
        said = say(advice.message, text)
        _indent(console, f"-> {said}" if advice.language == "any" else f"-> {advice.language}: {said}")


def _files(finding: Finding, width: int, text: Language) -> str:
    names = [shorten(visible(name), max(20, width - 10)) for name in finding.files[:3]]
    more = finding.file_count - len(names)
    listed = text.listed(names)
    return listed if more <= 0 else f"{listed} {text.ngettext('and {n} more', 'and {n} more', more)}"


def _print_lines(title: str, findings: Sequence[Finding], console: Console, text: Language) -> None:
    if not findings:
        return
    console.print()
    _say(console, title, "bold")
    for finding in findings:
        _indent(console, f"{say(finding.title, text)}: {say(finding.message, text)}")


def _indent(console: Console, sentence: str) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print(Padding(Text(sentence), (0, 0, 0, 3), expand=False))


def _say(console: Console, sentence: str, style: str | None = None) -> None:
    # Names are data: no markup, no highlighting, no emoji codes in them.
    console.print(sentence, style=style, markup=False, highlight=False, emoji=False)
