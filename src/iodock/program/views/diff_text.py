"""Formats a comparison for the terminal: first the overall change, then files and calls, then findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from iodock.program.comparison.data import Change, Comparison, FindingChange, Listing, Row, SizeChange
from iodock.program.findings import Severity
from iodock.program.views.diff_words import (
    MATCHED,
    STATES,
    cells,
    file_name,
    file_words,
    finding_cost,
    finding_severity,
    line_name,
    noise_words,
    per_words,
    runs_words,
    shown_totals,
    side_words,
    total_name,
)
from iodock.shared.labels import PARTS
from iodock.shared.language import N_, Language
from iodock.shared.lines import print_sentence
from iodock.shared.sentences import say
from iodock.shared.tables.table import elided
from iodock.shared.text import visible
from iodock.shared.units import BYTES

if TYPE_CHECKING:
    from rich.console import Console

FILE_WIDTH = 100
"""Width of a comparison that goes to a file or a pipe."""
NARROWEST_NAME = 14
Line = tuple[str, ...]


def diff_text(comparison: Comparison, text: Language, on_terminal: bool) -> str:
    """Formats the comparison as text. On a terminal, lines have the terminal's width and some words are
    bold."""
    from io import StringIO

    from rich.console import Console

    shape = Console()
    styled = on_terminal and shape.is_terminal
    into = StringIO()
    width = shape.width if styled else FILE_WIDTH
    print_diff(comparison, Console(file=into, width=width, force_terminal=styled, highlight=False), text)
    return into.getvalue()


def print_diff(comparison: Comparison, console: Console, text: Language) -> None:
    """Writes the comparison to a rich console, in the console's width."""
    print_sentence(console, say(comparison.headline, text), "bold")
    for sentence in comparison.sentences:
        print_sentence(console, say(sentence, text))
    print_sentence(
        console, text.gettext(N_("Before: {runs}"), runs=side_words(comparison.before, text)), "dim"
    )
    print_sentence(console, text.gettext(N_("After: {runs}"), runs=side_words(comparison.after, text)), "dim")
    for note in (per_words(comparison, text), runs_words(comparison, text)):
        if note:
            print_sentence(console, note)
    for remark in comparison.remarks:
        # A loss that both sides have does not affect the comparison, so it is only in the line of losses.
        if remark.kind == "losses" and "before" not in remark.message.values:
            continue
        print_sentence(console, f"! {say(remark.message, text)}")
    _print_run(comparison, console, text)
    _print_files(comparison, console, text)
    _print_lines(comparison, console, text)
    _print_calls(comparison, console, text)
    _print_sizes(comparison, console, text)
    _print_findings(comparison.findings, console, text)


def _print_run(comparison: Comparison, console: Console, text: Language) -> None:
    lines = [
        (total_name(measure, comparison, text), *cells(change, measure, text))
        for measure, change in shown_totals(comparison)
    ]
    _print_table(console, text.gettext(N_("The run")), _headings("", text), lines)
    measure = _measure(comparison)
    lines = [
        (text.gettext(PARTS[row.name]), *cells(row.changes[measure], measure, text))
        for row in comparison.parts
        if any((row.changes[measure].before, row.changes[measure].after))
    ]
    title = N_("Time inside calls, by kind") if comparison.time else N_("Calls, by kind")
    _print_table(console, text.gettext(title), _headings("", text), lines)


def _measure(comparison: Comparison) -> str:
    return "total_time_ns" if comparison.time else "count"


def _headings(first: str, text: Language) -> Line:
    return (first, text.gettext(N_("before")), text.gettext(N_("after")), text.gettext(N_("change")), "", "")


def _print_files(comparison: Comparison, console: Console, text: Language) -> None:
    timed = comparison.time is not None
    titles = (
        (N_("Files that got faster"), comparison.faster)
        if timed
        else (N_("Files with fewer calls"), comparison.faster),
        (N_("Files that got slower"), comparison.slower)
        if timed
        else (N_("Files with more calls"), comparison.slower),
    )
    for title, listing in titles:
        heading = text.gettext(title)
        if listing.of > len(listing.rows):
            shown = {"shown": f"{len(listing.rows):,}", "of": f"{listing.of:,}"}
            heading += " " + text.gettext(N_("({shown} of {of})"), **shown)
        lines = list(_listing_lines(listing, comparison, text))
        _print_table(
            console, heading, (*_headings(text.gettext(N_("file")), text), text.gettext(N_("calls"))), lines
        )
    if said := noise_words(comparison, text):
        console.print()
        print_sentence(console, said)
    elif not comparison.faster.of and not comparison.slower.of:
        console.print()
        print_sentence(console, text.gettext(N_("No file's calls changed.")))


def _listing_lines(listing: Listing, comparison: Comparison, text: Language) -> Iterator[Line]:
    measure = _measure(comparison)
    for row in listing.rows:
        words = file_words(row, text)
        name = file_name(row, text) + (f" ({words})" if words else "")
        yield _line(name, row, measure, text)
        if row.matched not in MATCHED:
            for call in row.calls:
                yield _line(f"  {visible(call.name)}", call, measure, text)
    yield from _sums(listing, measure, text)


def _sums(listing: Listing, measure: str, text: Language) -> Iterator[Line]:
    if listing.other is not None:
        yield _line(text.gettext(N_("other")), listing.other, measure, text)
    if listing.of > 1:
        yield _line(text.gettext(N_("total")), listing.total, measure, text)


def _line(name: str, row: Row, measure: str, text: Language) -> Line:
    return (name, *cells(row.changes[measure], measure, text), _calls(row, text))


def _calls(row: Row, text: Language) -> str:
    return _counts(row.changes["count"], text)


def _counts(change: Change, text: Language) -> str:
    shown = cells(change, "count", text)
    return shown.before if shown.before == shown.after else f"{shown.before} -> {shown.after}"


def _print_lines(comparison: Comparison, console: Console, text: Language) -> None:
    measure = _measure(comparison)
    lines = [
        (
            line_name(one, text),
            *cells(one.changes[measure], measure, text),
            _counts(one.changes["count"], text),
        )
        for one in comparison.lines
    ]
    headings = (*_headings(text.gettext(N_("line")), text), text.gettext(N_("calls")))
    _print_table(console, text.gettext(N_("Lines of the program")), headings, lines)


def _print_calls(comparison: Comparison, console: Console, text: Language) -> None:
    measure = _measure(comparison)
    lines = [_line(visible(row.name), row, measure, text) for row in comparison.calls.rows if _moved(row)]
    lines += _sums(comparison.calls, measure, text) if lines else ()
    headings = (*_headings(text.gettext(N_("call")), text), text.gettext(N_("calls")))
    _print_table(console, text.gettext(N_("Calls")), headings, lines)


def _moved(row: Row) -> bool:
    return any(change.difference for change in row.changes.values())


def _print_sizes(comparison: Comparison, console: Console, text: Language) -> None:
    if not any(one.count.difference for one in comparison.sizes):
        return
    for direction, title in (
        ("read", N_("Reads by size (upper limit)")),
        ("write", N_("Writes by size (upper limit)")),
    ):
        lines = [_size_line(one, text) for one in comparison.sizes if one.direction == direction]
        _print_table(console, text.gettext(title), _headings("", text), lines)


def _size_line(one: SizeChange, text: Language) -> Line:
    return (BYTES.text(one.upper_bytes), *cells(one.count, "count", text))


def _print_findings(findings: Sequence[FindingChange], console: Console, text: Language) -> None:
    console.print()
    if not findings:
        print_sentence(console, text.gettext(N_("Findings: none before, none after.")))
        return
    print_sentence(console, text.gettext(N_("Findings")), "bold")
    for one in findings:
        states = f"{text.gettext(STATES[one.state])}: {say(one.finding.title, text)}"
        severity = finding_severity(one, text)
        print_sentence(
            console, f"{states} [{severity}] {finding_cost(one, text)}", "bold" if _matters(one) else None
        )
        said = one.after or one.before
        if said is not None and _matters(one):
            print_sentence(console, say(said.message, text), indent=3)


def _matters(one: FindingChange) -> bool:
    return any(side is not None and side.severity is not Severity.NOTE for side in (one.before, one.after))


def _print_table(console: Console, title: str, headings: Line, lines: Sequence[Line]) -> None:
    if not lines:
        return
    console.print()
    print_sentence(console, title, "bold")
    for line in _laid_out(headings, lines, console.width):
        console.print(
            line, markup=False, highlight=False, emoji=False, no_wrap=True, crop=False, soft_wrap=True
        )


def _laid_out(headings: Line, lines: Sequence[Line], width: int) -> Iterator[str]:
    """Yields lines of at most WIDTH cells. To fit, names are shortened to NARROWEST_NAME cells, then the
    least important columns are left out."""
    kept = [at for at in range(1, len(headings)) if any(line[at] for line in lines)]
    widths = {at: max(cell_len(line[at]) for line in (headings, *lines)) for at in range(len(headings))}
    narrowest = min(NARROWEST_NAME, widths[0])
    for at in (6, 4, 3, 5):
        if at in kept and width - sum(widths[one] + 2 for one in kept) < narrowest:
            kept.remove(at)
    first = max(narrowest, min(widths[0], width - sum(widths[one] + 2 for one in kept)))
    for line in (headings, *lines):
        name = elided(line[0], first)
        numbers = "".join("  " + " " * (widths[at] - cell_len(line[at])) + line[at] for at in kept)
        yield (name + " " * (first - cell_len(name)) + numbers).rstrip()
