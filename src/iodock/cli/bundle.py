"""`iodock bundle STORE`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from iodock.cli.options import examples, language, quiet, spoken
from iodock.cli.output import check_folder
from iodock.shared.errors import IodockError

_EXAMPLES = ("iodock bundle run.iodock", "iodock bundle run.iodock --anonymous -o for-the-admin.tar.gz")


@click.command(epilog=examples(_EXAMPLES))
@click.argument("store")
@click.option("-o", "--output", metavar="FILE", help="name of the archive; default: NAME-bundle.tar.gz here")
@click.option(
    "--anonymous",
    is_flag=True,
    help="make up the names of files, hosts and programs, and leave arguments out",
)
@click.option("--force", is_flag=True, help="replace an earlier archive of that name; other files stay")
@language
@click.option("--settings", metavar="FILE", help="the site's settings; default: $IODOCK_SETTINGS")
@quiet
def command(
    store: str,
    output: str | None,
    anonymous: bool,
    force: bool,
    lang: str | None,
    settings: str | None,
    quiet: bool,
) -> None:
    """Step 4 of the method: pack what an administrator needs to know of a run into one archive: findings,
    report, environment, mounts, times, the longest calls, and tables as CSV. Prints the archive's name."""
    from iodock.cli.progress import ProgressBar
    from iodock.program.bundle import is_bundle, write_bundle
    from iodock.shared.language import language_in
    from iodock.shared.settings import load

    name = Path(store).resolve().name.removesuffix(".iodock")
    target = Path(output or f"{name}-bundle.tar.gz")
    if os.path.lexists(target):
        if not force:
            raise IodockError(f"{target}: exists", "--force replaces it, -o names another")
        if not is_bundle(target):
            raise IodockError(
                f"{target}: is not an archive of iodock bundle, so --force does not replace it",
                "name another with -o",
            )
    check_folder(str(target))
    with ProgressBar("packing", quiet, "parts", rated=False) as progress:
        write_bundle(Path(store), target, language_in(spoken(lang)), load(settings), anonymous, progress)
    click.echo(str(target))
