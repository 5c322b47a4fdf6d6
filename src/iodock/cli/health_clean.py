"""`iodock health clean DIR`: removes files of killed check-ups."""

from __future__ import annotations

import click

from iodock.cli.options import examples, quiet
from iodock.cli.streams import say
from iodock.shared.errors import IodockError


@click.command("clean", epilog=examples(("iodock health clean /scratch/me",)))
@click.argument("directory", metavar="DIR", type=click.Path())
@click.option(
    "--force", is_flag=True, help="also trees of other machines, where no lock tells whether they run"
)
@quiet
def command(directory: str, force: bool, quiet: bool) -> None:
    """Remove the trees that check-ups of yours left in DIR when they were killed. A tree is known by its
    tag; one that is in use stays, and so does whatever in it is not the check-up's own."""
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
        say("note: nothing was left behind")
    if cleaned["foreign"]:
        raise IodockError(
            f"not of a check-up, so it stays: {', '.join(cleaned['foreign'][:5])}",
            "look at it, and remove it yourself",
        )
