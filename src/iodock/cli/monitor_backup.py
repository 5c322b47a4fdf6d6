"""Implements `iodock monitor backup` and `restore`, which copy the collector's store and restore the copy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.options import examples, quiet
from iodock.cli.progress import ProgressBar
from iodock.cli.streams import say

if TYPE_CHECKING:
    from iodock.centre.monitor.backups import Done

_FOLDER = click.Path(path_type=Path)


@click.command(epilog=examples(("iodock monitor backup /backup/monitor --store /var/lib/iodock/monitor",)))
@click.argument("to", metavar="BACKUP", type=_FOLDER)
@click.option(
    "--store", required=True, metavar="DIR", type=_FOLDER, help="the collector's store, which may be in use"
)
@click.option("--force", is_flag=True, help="replace a backup of another store")
@quiet
def backup(to: Path, store: Path, force: bool, quiet: bool) -> None:
    """Copy a collector's store to the folder BACKUP as a consistent snapshot. If BACKUP is an earlier
    backup of the same store, existing files are compared with their SHA-256, new files are copied, and
    files that the store no longer has are removed. The earlier backup stays complete until this is done."""
    from iodock.centre.monitor import backups

    with ProgressBar("backup", quiet=quiet, noun="bytes") as tell:
        done = backups.backup(store, to, force, lambda part, whole: tell(part, whole, part))
    _say(f"{to}: {done.copied:,} files copied; the backup contains", done, quiet)


@click.command(epilog=examples(("iodock monitor restore /backup/monitor --store /var/lib/iodock/monitor",)))
@click.argument("backup_folder", metavar="BACKUP", type=_FOLDER)
@click.option("--store", required=True, metavar="DIR", type=_FOLDER, help="the store to create")
@click.option("--force", is_flag=True, help="replace an existing monitor store that contains no other files")
@quiet
def restore(backup_folder: Path, store: Path, force: bool, quiet: bool) -> None:
    """Create a store from a backup. Every file is compared with its SHA-256, and the rows of every table
    are counted, before the store is created."""
    from iodock.centre.monitor import backups

    with ProgressBar("restore", quiet=quiet, noun="bytes") as tell:
        done = backups.restore(backup_folder, store, force, lambda part, whole: tell(part, whole, part))
    _say(f"{store}: checked;", done, quiet)


def _say(what: str, done: Done, is_quiet: bool) -> None:
    for note in done.notes:
        say(f"warning: {note}")
    if not is_quiet:
        say(f"note: {what} {done.files:,} files, {done.size_bytes:,} bytes, {done.rows:,} rows")
