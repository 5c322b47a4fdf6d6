"""What `iodock record` prints at its end: the verdict, the costliest calls and files, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iodock.analyses import find
from iodock.analyses.base import request
from iodock.diagnosis import diagnose
from iodock.findings import Diagnosis
from iodock.language import Language, language_in
from iodock.views import verdict as words
from iodock.views.charts.units import BYTES, NANOSECONDS
from iodock.views.charts.words import shorten, visible
from iodock.views.diagnosis_text import print_findings
from iodock.views.diagnosis_words import headline
from iodock.views.labels import COLUMNS, PARTS
from iodock.views.lines import print_sentence
from iodock.views.losses import print_losses
from iodock.views.overview import overview_of
from iodock.views.verdict import Cost, Overview

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from iodock.store import Store

NOTHING = "-"
"""Stands where a value is not known or does not apply."""
MOST_FINDINGS = 3
NARROW = 72
"""Below this many columns the tables leave out what can be missed most easily."""
VERY_NARROW = 50
"""Below this many columns they keep time and number of calls only."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a small table: a call or a file."""

    name: str
    count: int
    failed: int
    time_ns: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class TopList:
    """The first rows of a list, and how many there are in all."""

    lines: Sequence[Line]
    of: int


@dataclass(frozen=True, slots=True)
class Checkup:
    """What the terminal shows of a run."""

    store: str
    """As the user would type it."""
    overview: Overview
    calls: TopList
    files: TopList
    losses: Sequence[tuple[str, int, str]] = ()
    """Name, count, cure."""
    diagnosis: Diagnosis | None = None
    """What to change; None leaves it out."""


def checkup_of(store: Store, typed: str | None = None, rows: int = 5) -> Checkup:
    """The check-up of a store; `typed` is its name as the user would type it."""
    return Checkup(
        store=typed or str(store.path),
        overview=overview_of(store),
        calls=_top(store, "call", rows),
        files=_top(store, "file", rows),
        losses=[(loss.name, loss.count, loss.cure) for loss in store.manifest.losses],
        diagnosis=diagnose(store),
    )


def _top(store: Store, key: str, rows: int) -> TopList:
    analysis = find("summary")
    answer = analysis.run(store, request(analysis, {"by": (key,), "top": rows}))
    names = [key, "count", "failed", "total_time_ns", "read_bytes", "written_bytes"]
    lines = [_line(*row.values()) for row in answer.table.select(names).to_pylist()]
    return TopList(lines, answer.totals.of if answer.totals else len(lines))


def _line(
    name: str | None, count: int, failed: int, time: int | None, read: int | None, written: int | None
) -> Line:
    moved = None if read is None and written is None else (read or 0) + (written or 0)
    return Line(name or NOTHING, count, failed, time, moved)


def print_checkup(checkup: Checkup, console: Console, language: str = "en") -> None:
    """Writes the check-up to a rich console, as wide as that is. ValueError for a language without "
    "texts."""
    text = language_in(language)
    _print_verdict(checkup, console, text)
    if checkup.diagnosis is not None:
        print_findings(checkup.diagnosis, console, text, MOST_FINDINGS)
    for kind, top in (("calls", checkup.calls), ("files", checkup.files)):
        if top.lines:
            console.print()
            _print_table(kind, top, checkup, console, text)
    print_losses(checkup.losses, console, text)
    _print_next(checkup, console, text)


def _print_verdict(checkup: Checkup, console: Console, text: Language) -> None:
    overview, diagnosis = checkup.overview, checkup.diagnosis
    verdict = words.judge(overview, text, is_worth_changing=bool(diagnosis and diagnosis.worth_changing))
    for sentence in headline(diagnosis.verdict, text) if diagnosis else [verdict.headline]:
        print_sentence(console, sentence, "bold")
    for sentence in verdict.sentences:
        print_sentence(console, sentence)
    split = _split(overview, text)
    if split:
        print_sentence(console, split)
    if verdict.level not in ("fine", "unjudged", "no_io") and overview.costs:
        print_sentence(console, _largest(overview.costs[0], overview, text))


def _split(overview: Overview, text: Language) -> str | None:
    """`reading and writing 3.32 s, metadata 980 ms, ...`, parts above one per cent of the I/O."""
    if not overview.durations:
        return None
    parts = words.wall_parts(overview)
    total = sum(parts.values())
    shown = [
        f"{text.gettext(PARTS[name])} {NANOSECONDS.text(time)}"
        for name, time in parts.items()
        if time and time >= 0.01 * total
    ]
    if len(shown) < 2:
        return None
    return text.gettext("Where the time went: {parts}", parts=text.listed(shown))


def _largest(cost: Cost, overview: Overview, text: Language) -> str:
    title, figures = words.cost_title(cost, text), words.cost_figures(cost, overview, text)
    return text.gettext("largest cost: {cost}: {figures}", cost=title, figures=figures)


def _print_table(kind: str, top: TopList, checkup: Checkup, console: Console, text: Language) -> None:
    timed = checkup.overview.durations
    print_sentence(console, _title(kind, timed, text), "bold")
    if top.of > len(top.lines):
        of = _kinds(top.of, text) if kind == "calls" else text.ngettext("{n} file", "{n} files", top.of)
        print_sentence(console, text.gettext("{shown} of {of} shown", shown=len(top.lines), of=of), "dim")
    console.print(_table(kind, top, timed, console.width, text))


def _table(kind: str, top: TopList, timed: bool, width: int, text: Language) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text as RichText

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    name_column = "call" if kind == "calls" else "file"
    table.add_column(RichText(text.gettext(COLUMNS[name_column])), overflow="fold", min_width=8)
    columns = _columns(timed, width)
    for column in columns:
        table.add_column(RichText(text.gettext(COLUMNS[column])), justify="right", no_wrap=True)
    for line in top.lines:
        table.add_row(
            RichText(shorten(line.name, _name_cells(width))),
            *(RichText(_shown(line, name)) for name in columns),
        )
    return table


def _title(kind: str, timed: bool, text: Language) -> str:
    if kind == "calls":
        return text.gettext("Calls on files by time") if timed else text.gettext("Calls on files by number")
    return text.gettext("Files by time") if timed else text.gettext("Files by number of calls")


def _kinds(count: int, text: Language) -> str:
    return text.ngettext("{n} kind of call", "{n} kinds of call", count)


def _columns(timed: bool, width: int) -> list[str]:
    wide = [*(["total_time_ns", "mean_time_ns"] if timed else []), "count", "failed", "bytes"]
    if width < VERY_NARROW:
        return [name for name in wide if name in ("total_time_ns", "count")]
    return [name for name in wide if width >= NARROW or name not in ("mean_time_ns", "failed")]


def _name_cells(width: int) -> int:
    return max(8, min(64, width - (56 if width >= NARROW else 36 if width >= VERY_NARROW else 24)))


def _shown(line: Line, column: str) -> str:
    if column == "total_time_ns":
        return NOTHING if line.time_ns is None else NANOSECONDS.text(line.time_ns)
    if column == "mean_time_ns":
        return (
            NOTHING if line.time_ns is None or not line.count else NANOSECONDS.text(line.time_ns / line.count)
        )
    if column == "bytes":
        return NOTHING if line.bytes is None else BYTES.text(line.bytes)
    return f"{getattr(line, column):,}"


def _print_next(checkup: Checkup, console: Console, text: Language) -> None:
    store = shlex.quote(visible(checkup.store))
    steps = [(f"iodock report {store}", text.gettext("one page to look through and pass on"))]
    if checkup.diagnosis is not None and checkup.diagnosis.findings:
        steps.insert(
            0, (f"iodock diagnose {store}", text.gettext("everything that was found, and what to change"))
        )
    if checkup.calls.lines:
        call = shlex.quote(visible(checkup.calls.lines[0].name))
        why = text.gettext("what a call was doing, file by file")
        steps.append((f"iodock show summary {store} --call {call} --by file", why))
    console.print()
    print_sentence(console, text.gettext("next:"), "bold")
    for command, why in steps:
        # One line each and never wrapped: a command is there to be copied.
        console.print(f"  {command}", markup=False, highlight=False, emoji=False, soft_wrap=True)
        console.print(f"      {why}", style="dim", markup=False, highlight=False, emoji=False, soft_wrap=True)
