"""Implements `iodock monitor heavy`, which lists the jobs of the last month by their load on file servers."""

from __future__ import annotations

import csv
import json
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.monitor_store import StoreOptions, store_options
from iodock.cli.options import examples, json_too, language, spoken
from iodock.cli.streams import say
from iodock.cli.times import length, moment
from iodock.shared.errors import RequestError, StoreError
from iodock.shared.units import number_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_SORTS = (
    *("metadata", "metadata_share", "opens", "creates", "object_creates", "bytes", "bytes_share"),
    *("read_bytes", "write_bytes", "episodes", "hosts", "seconds", "begin_ts", "end_ts", "job", "user"),
)
_LEAST_S = 3600.0


@click.command(
    epilog=examples(
        (
            "iodock monitor heavy --store /scratch/monitor",
            "iodock monitor heavy --store /scratch/monitor --sort object_creates --top 20",
            "iodock monitor heavy --store /scratch/monitor --user alice --over 7d --format csv",
        )
    )
)
@store_options("the collector's store; or prometheus://HOST:PORT, which scrapes the agents")
@click.option(
    "--over", callback=length, default="30d", show_default=True, metavar="TIME", help="how far to look back"
)
@click.option(
    "--until", callback=moment, metavar="TIME", help=("up to a date, or this long ago; default: now")
)
@click.option(
    "--sort", type=click.Choice(_SORTS), default="metadata", show_default=True, metavar="COLUMN",
    help=f"the greatest first: {', '.join(_SORTS)}",
)  # fmt: skip
@click.option("--user", default="", metavar="USER", help="only rows of this user")
@click.option("--file-system", default="", metavar="NAME", help="count only the I/O on this file system")
@click.option(
    "--find",
    "having",
    default="",
    metavar="TEXT",
    help="only rows whose id, name or command contains this text",
)
@click.option(
    "--top",
    "most",
    type=click.IntRange(1, 100_000),
    default=50,
    show_default=True,
    metavar="N",
    help="rows",
)
@click.option(
    "--response", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="folder in which the collector keeps episodes; default: the store's name and .response",
)  # fmt: skip
@json_too
@click.option("--format", "form", type=click.Choice(("table", "csv", "json")), help="default: table")
@click.option("--jobid-name", metavar="FORM", help="the servers' jobid_name, as %j:%u:%H; default: guessed")
@language
def heavy(
    store: str,
    store_token: Path | None,
    store_user: str,
    store_password: Path | None,
    store_ca: Path | None,
    over: float,
    until: int | None,
    sort: str,
    user: str,
    file_system: str,
    having: str,
    most: int,
    response: Path | None,
    form: str | None,
    jobid_name: str | None,
    lang: str | None,
) -> None:
    """Jobs of the last month by their load on file servers: opens, creates, bytes, their share of the
    requests of all jobs in that time, and in how many episodes of server problems they were suspected."""
    from iodock.centre.monitor.logins import names
    from iodock.centre.monitor.questions import heavy as question
    from iodock.centre.monitor.questions.ids import job_ids
    from iodock.centre.monitor.questions.spans import span
    from iodock.centre.views.heavy_text import heavy_table
    from iodock.centre.views.top_text import printed
    from iodock.shared.language import language_in

    if over < _LEAST_S:
        raise RequestError(
            f"--over {number_text(over, 6)} s is too short",
            "give 1h or more; for shorter periods use iodock monitor top",
        )
    place = StoreOptions(store, store_token, store_user, store_password, store_ca)
    tables, end = place.opened(), until or time.time_ns()
    within = span(end - int(over * 1e9), end, tables.catalogue)
    folder = response or (None if place.is_prometheus else _beside(place.folder()))
    wanted = question.Wanted(
        users=names(user) if user else (), file_system=file_system, having=having, sort=sort,
        descending=sort not in ("job", "user"), most=most,
        episodes=_episodes(folder, within.begin, is_wanted=response is not None),
    )  # fmt: skip
    rows, total = question.heavy(tables, within, job_ids(jobid_name), wanted)
    text = language_in(spoken(lang))
    for limit in tables.limits:
        say(f"note: {text.gettext(limit)}")
    if form in ("csv", "json"):
        _download(rows, total, (within.begin, within.end), form)
        return
    width = shutil.get_terminal_size((160, 0)).columns
    click.echo(printed(heavy_table(rows, total, sort, text, width), width, sys.stdout.isatty()), nl=False)


def _beside(store: Path) -> Path:
    whole = store.absolute()
    return whole.with_name(f"{whole.name}.response")


def _episodes(folder: Path | None, since: int, is_wanted: bool) -> Mapping[str, int] | None:
    """Returns the number of episodes in which each job was suspected, or None if it is not known. Raises
    StoreError if the folder was named by the user but can't be read."""
    from iodock.centre.watch.episode_rows import suspected
    from iodock.centre.watch.ledger import LedgerBeside

    if folder is None:
        return None
    try:
        return suspected(LedgerBeside(folder), since)
    except StoreError as error:
        if is_wanted:
            raise
        say(f"note: episodes of unwell servers are not known: {error}")
        return None


def _download(rows: list[dict[str, object]], total: int, within: tuple[int, int], form: str) -> None:
    """Prints the rows as CSV or JSON. Numbers are plain: counts, bytes, seconds, and ns since the epoch."""
    from iodock.centre.monitor.questions.heavy import COLUMNS
    from iodock.shared.tables.cells import guarded_row

    plain = [{name: _plain(row[name]) for name in COLUMNS} for row in rows]
    if form == "json":
        told = {"begin_ts": within[0], "end_ts": within[1], "total": total, "rows": plain}
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(guarded_row(row.values()) for row in plain)


def _plain(value: object) -> object:
    """Converts a float to an integer if it is one after rounding to six digits. Sums of shares are floats,
    but most of them are integers."""
    if isinstance(value, float):
        rounded = round(value, 6)
        return int(rounded) if rounded.is_integer() else rounded
    return value
