"""Implements `iodock fs`, which prints the properties of a file system and its typical values."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.opening import check_opens, open_page, opening
from iodock.cli.options import examples, json_too, language, quiet, spoken
from iodock.cli.output import check_folder, destination, form_of
from iodock.cli.streams import say
from iodock.shared.errors import IodockError

if TYPE_CHECKING:
    from iodock.file_system.health.card import Card
    from iodock.shared.language import Language
    from iodock.shared.settings import Settings

_EXAMPLES = (
    "iodock fs /scratch",
    "iodock fs /scratch --format motd --settings site.toml >> /etc/motd",
    "iodock fs /scratch -o work.html --lang ja",
    "iodock fs typical work.json -o site.toml",
)
FORMS = ("table", "json", "motd", "html")
LIMIT_S = 5.0


class _CardUnlessNamed(click.Group):
    """Treats `iodock fs DIR` as `iodock fs card DIR`. If a folder has the name of a subcommand, users must
    write ./NAME."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        if arguments and arguments[0] not in (*self.commands, *context.help_option_names):
            arguments = ["card", *arguments]
        return super().parse_args(context, arguments)


@click.group(cls=_CardUnlessNamed, subcommand_metavar="DIR | COMMAND ...", epilog=examples(_EXAMPLES))
def command() -> None:
    "The properties of a file system and its typical values: `iodock fs DIR` is `iodock fs card DIR`."


@command.command(epilog=examples(_EXAMPLES))
@click.argument("folder", metavar="DIR")
@json_too
@click.option("--format", "form", type=click.Choice(FORMS), help="default: table, or by the ending of -o")
@click.option("-o", "--output", metavar="FILE", default="-", help="output file; default: stdout")
@opening
@click.option("--settings", metavar="FILE", help="the site's settings; default: $IODOCK_SETTINGS")
@language
@quiet
def card(
    folder: str,
    form: str | None,
    output: str,
    opens: bool,
    settings: str | None,
    lang: str | None,
    quiet: bool,
) -> None:
    """The card of the file system that contains DIR: its type, an explanation of every mount option,
    servers, space, stripes, quota, caches, and the link limits and typical values in the site's settings.
    A server that does not answer within 5 s is reported."""
    from iodock.shared.language import language_in
    from iodock.shared.settings import load

    text = language_in(spoken(lang))
    chosen = form or form_of(output)
    check_opens(opens, chosen, output)
    check_folder(output)
    made = _card(folder, load(settings))
    if made.space is None and not quiet:
        say(f"note: {folder} does not answer; these are the values of the mount table")
    with destination(output) as out:
        out.write(_shown(chosen, made, text, output == "-").encode("utf-8", "backslashreplace"))
    if opens:
        open_page(output, text.code)


def _card(folder: str, settings: Settings) -> Card:
    from iodock.file_system.health.card import (
        Card,
        Space,
        caches_of,
        kind,
        options_of,
        remarks_of,
        servers_of,
    )
    from iodock.file_system.health.commands import stripes_of
    from iodock.file_system.health.mounts import mount_of, mounts
    from iodock.file_system.health.quota_tools import Owner, quotas_of
    from iodock.file_system.probe.folder import look

    path = os.path.normpath(Path.cwd() / folder)
    place = look(path, LIMIT_S, to_write=False)
    path = path if place is None else place.path
    mount = mount_of(path, mounts(), None if place is None else place.device)
    if mount is None:
        raise IodockError(f"{folder}: the file system mounted there is unknown", "see /proc/self/mountinfo")
    space = None
    if place is not None:
        said = place.space
        unit = said["f_frsize"]
        space = Space(
            said["f_blocks"] * unit, said["f_bavail"] * unit, said["f_files"], said["f_favail"],
            said["f_bsize"], said["f_namemax"],
        )  # fmt: skip
    stripes = None if place is None else stripes_of(path, mount)
    owner = None if place is None else Owner(os.geteuid(), place.group)
    quotas = None if owner is None else quotas_of(mount, path, owner)
    typical = settings.file_system(mount.point)
    return Card(
        path, socket.gethostname(), time.time_ns(), mount, kind(mount, typical), servers_of(mount),
        options_of(mount), space, stripes, quotas, caches_of(mount), typical,
        tuple(remarks_of(mount, space, stripes, quotas)),
    )  # fmt: skip


def _shown(form: str, card: Card, text: Language, on_terminal: bool) -> str:
    if form == "json":
        from iodock.file_system.views.card_json import card_json

        return card_json(card, text)
    if form == "html":
        from iodock.file_system.views.card_html import card_html

        return card_html(card, text)
    from iodock.file_system.views.card_text import card_motd, card_text

    return card_motd(card, text) if form == "motd" else card_text(card, text, on_terminal)


@command.command(
    epilog=examples(
        (
            "iodock fs typical work.json --mount /scratch",
            "iodock fs typical work.json -o /etc/iodock/settings.toml",
            "iodock fs typical ior.json mdtest.out --mount /scratch -o site.toml",
        )
    )
)
@click.argument("results", metavar="RESULT...", nargs=-1, required=True)
@click.option("--mount", metavar="DIR", help="mount point; default: that of the folder that was measured")
@click.option(
    "-o", "--output", metavar="FILE", help="site settings file to create or update; default: stdout"
)
@language
@quiet
def typical(
    results: tuple[str, ...], mount: str | None, output: str | None, lang: str | None, quiet: bool
) -> None:
    """Typical values and knees of a file system, from a health check or from other benchmarks'
    results, as `iodock diagnose` reads them in the site's settings: rates of one stream and of small
    calls, and the number of processes beyond which metadata calls become slower. In an existing file only
    the values that iodock wrote for that mount are replaced; an administrator's own values are kept."""
    from iodock.file_system.health import readers
    from iodock.file_system.health.measurements import joined
    from iodock.file_system.health.site_file import section, write
    from iodock.file_system.health.typical import typical as values_of
    from iodock.shared.language import language_in

    text = language_in(spoken(lang))
    measured = joined(readers.read(Path(one), None) for one in results)
    values, missing = values_of(measured)
    if not values:
        message = f"{', '.join(results)}: contains no value that is typical of one process"
        raise IodockError(message, "iodock health run DIR measures all of them")
    point = _mount_point(mount, measured.protocol.target)
    if output is None or output == "-":
        with destination(output) as out:
            out.write(section(point, values, measured.protocol).encode())
    else:
        write(Path(output), point, values, measured.protocol)
    for one in () if quiet else missing:
        say(f"note: {one.name}: {text.gettext(one.why)}")


def _mount_point(wanted: str | None, target: str | None) -> str:
    from iodock.file_system.health.mounts import mount_of, mounts
    from iodock.shared.errors import RequestError

    if wanted is not None:
        if not wanted.startswith("/"):
            raise RequestError(f"--mount {wanted} is not a mount point", "mount points begin with /")
        return "/" + os.path.normpath(wanted).strip("/")
    found = mount_of(os.path.normpath(target), mounts()) if target and target.startswith("/") else None
    if found is None or found.point == "/":
        message = "the mount point of the measured folder is unknown"
        raise RequestError(
            message, "give it with --mount, as `df` shows it on the machines that run programs"
        )
    return found.point
