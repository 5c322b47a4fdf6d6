"""Implements `iodock probe`, which executes small operations on a file system at fixed intervals, and
analyses the results."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.ending import told_to_end
from iodock.cli.opening import check_opens, open_page, opening
from iodock.cli.options import examples, json_too, language, quiet, spoken
from iodock.cli.output import check_folder, destination, form_of
from iodock.cli.streams import say
from iodock.cli.times import length, moment
from iodock.shared.errors import RequestError, StoreError
from iodock.shared.language import Language, language_in
from iodock.shared.units import number_text

if TYPE_CHECKING:
    from iodock.file_system.probe.history import History
    from iodock.file_system.probe.judge import Sight
    from iodock.file_system.probe.records import Late, Round
    from iodock.file_system.probe.store import ProbeStore
    from iodock.file_system.probe.watch import Wish

_EXAMPLES = (
    "iodock probe run /scratch/me -o work.probe",
    "iodock probe show work.probe",
    "iodock probe mark work.probe 'server setting changed'",
)
FORMS = ("table", "json", "html", "motd")
_LEAST_EVERY = 1.0


@click.group(epilog=examples(_EXAMPLES))
def command() -> None:
    """Fixed-point observation: a few small operations on a file system, or a command, repeated at
    intervals. Finds the times at which it was slow or did not answer, its daily pattern, and its changes."""


@command.command(
    epilog=examples(
        (
            "iodock probe run /scratch/me --every 60 -o work.probe",
            "iodock probe run --command 'ls -ltr /scratch/me' --every 1h -o work.probe",
            "iodock probe run /scratch/me --rounds 1 -o work.probe   # from cron",
        )
    )
)
@click.argument("folder", metavar="DIR", required=False)
@click.option("--command", "shell", metavar="COMMAND", help="monitor this shell command instead of a folder")
@click.option(
    "--every",
    callback=length,
    default="60",
    show_default=True,
    metavar="TIME",
    help="interval between rounds",
)
@click.option(
    "--rounds", type=click.IntRange(1), metavar="N", help="number of rounds; default: until interrupted"
)
@click.option(
    "--limit",
    callback=length,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="longest time to wait for a reply",
)
@click.option(
    "--size", type=click.IntRange(0, 512), default=64, show_default=True, metavar="KIB",
    help="KiB to write and read back in each round",
)  # fmt: skip
@click.option(
    "-o",
    "--output",
    "store",
    required=True,
    metavar="STORE",
    help="the probe store, to which records are appended",
)
@quiet
def run(
    folder: str | None,
    shell: str | None,
    every: float,
    rounds: int | None,
    limit: float,
    size: int,
    store: str,
    quiet: bool,
) -> int:
    """Create, write, sync, read back, stat, list, rename and remove one small file in a separate folder
    below DIR, and query the free space, until Ctrl-C or SIGTERM. Each operation runs in a child process
    that is never waited for beyond the limit: a hanging server is recorded, but nothing else hangs. Put
    the store on another file system."""
    from iodock.file_system.probe.watch import Wish, watch

    if (folder is None) == (shell is None):
        raise RequestError("probe run needs a folder or a --command", "iodock probe run DIR -o STORE")
    if every < _LEAST_EVERY:
        raise RequestError(
            f"--every {number_text(every, 6)} is too frequent", f"{number_text(_LEAST_EVERY, 6)} s or more"
        )
    target = shell if shell is not None else os.path.normpath(Path.cwd() / (folder or ""))
    wish = Wish(target, shell is not None, every, limit, size << 10, rounds)
    with told_to_end() as wake:
        opened = _prepared(wish, store, quiet)
        lost = watch(wish, opened, wake, _quiet if quiet else _tell)
    if lost:
        raise StoreError(
            f"{store}: {lost} records could not be written", "check whether the disk of the store is full"
        )
    return 0


def _prepared(wish: Wish, store: str, quiet: bool) -> ProbeStore:
    from iodock.file_system.probe.folder import look
    from iodock.file_system.probe.leftovers import clean
    from iodock.file_system.probe.store import ProbeStore

    if wish.is_command:
        return ProbeStore.prepared(store)
    place = look(wish.target, min(wish.limit_s, 5.0))
    opened = ProbeStore.prepared(store)
    if place is None:
        _note(f"{wish.target} does not answer; this is recorded, and the probe continues", quiet)
        return opened
    if place.device == opened.folder.stat().st_dev:
        _note(f"{store} is on the file system that is watched: if that hangs, so does the store", quiet)
    if left := clean(opened, wish.target, wish.limit_s):
        _note(f"folders of earlier rounds that can't be removed: {left}", quiet)
    return opened


def _note(what: str, quiet: bool) -> None:
    if not quiet:
        say(f"note: {what}")


def _quiet(what: Round | Late | StoreError) -> None:
    if isinstance(what, StoreError):
        say(f"error: {what}; the probe continues and tries again")


def _tell(what: Round | Late | StoreError) -> None:
    """Prints errors, answers that came late, and rounds in which an operation was not answered. On a
    terminal, it prints all rounds."""
    from iodock.file_system.probe.records import Late
    from iodock.file_system.views.probe_words import late_line, round_line

    if isinstance(what, StoreError):
        _quiet(what)
    elif not isinstance(what, Late):
        if sys.stderr.isatty() or not what.is_good:
            say(round_line(what))
    else:
        say(late_line(what))


@command.command(epilog=examples(("iodock probe mark work.probe 'server setting changed'",)))
@click.argument("store")
@click.argument("text")
@quiet
def mark(store: str, text: str, quiet: bool) -> None:
    """Record that something was changed now: `show` then compares the time before with the time after."""
    from iodock.file_system.probe.store import ProbeStore
    from iodock.file_system.probe.watch import mark as write

    if not text.strip():
        raise RequestError("the text of a mark is empty", "describe the change")
    write(ProbeStore.open(store), text.strip())


@command.command(
    epilog=examples(
        (
            "iodock probe show work.probe",
            "iodock probe show work.probe --since 7d -o status.html",
            "iodock probe show work.probe --since 2d --format motd >> /etc/motd",
        )
    )
)
@click.argument("store")
@click.option(
    "--since", callback=moment, metavar="TIME", help=("from this date on, or from this long ago on: 7d")
)
@click.option("--until", callback=moment, metavar="TIME", help="before this date, or before this long ago")
@json_too
@click.option("--format", "form", type=click.Choice(FORMS), help="default: table, or by the ending of -o")
@click.option("-o", "--output", metavar="FILE", default="-", help="output file; default: stdout")
@opening
@language
@quiet
def show(
    store: str,
    since: int | None,
    until: int | None,
    form: str | None,
    output: str,
    opens: bool,
    lang: str | None,
    quiet: bool,
) -> None:
    """The results of the probes: the duration of each operation, the times at which it was far slower,
    failed or had no answer, its daily pattern, changes and drift, before and after each mark. As a table,
    JSON, a status page, or one line for /etc/motd for each folder or
    command that is watched."""
    from iodock.cli.progress import ProgressBar
    from iodock.file_system.probe.history import history
    from iodock.file_system.probe.judge import judge
    from iodock.file_system.probe.store import ProbeStore

    text = language_in(spoken(lang))
    chosen = form or form_of(output)
    check_opens(opens, chosen, output)
    check_folder(output)
    opened = ProbeStore.open(store)
    with ProgressBar("reading", quiet, "records", rated=False) as progress:
        known = history(opened, since, until, progress)
    with ProgressBar("looking for patterns", quiet, "operations", rated=False) as progress:
        sights = judge(known, time.time_ns() if until is None else until, progress)
    with destination(output) as out:
        out.write(_shown(chosen, known, sights, text, output == "-").encode("utf-8", "backslashreplace"))
    if opens:
        open_page(output, text.code)


def _shown(form: str, known: History, sights: tuple[Sight, ...], text: Language, on_terminal: bool) -> str:
    from iodock.file_system.probe.remarks import losses

    if form == "json":
        from iodock.file_system.views.probe_json import probe_json

        return probe_json(known, sights, text)
    if form == "html":
        from iodock.file_system.views.probe_html import probe_html

        return probe_html(sights, losses(known), text)
    from iodock.file_system.views.probe_text import probe_motd, probe_text

    return (
        probe_motd(sights, text) if form == "motd" else probe_text(sights, losses(known), text, on_terminal)
    )
