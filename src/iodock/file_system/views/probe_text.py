"""Formats the results of probes as text: in full for the terminal, and in one line per watch for
/etc/motd."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from iodock.file_system.probe.episodes import Sort
from iodock.file_system.probe.judge import Sight, State
from iodock.file_system.probe.remarks import STATES, moment, remarks
from iodock.shared.language import N_, Language
from iodock.shared.lines import print_sentence
from iodock.shared.message import Message
from iodock.shared.sentences import say
from iodock.shared.text import visible
from iodock.shared.units import BYTES, NANOSECONDS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

FILE_WIDTH = 100
COLUMNS = (
    N_("operation"), N_("answers"), N_("median"), N_("90 %"), N_("99 %"), N_("longest"), N_("failed"),
    N_("no answer"),
)  # fmt: skip
NO_ROUNDS = N_("No probe rounds in that time.")
TITLE = N_("{target} as seen from {host}: {state}")
ROUNDS = N_("Rounds: {rounds}, from {since} to {until}")
_MOTD = {
    State.OK: N_(
        "{target}: ok at {when}: {recent} (usual: {usual}); last 24 h: slow {slow}, no answer {silent}"
    ),
    State.SLOW: N_(
        "{target}: SLOW at {when}: {recent} (usual: {usual}); last 24 h: slow {slow}, no answer {silent}"
    ),
    State.FAILING: N_("{target}: FAILING at {when}; last 24 h: slow {slow}, no answer {silent}"),
    State.NO_ANSWER: N_("{target}: NO ANSWER at {when}; last 24 h: slow {slow}, no answer {silent}"),
    State.STALE: N_("{target}: not probed since {when}"),
}
_DAY_NS = 86_400_000_000_000


def probe_text(sights: Sequence[Sight], losses: Sequence[Message], text: Language, on_terminal: bool) -> str:
    """Formats all watches, each with a table and remarks."""
    from rich.console import Console

    shape = Console()
    styled = on_terminal and shape.is_terminal
    into = StringIO()
    width = shape.width if styled else FILE_WIDTH
    console = Console(file=into, width=width, force_terminal=styled, highlight=False)
    for number, sight in enumerate(sights):
        if number:
            console.print()
        _print_sight(sight, console, text)
    if not sights:
        print_sentence(console, text.gettext(NO_ROUNDS))
    for one in losses:
        print_sentence(console, say(one, text), "dim")
    return "".join(f"{line.rstrip()}\n" for line in into.getvalue().splitlines())


def title(sight: Sight, text: Language) -> str:
    """Returns the title of a watch, such as `/scratch as seen from node1: ok`."""
    watch, state = sight.watch, text.gettext(STATES[sight.now.state])
    return text.gettext(TITLE, target=visible(watch.target), host=visible(watch.host), state=state)


def rounds_line(sight: Sight, text: Language) -> str:
    """Describes the number of rounds, and the period in which they were executed."""
    watch = sight.watch
    since, until = moment(watch.first_ts), moment(sight.now.ts)
    return text.gettext(ROUNDS, rounds=f"{watch.rounds:,}", since=since, until=until)


def free_line(sight: Sight, text: Language) -> str | None:
    """Describes the free space that the latest `df` reported. Returns None if it is not known."""
    found = sight.watch.found
    if not found.get("size_bytes"):
        return None
    free, size = BYTES.text(found["free_bytes"]), BYTES.text(found["size_bytes"])
    inodes = f"{found.get('free_inodes', 0):,}"
    return text.gettext(N_("Free: {free} of {size}; inodes: {inodes}"), free=free, size=size, inodes=inodes)


def rows(sight: Sight) -> list[list[str]]:
    """Returns the texts of the table, by row."""
    return [
        [
            operation.value,
            f"{one.count:,}",
            *(
                NANOSECONDS.text(span) if one.count else ""
                for span in (one.p50_ns, one.p90_ns, one.p99_ns, one.max_ns)
            ),
            f"{one.failed:,}" if one.failed else "",
            f"{one.no_answer:,}" if one.no_answer else "",
        ]
        for operation, one in sight.usual.items()
    ]


def _print_sight(sight: Sight, console: Console, text: Language) -> None:
    print_sentence(console, title(sight, text), "bold")
    print_sentence(console, rounds_line(sight, text))
    if (free := free_line(sight, text)) is not None:
        print_sentence(console, free)
    console.print()
    console.print(_table(sight, text))
    console.print()
    for one in remarks(sight):
        print_sentence(console, say(one, text), indent=0)


def _table(sight: Sight, text: Language) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for at, name in enumerate(COLUMNS):
        table.add_column(text.gettext(name), justify="right" if at else "left", no_wrap=True)
    for row in rows(sight):
        table.add_row(*(Text(cell) for cell in row))
    return table


def probe_motd(sights: Sequence[Sight], text: Language) -> str:
    """Formats one line per watch, for /etc/motd."""
    return "".join(f"{_line(one, text)}\n" for one in sights)


def _line(sight: Sight, text: Language) -> str:
    now = sight.now
    recent = [one for one in sight.episodes if one.end_ts > now.ts - _DAY_NS]
    silent = sum(one.sort is Sort.UNANSWERED for one in recent)
    return text.gettext(
        _MOTD[now.state],
        target=visible(sight.watch.target),
        when=moment(now.ts),
        recent=NANOSECONDS.text(now.recent_ns),
        usual=NANOSECONDS.text(now.usual_ns),
        slow=f"{len(recent) - silent:,}",
        silent=f"{silent:,}",
    )
