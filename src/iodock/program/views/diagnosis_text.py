"""Formats a diagnosis for the terminal: first the verdict, then the things worth changing, then the notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iodock.program.findings import Advice, Diagnosis, Finding, Severity
from iodock.program.views.diagnosis_words import (
    SEVERITIES,
    gain_text,
    has_pattern,
    headline,
    line_text,
    location_text,
    meanwhile_text,
    whose_advice,
)
from iodock.program.views.losses import print_losses
from iodock.shared.language import N_, Language
from iodock.shared.lines import print_sentence
from iodock.shared.sentences import say
from iodock.shared.text import shorten, visible

if TYPE_CHECKING:
    from rich.console import Console

FILE_WIDTH = 100
"""Width of a diagnosis that goes to a file or a pipe."""
MOST_SHOWN = 5
"""Number of findings that are shown in full. Each of the others takes one line."""
MOST_FILES_SHOWN = 3


def diagnosis_text(diagnosis: Diagnosis, text: Language, on_terminal: bool) -> str:
    """Formats the diagnosis as text. On a terminal, lines have the terminal's width and some words are
    bold."""
    from io import StringIO

    from rich.console import Console

    shape = Console(force_jupyter=False)
    styled = on_terminal and shape.is_terminal
    into = StringIO()
    width = shape.width if styled else FILE_WIDTH
    # Without `force_jupyter=False`, rich would display the lines itself in a notebook.
    console = Console(file=into, width=width, force_terminal=styled, force_jupyter=False, highlight=False)
    print_diagnosis(diagnosis, console, text)
    # rich adds blanks at the end of lines that it wraps and indents. They are removed here.
    return "".join(f"{line.rstrip()}\n" for line in into.getvalue().splitlines())


def print_diagnosis(diagnosis: Diagnosis, console: Console, text: Language) -> None:
    """Writes the diagnosis to a rich console, in the console's width."""
    for sentence in headline(diagnosis.verdict, text):
        print_sentence(console, sentence, "bold")
    print_findings(diagnosis, console, text)
    print_losses(diagnosis.losses, console, text)
    console.print()
    print_sentence(console, say(diagnosis.next_step, text))


def print_findings(diagnosis: Diagnosis, console: Console, text: Language) -> None:
    """Writes the findings and notes of a diagnosis, without its verdict and next step."""
    worth = diagnosis.worth_changing
    for number, finding in enumerate(worth[:MOST_SHOWN], 1):
        console.print()
        _print_finding(number, finding, console, text)
    _print_lines(text.gettext(N_("Also")), worth[MOST_SHOWN:], console, text)
    notes = [one for one in diagnosis.findings if one.severity is Severity.NOTE]
    _print_lines(text.gettext(N_("Notes")), notes, console, text)
    for remark in diagnosis.remarks:
        console.print()
        print_sentence(console, say(remark, text), "dim")
    if diagnosis.silent:
        console.print()
        names = text.listed(one.rule for one in diagnosis.silent)
        print_sentence(
            console,
            text.gettext(
                N_("Not checked, because the recording lacks the data for it: {rules}"), rules=names
            ),
            "dim",
        )


def _print_finding(number: int, finding: Finding, console: Console, text: Language) -> None:
    severity = text.gettext(SEVERITIES[finding.severity])
    print_sentence(console, f"{number}. {say(finding.title, text)} [{severity}] {finding.rule}", "bold")
    print_sentence(console, say(finding.message, text), indent=3)
    if finding.meanwhile:
        print_sentence(console, meanwhile_text(finding, text), indent=3)
    saves = gain_text(finding, text)
    if saves:
        print_sentence(console, saves, indent=3)
    if finding.files:
        print_sentence(console, files_text(finding, MOST_FILES_SHOWN, console.width, text), indent=3)
    if finding.locations:
        print_sentence(console, location_text(finding, text), indent=3)
    for advice in finding.advice:
        print_sentence(console, advice_text(advice, text), indent=3)


def advice_text(advice: Advice, text: Language) -> str:
    """Formats advice as `-> C: what to change`."""
    said, whose = say(advice.message, text), whose_advice(advice, text)
    return f"-> {whose}: {said}" if whose else f"-> {said}"


def files_text(finding: Finding, most: int, width: int, text: Language) -> str:
    """Returns the names of the first MOST files or file patterns of a finding, and the number of further
    ones."""
    names = [shorten(visible(name), max(20, width - 10)) for name in finding.files[:most]]
    if has_pattern(finding, most):
        all_named = len(names) == len(finding.files)
        count, listed = finding.file_count, text.listed(names)
        if all_named:
            return text.ngettext("{names} ({n} file)", "{names} ({n} files)", count, names=listed)
        return text.ngettext(
            "{names} and more ({n} file)", "{names} and more ({n} files)", count, names=listed
        )
    more = finding.file_count - len(names)
    listed = text.listed(names)
    return listed if more <= 0 else f"{listed} {text.ngettext('and {n} more', 'and {n} more', more)}"


def _print_lines(title: str, findings: Sequence[Finding], console: Console, text: Language) -> None:
    if not findings:
        return
    console.print()
    print_sentence(console, title, "bold")
    for finding in findings:
        print_sentence(console, line_text(finding, text), indent=3)
