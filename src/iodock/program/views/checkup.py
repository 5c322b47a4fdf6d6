"""Prints the screen at the end of `iodock record`: the headline of the diagnosis, the run's figures, the
findings with the largest gains, tables if they add information, losses, and the next steps."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iodock.program.analyses import find
from iodock.program.analyses.base import request
from iodock.program.diagnosis import diagnose
from iodock.program.findings import IO_FINE, Diagnosis, Finding
from iodock.program.unseen import hides_calls
from iodock.program.views import verdict as words
from iodock.program.views.diagnosis_text import advice_text, files_text
from iodock.program.views.diagnosis_words import SEVERITIES, gain_text, headline, location_text
from iodock.program.views.losses import print_losses
from iodock.program.views.overview import overview_of
from iodock.program.views.verdict import Overview
from iodock.shared.labels import HEADINGS
from iodock.shared.language import N_, Language, language_in
from iodock.shared.lines import print_sentence
from iodock.shared.sentences import say
from iodock.shared.text import cells, shorten, visible
from iodock.shared.units import BYTES, NANOSECONDS

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from iodock.program.store import Store
    from iodock.shared.meanwhile import Servers
    from iodock.shared.message import Message
    from iodock.shared.settings import Settings

_IN_DIGEST = N_(
    "The digest at the end of the job's output shows the job's I/O volume and the state of the "
    "file servers during the run."
)
NOTHING = "-"
"""Shown for a value that is not known or does not apply."""
MOST_FINDINGS = 3
LEAST_BESIDE = 0.05
"""Rows with a smaller share of the first row's cost are left out of a table below a finding."""
NARROW = 72
"""On a terminal with fewer columns than this, the tables omit the least important values."""
VERY_NARROW = 50
"""On a terminal with fewer columns than this, the tables show only time and number of calls."""


@dataclass(frozen=True, slots=True)
class Line:
    """Describes one row of a small table: a call, a file or a file pattern."""

    name: str
    count: int
    failed: int
    time_ns: int | None
    bytes: int | None
    files: int = 1
    """Number of entries that the row stands for. If it is above one, `name` is a pattern."""


@dataclass(frozen=True, slots=True)
class TopList:
    """Holds the first rows of a list, and the total number of rows."""

    lines: Sequence[Line]
    of: int


@dataclass(frozen=True, slots=True)
class Checkup:
    """Holds the content of the screen for one run."""

    store: str
    """Name of the store as the user would type it."""
    overview: Overview
    calls: TopList
    files: TopList
    losses: Sequence[tuple[str, int, str]] = ()
    """For each loss: name, count and cure."""
    diagnosis: Diagnosis | None = None
    """The changes to make; None: the diagnosis did not run."""
    servers: Sequence[Message] = ()
    """Sentences on the state of the file servers during the run."""
    digest_follows: bool = False
    """Whether the job's digest follows in the same output. It shows volume and servers."""


def checkup_of(
    store: Store,
    typed: str | None = None,
    rows: int = 3,
    diagnosed: bool = True,
    settings: Settings | None = None,
    servers: Servers | None = None,
) -> Checkup:
    """Makes the check-up of a store. TYPED is the store's name as the user would type it. SERVERS is the
    source of the file servers' state during the run."""
    return Checkup(
        store=typed or str(store.path),
        overview=overview_of(store),
        calls=_top(store, "call", rows),
        files=_top(store, "pattern", rows),
        losses=[(loss.name, loss.count, loss.cure) for loss in store.manifest.losses],
        diagnosis=diagnose(store, settings, servers) if diagnosed else None,
        servers=_in_short(servers),
    )


def _in_short(servers: Servers | None) -> Sequence[Message]:
    if servers is None:
        return ()
    from iodock.program.meanwhile.sentences import in_short

    return in_short(servers)


def _top(store: Store, key: str, rows: int) -> TopList:
    analysis = find("summary")
    answer = analysis.run(store, request(analysis, {"by": (key,), "top": rows}))
    names = [key, "count", "failed", "total_time_ns", "read_bytes", "written_bytes"]
    names += ["file_count"] if key == "pattern" else []
    lines = [_line(*row.values()) for row in answer.table.select(names).to_pylist()]
    return TopList(lines, answer.totals.of if answer.totals else len(lines))


def _line(
    name: str | None,
    count: int,
    failed: int,
    time: int | None,
    read: int | None,
    written: int | None,
    files: int = 1,
) -> Line:
    moved = None if read is None and written is None else (read or 0) + (written or 0)
    return Line(name or NOTHING, count, failed, time, moved, files)


def print_checkup(checkup: Checkup, console: Console, language: str = "en") -> None:
    """Writes the check-up to a rich console, in the console's width. Raises ValueError for a language
    without texts."""
    text = language_in(language)
    _print_verdict(checkup, console, text)
    for number, finding in enumerate(_worth(checkup)[:MOST_FINDINGS], 1):
        if number == 1:
            console.print()
        _print_finding(number, finding, console, text)
    _print_rest(checkup, console, text)
    _print_servers(checkup, console, text)
    for kind, top in _tables(checkup):
        console.print()
        _print_table(kind, top, checkup, console, text)
    # The loss `before-load` is shown only if it hides calls: the loader's calls before a program starts are
    # not I/O on the user's files, and every recording lacks them.
    losses = [one for one in checkup.losses if one[0] != "before-load" or hides_calls(*one[:2])]
    print_losses(losses, console, text)
    _print_next(checkup, console, text)


def _print_servers(checkup: Checkup, console: Console, text: Language) -> None:
    said = [] if checkup.digest_follows else [say(one, text) for one in checkup.servers]
    if checkup.digest_follows:
        said = [text.gettext(_IN_DIGEST)]
    if said:
        console.print()
    for sentence in said:
        print_sentence(console, sentence)


def _worth(checkup: Checkup) -> Sequence[Finding]:
    return checkup.diagnosis.worth_changing if checkup.diagnosis else ()


def _print_verdict(checkup: Checkup, console: Console, text: Language) -> None:
    """Prints the diagnosis' headline, and the figures of the run."""
    diagnosis, overview = checkup.diagnosis, checkup.overview
    verdict = words.judge(overview, text)
    for sentence in headline(diagnosis.verdict, text) if diagnosis else [verdict.headline]:
        print_sentence(console, sentence, "bold")
    if figures := words.figures(overview, text, with_volume=not checkup.digest_follows):
        print_sentence(console, figures)
    judged = bool(diagnosis.worth_changing) if diagnosis else verdict.level != "unjudged"
    for remark in words.remarks(overview, text, judged):
        print_sentence(console, remark)


def _print_finding(number: int, finding: Finding, console: Console, text: Language) -> None:
    """Prints the title of the finding, its gain, its location, and the first piece of advice."""
    severity = text.gettext(SEVERITIES[finding.severity])
    print_sentence(console, f"{number}. {say(finding.title, text)} [{severity}]", "bold")
    if saves := gain_text(finding, text):
        print_sentence(console, saves, indent=3)
    if finding.files:
        print_sentence(console, files_text(finding, 1, console.width, text), indent=3)
    if finding.locations:
        print_sentence(console, location_text(finding, text, 1), indent=3)
    for said in finding.meanwhile[:1]:
        print_sentence(console, say(said, text), indent=3)
    for advice in finding.advice[:1]:
        print_sentence(console, advice_text(advice, text), indent=3)


def _print_rest(checkup: Checkup, console: Console, text: Language) -> None:
    """Prints how many further findings and notes `iodock diagnose` shows."""
    if checkup.diagnosis is None:
        return
    more = len(_worth(checkup)) - MOST_FINDINGS
    notes = len(checkup.diagnosis.findings) - len(_worth(checkup))
    parts = [text.ngettext("{n} more finding", "{n} more findings", more)] if more > 0 else []
    parts += [text.ngettext("{n} note", "{n} notes", notes)] if notes else []
    if parts:
        if not _worth(checkup):
            console.print()
        rest = N_("{parts}: iodock diagnose {store}")
        store = shlex.quote(visible(checkup.store))
        print_sentence(console, text.gettext(rest, parts=text.listed(parts), store=store))


def _tables(checkup: Checkup) -> list[tuple[str, TopList]]:
    """Returns the tables to print. Several findings need no table. A single finding is followed by the
    table of files if that has a second important row."""
    findings, share = len(_worth(checkup)), checkup.overview.io_share
    is_fine = checkup.diagnosis is not None and share is not None and share < IO_FINE
    if findings > 1 or (findings and not _has_several(checkup.files)):
        return []
    tables = [] if findings else [("calls", checkup.calls)]
    tables += [] if is_fine and not findings else [("files", checkup.files)]
    return [(kind, top) for kind, top in tables if top.lines]


def _has_several(top: TopList) -> bool:
    """Returns whether the second row costs at least LEAST_BESIDE times as much as the first. Otherwise the
    table would add no information."""
    costs = [line.count if line.time_ns is None else line.time_ns for line in top.lines[:2]]
    return len(costs) > 1 and costs[1] >= LEAST_BESIDE * costs[0]


def _print_table(kind: str, top: TopList, checkup: Checkup, console: Console, text: Language) -> None:
    timed = checkup.overview.durations
    title = _title(kind, timed, text)
    if top.of > len(top.lines):
        of = _kinds(top.of, text) if kind == "calls" else _files(top, text)
        title += f": {text.gettext('{shown} of {of} shown', shown=len(top.lines), of=of)}"
    print_sentence(console, title, "bold")
    console.print(_table(kind, top, timed, console.width, text))


def _table(kind: str, top: TopList, timed: bool, width: int, text: Language) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text as RichText

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    name_column = "call" if kind == "calls" else "file"
    table.add_column(RichText(text.gettext(HEADINGS[name_column])), overflow="fold", min_width=8)
    columns = _columns(top, timed, width)
    for column in columns:
        table.add_column(RichText(text.gettext(HEADINGS[column])), justify="right", no_wrap=True)
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


def _files(top: TopList, text: Language) -> str:
    if _is_patterned(top):
        return text.gettext(N_("{n} files and patterns"), n=f"{top.of:,}")
    return text.ngettext("{n} file", "{n} files", top.of)


def _is_patterned(top: TopList) -> bool:
    return any(line.files > 1 for line in top.lines)


def _columns(top: TopList, timed: bool, width: int) -> list[str]:
    wide = [*(["total_time_ns", "mean_time_ns"] if timed else []), "count", "failed", "bytes"]
    if _is_patterned(top):
        # The number of files replaces the mean, because readers can compute the mean from time and calls.
        wide = ["file_count", *(name for name in wide if name != "mean_time_ns")]
    if width < VERY_NARROW:
        return [name for name in wide if name in ("file_count", "total_time_ns", "count")]
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
    return f"{line.files if column == 'file_count' else getattr(line, column):,}"


def _print_next(checkup: Checkup, console: Console, text: Language) -> None:
    console.print()
    if checkup.diagnosis is None:
        print_sentence(console, text.gettext("next:"), "bold")
    else:
        print_sentence(console, say(checkup.diagnosis.next_step, text))
    steps = _steps(checkup, text)
    longest = max(cells(command) for command, _ in steps)
    lines = [f"  {command}{' ' * (longest - cells(command))}  {why}" for command, why in steps]
    if max(map(cells, lines)) > console.width:
        lines = [line for command, why in steps for line in (f"  {command}", f"      {why}")]
    for line in lines:
        # The console does not wrap this line, so that users can copy the command.
        console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)


def _steps(checkup: Checkup, text: Language) -> list[tuple[str, str]]:
    """Returns the commands for the next steps, each with its purpose."""
    store = shlex.quote(visible(checkup.store))
    report = (f"iodock report {store}", text.gettext("one page for an overview, to pass on"))
    if checkup.diagnosis is None or _worth(checkup):
        why = text.gettext("all findings, and what to change")
        return [(f"iodock diagnose {store}", why), report]
    why = text.gettext("calls, their number and duration")
    return [report, (f"iodock show summary {store}", why)]
