"""Implements `iodock health clean DIR`, which removes files that killed check-ups left in a folder."""

from __future__ import annotations

import click

from iodock.cli.options import examples, quiet
from iodock.cli.streams import say
from iodock.shared.errors import IodockError


@click.command("clean", epilog=examples(("iodock health clean /scratch/me",)))
@click.argument("directory", metavar="DIR", type=click.Path())
@click.option(
    "--force",
    is_flag=True,
    help=("also clean folders of other machines, where no lock shows whether they are in use"),
)
@quiet
def command(directory: str, force: bool, quiet: bool) -> None:
    """Remove the folders that your check-ups left in DIR when they were killed. Such a folder is recognised
    by its tag; a folder in use is kept, and so are files in it that are not the check-up's own."""
    from iodock import _native

    try:
        cleaned = _native.load_clean(directory, force=force)
    except _native.NativeError as error:
        raise IodockError(str(error), error.hint) from None
    for path in cleaned["removed"]:
        click.echo(path)
    for path, why in cleaned["kept"]:
        say(f"note: kept {path}: {why}")
    if not any(cleaned.values()) and not quiet:
        say("note: no files were left behind")
    if cleaned["foreign"]:
        raise IodockError(
            f"not part of a check-up, so it is kept: {', '.join(cleaned['foreign'][:5])}",
            "check the file, and remove it yourself",
        )
