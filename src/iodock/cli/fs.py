"""`iodock fs`: what a file system is."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.options import examples, language, quiet, spoken
from iodock.cli.output import check_folder, destination
from iodock.cli.streams import say
from iodock.errors import IodockError

if TYPE_CHECKING:
    from iodock.health.card import Card
    from iodock.language import Language
    from iodock.settings import Settings

_EXAMPLES = (
    "iodock fs /work",
    "iodock fs /work --format motd --settings site.toml >> /etc/motd",
    "iodock fs /work -o work.html --lang ja",
)
FORMS = ("table", "json", "motd", "html")
LIMIT_S = 5.0


@click.command(epilog=examples(_EXAMPLES))
@click.argument("folder", metavar="DIR")
@click.option("--format", "form", type=click.Choice(FORMS), help="default: table, or by the ending of -o")
@click.option("-o", "--output", metavar="FILE", default="-", help="where to write; default: stdout")
@click.option("--settings", metavar="FILE", help="the site's settings; default: $IODOCK_SETTINGS")
@language
@quiet
def command(
    folder: str, form: str | None, output: str, settings: str | None, lang: str | None, quiet: bool
) -> None:
    """The card of the file system that DIR lies on: its type, every mount option explained, servers, space,
    stripes, quota, caches, and the link limits and typical values that the site's settings give. A server
    that does not answer within 5 s is said to."""
    from iodock.language import language_in
    from iodock.settings import load

    text = language_in(spoken(lang))
    check_folder(output)
    card = _card(folder, load(settings))
    if card.space is None and not quiet:
        say(f"note: {folder} does not answer; this is what the mount table says")
    chosen = form or {".json": "json", ".html": "html"}.get(Path(output).suffix, "table")
    with destination(output) as out:
        out.write(_shown(chosen, card, text, output == "-").encode("utf-8", "backslashreplace"))


def _card(folder: str, settings: Settings) -> Card:
    from iodock.health.card import Card, Space, caches_of, kind, options_of, remarks_of, servers_of
    from iodock.health.commands import quotas_of, stripes_of
    from iodock.health.mounts import mount_of, mounts
    from iodock.probe.place import look

    path = os.path.normpath(Path.cwd() / folder)
    place = look(path, LIMIT_S, to_write=False)
    path = path if place is None else place.path
    mount = mount_of(path, mounts(), None if place is None else place.device)
    if mount is None:
        raise IodockError(f"{folder}: what is mounted there is not known", "see /proc/self/mountinfo")
    space = None
    if place is not None:
        said = place.space
        unit = said["f_frsize"]
        space = Space(
            said["f_blocks"] * unit, said["f_bavail"] * unit, said["f_files"], said["f_favail"],
            said["f_bsize"], said["f_namemax"],
        )  # fmt: skip
    stripes = None if place is None else stripes_of(path, mount)
    quotas = None if place is None else quotas_of(mount)
    typical = settings.file_system(mount.point)
    return Card(
        path, socket.gethostname(), time.time_ns(), mount, kind(mount, typical), servers_of(mount),
        options_of(mount), space, stripes, quotas, caches_of(mount), typical,
        tuple(remarks_of(mount, space, stripes, quotas)),
    )  # fmt: skip


def _shown(form: str, card: Card, text: Language, on_terminal: bool) -> str:
    if form == "json":
        from iodock.views.card_json import card_json

        return card_json(card, text)
    if form == "html":
        from iodock.views.card_html import card_html

        return card_html(card, text)
    from iodock.views.card_text import card_motd, card_text

    return card_motd(card, text) if form == "motd" else card_text(card, text, on_terminal)
