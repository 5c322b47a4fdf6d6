"""Implements `iodock bundle`. It packs the data about a recorded run, or the digest of a job, into one
archive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iodock.cli.digest_places import digest_options
from iodock.cli.options import examples, language, quiet, spoken
from iodock.cli.output import check_folder
from iodock.shared.errors import IodockError, RequestError

if TYPE_CHECKING:
    from iodock.shared.language import Language

_EXAMPLES = (
    "iodock bundle run.iodock",
    "iodock bundle run.iodock --anonymous -o for-the-admin.tar.gz",
    "iodock bundle 4711@20261122T050000Z --portal https://monitor.example:9847 --token-file token",
)


@click.command(epilog=examples(_EXAMPLES))
@click.argument("store_or_id", metavar="STORE|ID")
@click.option("-o", "--output", metavar="FILE", help="name of the archive; default: NAME-bundle.tar.gz here")
@click.option(
    "--anonymous",
    is_flag=True,
    help="replace the names of files, hosts and programs by invented ones, and leave arguments out",
)
@click.option("--force", is_flag=True, help="replace an earlier archive of that name; other files stay")
@digest_options
@language
@click.option("--settings", metavar="FILE", help="the site's settings; default: $IODOCK_SETTINGS")
@quiet
def command(
    store_or_id: str,
    output: str | None,
    anonymous: bool,
    force: bool,
    lang: str | None,
    settings: str | None,
    quiet: bool,
    **digests: Any,
) -> None:
    """Step 4 of the method: pack the data that an administrator needs about a run into one archive:
    findings, report, environment, mounts, times, the longest calls, and tables as CSV. With the id in a
    job's digest (iodock monitor digest): the digest, and the monitor's data about the job; --portal,
    --store and --run are for that. Prints the archive's name."""
    from iodock.shared.language import language_in
    from iodock.shared.settings import load

    text = language_in(spoken(lang))
    if not os.path.lexists(store_or_id) and _is_id(store_or_id):
        if anonymous:
            raise RequestError(
                "--anonymous is for recordings", "a digest has names of jobs, users and machines"
            )
        click.echo(str(_of_job(store_or_id, output, force, text, digests)))
        return
    from iodock.cli.progress import ProgressBar
    from iodock.cli.servers import servers_in_time
    from iodock.program.bundle import write_bundle

    if any(value for name, value in digests.items() if name != "within"):
        raise RequestError(
            f"{store_or_id}: is not an id from a digest",
            "--portal, --store and --run need the id of a digest",
        )
    name = Path(store_or_id).resolve().name.removesuffix(".iodock")
    target = _target(output or f"{name}-bundle.tar.gz", force)
    with ProgressBar("packing", quiet, "parts", rated=False) as progress:
        write_bundle(Path(store_or_id), target, text, load(settings), anonymous, progress, servers_in_time)
    click.echo(str(target))


def _is_id(name: str) -> bool:
    from iodock.centre.watch.digest import is_id

    return "@" in name and is_id(name)


def _of_job(digest_id: str, output: str | None, force: bool, text: Language, digests: dict[str, Any]) -> Path:
    from iodock.cli.digest_bundle import name_of, write_digest_bundle
    from iodock.cli.digest_places import place_of

    recording = digests.pop("recording")
    target = _target(output or name_of(digest_id), force)
    write_digest_bundle(place_of(digests), digest_id, recording, target, text)
    return target


def _target(name: str, force: bool) -> Path:
    """Returns the path of the archive. Raises IodockError if a file exists there. With --force, it raises
    this error only if that file is not an archive of `iodock bundle`."""
    from iodock.program.bundle import is_bundle

    target = Path(name)
    if os.path.lexists(target):
        if not force:
            raise IodockError(f"{target}: exists", "--force replaces it, -o names another")
        if not is_bundle(target):
            raise IodockError(
                f"{target}: is not an archive of iodock bundle, so --force does not replace it",
                "name another one with -o",
            )
    check_folder(str(target))
    return target
