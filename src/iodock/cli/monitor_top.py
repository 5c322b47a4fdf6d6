"""Implements `iodock monitor top`, which shows the jobs and users with the largest rates, at present or at an
earlier time."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iodock.cli.ending import told_to_end
from iodock.cli.monitor_store import StoreOptions, store_options
from iodock.cli.options import examples, json_too, language, spoken
from iodock.cli.streams import say
from iodock.cli.times import length, moment
from iodock.shared.errors import IodockError

if TYPE_CHECKING:
    import pyarrow as pa

    from iodock.centre.monitor.questions.ids import JobIds
    from iodock.centre.monitor.questions.top import TopWanted
    from iodock.centre.store import MonitorTables
    from iodock.centre.watch.watching import Watching
    from iodock.shared.language import Language

_GROUPS = ("job", "user", "node", "target", "file-system")
_SORTS = ("write", "read", "metadata", "name")
_PLACES = ("servers", "processes", "cgroups")
_JUMP_S = 60.0
_HELP = "s sort  r reverse  b by  p where counted  / find  ← → a minute  l live  space pause  q quit"


@click.command(
    epilog=examples(
        (
            "iodock monitor top --store /scratch/monitor",
            "iodock monitor top --store /scratch/monitor --by user --sort metadata",
            "iodock monitor top --store /scratch/monitor --at '2026-04-01 12:00' --speed 60",
            "iodock monitor top --store /scratch/monitor --once --format csv",
            "iodock monitor top --store prometheus+https://prometheus.example --store-token token",
        )
    )
)
@store_options("the collector's store; or prometheus://HOST:PORT, which scrapes the agents")
@click.option(
    "--by", type=click.Choice(_GROUPS), default="job", show_default=True, help="object that a row represents"
)
@click.option(
    "--sort",
    type=click.Choice(_SORTS),
    default="write",
    show_default=True,
    help="sort by this, largest first",
)
@click.option(
    "--counted", "place", type=click.Choice(_PLACES), default="servers", show_default=True,
    help="as counted by file servers, as requested by processes, or as counted by the nodes' devices",
)  # fmt: skip
@click.option("--user", default="", metavar="USER", help="only rows of this user")
@click.option("--file-system", default="", metavar="NAME", help="count only the I/O on this file system")
@click.option(
    "--find",
    "having",
    default="",
    metavar="TEXT",
    help="only rows whose id, name, user or command contains this text",
)
@click.option(
    "--over",
    callback=length,
    default="60",
    show_default=True,
    metavar="TIME",
    help="period over which rates are averaged",
)
@click.option(
    "--at", callback=moment, metavar="TIME", help="replay from this date on, or from this long ago on: 2h"
)
@click.option(
    "--speed", type=click.FloatRange(0, min_open=True), default=1.0, show_default=True, metavar="X",
    help="speed of a replay: recorded seconds per second",
)  # fmt: skip
@click.option(
    "--every",
    callback=length,
    default="5",
    show_default=True,
    metavar="TIME",
    help="interval between updates",
)
@click.option(
    "--top", "most", type=click.IntRange(1), default=100, show_default=True, metavar="N", help="rows"
)
@click.option("--once", is_flag=True, help="print one table and end; this is the default without a terminal")
@json_too
@click.option("--format", "form", type=click.Choice(("table", "csv", "json")), help="with --once")
@click.option("--jobid-name", metavar="FORM", help="the servers' jobid_name, as %j:%u:%H; default: guessed")
@language
def top(
    store: str,
    store_token: Path | None,
    store_user: str,
    store_password: Path | None,
    store_ca: Path | None,
    by: str,
    sort: str,
    place: str,
    user: str,
    file_system: str,
    having: str,
    over: float,
    at: int | None,
    speed: float,
    every: float,
    most: int,
    once: bool,
    form: str | None,
    jobid_name: str | None,
    lang: str | None,
) -> None:
    """The users and jobs with the most load on the file systems, now or at an earlier time."""
    from iodock.centre.monitor.questions.ids import job_ids
    from iodock.centre.monitor.questions.top import TopWanted
    from iodock.shared.language import language_in

    kept = StoreOptions(store, store_token, store_user, store_password, store_ca)
    wanted = TopWanted(
        by=by,
        sort=sort,
        place=place,
        having=having,
        user=user,
        file_system=file_system,
        seconds=over,
        most=most,
    )
    screen = Screen(kept.opened(), job_ids(jobid_name), wanted, language_in(spoken(lang)), at, speed)
    if once or form or not (sys.stdout.isatty() and sys.stdin.isatty()):
        _print(screen, form or "table")
    else:
        _watch(screen, every)


@dataclass
class Screen:
    """The state of the screen: what it shows, and the time for which it shows it."""

    store: MonitorTables
    ids: JobIds
    wanted: TopWanted
    text: Language
    at_ns: int | None
    """The time that a replay shows, ns since the epoch; None: the present is shown."""
    speed: float
    is_paused: bool = False
    search: str | None = None
    """The search text while the user types it; None: no search is being typed."""

    @property
    def moment_ns(self) -> int:
        return time.time_ns() if self.at_ns is None else self.at_ns

    def rows(self) -> pa.Table:
        from iodock.centre.monitor.questions.jobs import Seen
        from iodock.centre.monitor.questions.names import numbers_called, with_names
        from iodock.centre.monitor.questions.top import top as asked

        end, wanted = self.moment_ns, self.wanted
        if wanted.by != "job":
            return asked(self.store, end, self.ids, wanted).drop_columns(["is_job"])
        named = numbers_called(self.store, wanted.having, Seen(), end, end)
        rows = asked(self.store, end, self.ids, replace(wanted, named=named))
        return with_names(self.store, rows, end, end).drop_columns(["is_job"])

    def drawn(self, rows: pa.Table, width: int, height: int) -> Any:
        from iodock.centre.views.top_text import Heading, top_table

        wanted = self.wanted
        heading = Heading(
            self.moment_ns,
            self.at_ns is None,
            wanted.by,
            wanted.sort,
            wanted.place,
            wanted.seconds,
            wanted.having,
            self.health(),
        )
        return top_table(rows, heading, self.text, width, height)

    def health(self) -> str:
        """Returns a line about the present state of the servers. It is empty in a replay, and if the store
        can't be read."""
        from iodock.centre.views.verdicts import health_line

        if self.at_ns is not None:
            return ""
        try:
            return health_line(self.watching.look(), self.text, time.time_ns())
        except IodockError:
            return ""

    @cached_property
    def watching(self) -> Watching:
        from iodock.centre.watch.watching import Watching
        from iodock.shared.settings import load

        found = load()
        return Watching(self.store, self.ids, found.states, found.privacy.job_names)

    def pass_time(self, seconds: float) -> None:
        """Advances the time of a replay. When it reaches the present, the screen shows live data."""
        if self.at_ns is not None and not self.is_paused:
            self.at_ns += int(seconds * self.speed * 1e9)
            if self.at_ns >= time.time_ns():
                self.at_ns = None

    def press(self, key: str) -> bool:
        """Executes the command of a key. Returns False if the user wants to quit."""
        if self.search is not None:
            self._type(key)
        elif key in ("q", "end"):
            return False
        elif key in ("s", "b", "p"):
            self.wanted = self.wanted.next({"s": "sort", "b": "by", "p": "place"}[key])
        elif key == "r":
            self.wanted = replace(self.wanted, reverse=not self.wanted.reverse)
        elif key == "/":
            self.search = ""
        elif key in ("left", "right"):
            self._jump(-_JUMP_S if key == "left" else _JUMP_S)
        elif key == "l":
            self.at_ns, self.is_paused = None, False
        elif key == "space":
            self.at_ns, self.is_paused = self.moment_ns, not self.is_paused
        return True

    def _type(self, key: str) -> None:
        assert self.search is not None
        if key == "enter":
            self.wanted, self.search = replace(self.wanted, having=self.search), None
        elif key == "escape":
            self.search = None
        elif key == "back":
            self.search = self.search[:-1]
        elif len(key) == 1:
            self.search += key

    def _jump(self, seconds: float) -> None:
        self.at_ns = self.moment_ns + int(seconds * 1e9)
        if self.at_ns >= time.time_ns():
            self.at_ns = None


def _print(screen: Screen, form: str) -> None:
    from iodock.centre.views.top_text import printed

    rows = screen.rows()
    for limit in screen.store.limits:
        say(f"note: {screen.text.gettext(limit)}")
    if form == "table":
        width = shutil.get_terminal_size((120, 0)).columns
        group = screen.drawn(rows, width, rows.num_rows + 8)
        click.echo(printed(group, width, sys.stdout.isatty()), nl=False)
        return
    if form == "json":
        import json

        click.echo(json.dumps({"at": screen.moment_ns, "rows": rows.to_pylist()}, ensure_ascii=False))
        return
    import csv

    from iodock.shared.tables.cells import guarded_row

    writer = csv.writer(sys.stdout)
    writer.writerow(rows.column_names)
    writer.writerows(guarded_row(row.values()) for row in rows.to_pylist())


def _watch(screen: Screen, every: float) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    from iodock.cli.keys import key, single_keys

    console = Console()
    with (
        told_to_end() as wake,
        single_keys() as keyboard,
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        rows, looked = screen.rows(), time.monotonic()
        while True:
            size = console.size
            foot = f"/{screen.search}" if screen.search is not None else _HELP
            table = screen.drawn(rows, size.width, size.height - 1)
            live.update(
                Group(table, Text(foot, style="dim", no_wrap=True, overflow="ellipsis")), refresh=True
            )
            pressed = key(keyboard, wake, looked + every - time.monotonic())
            if pressed is not None and not screen.press(pressed):
                return
            now = time.monotonic()
            if pressed is None or screen.search is None:
                screen.pass_time(now - looked)
                rows, looked = screen.rows(), now
