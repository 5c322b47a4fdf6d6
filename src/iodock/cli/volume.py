"""Implements `iodock volume`, which compares the bytes that a program transfers with the sizes of its
files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.options import examples, json_too, language, quiet, spoken
from iodock.cli.output import check_folder, destination
from iodock.cli.sizes import size_bytes
from iodock.shared.errors import IodockError, RequestError

if TYPE_CHECKING:
    from iodock.shared.language import Language

_EXAMPLES = (
    "iodock volume -- ./a.out input.dat",
    "iodock volume --expect 500M -- ./a.out input.dat",
    "iodock volume -p 4711 --every 30",
)


@click.command(
    epilog=examples(_EXAMPLES),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "-p",
    "--pid",
    type=int,
    metavar="PID",
    help=("watch a process that is already running, with its children"),
)
@click.option(
    "--every", type=float, default=30.0, metavar="SECONDS", help="with -p: seconds between lines; default 30"
)
@click.option(
    "--expect",
    metavar="SIZE",
    help="the volume that you expect, 500M or 2G: used instead of the files' sizes",
)
@json_too
@click.option(
    "--format", "form", type=click.Choice(("table", "json")), default="table", help="format of the answer"
)
@click.option("-o", "--output", metavar="FILE", help="file for the answer; default: stderr for a command")
@language
@click.option("--settings", metavar="FILE", help="the site's settings; default: $IODOCK_SETTINGS")
@quiet
@click.argument("command", metavar="[--] CMD ARG...", nargs=-1, type=click.UNPROCESSED)
def command(
    command: tuple[str, ...],
    pid: int | None,
    every: float,
    expect: str | None,
    form: str,
    output: str | None,
    lang: str | None,
    settings: str | None,
    quiet: bool,
) -> int:
    """Step 2 of the method: bytes that a program transfers compared with the sizes of its files, without
    tracing it. The program runs as it would without iodock; its output and exit status are its own."""
    if (pid is None) == (not command):
        raise RequestError("give a command, or -p PID", "iodock volume -- CMD ARG...")
    if command and (Path(command[0]) / "manifest.json").is_file():
        raise RequestError(
            f"volume runs a program, and {command[0]} is not a program",
            f"it is a store: iodock show volume {command[0]}",
        )
    from iodock.program.volume.reading import read_volume
    from iodock.shared.language import language_in
    from iodock.shared.settings import load

    text = language_in(spoken(lang))
    known = load(settings)
    expected = None if expect is None else size_bytes(expect, "--expect")
    if pid is not None:
        if output or expect or form != "table":
            raise RequestError(
                "--output, --expect and --format are for a command, not for -p", "leave these out"
            )
        return _watch(pid, every, text, quiet)
    check_folder(output)
    from iodock.program.volume.measure import run

    sys.stdout.flush()
    volume = run(command)
    reading = read_volume(volume, known, expected)
    from iodock.program.views.volume_text import volume_json, volume_text

    said = (
        volume_json(volume, reading, text)
        if form == "json"
        else volume_text(volume, reading, text, _width(output))
    )
    if output is None:
        # The result is printed on stderr, because stdout belongs to the program.
        sys.stderr.write(said)
    else:
        try:
            with destination(output) as out:
                out.write(said.encode())
        except (OSError, IodockError):
            # If the file can't be written, for example on a full disk, the result is printed instead. The
            # user would otherwise have to run the program again.
            sys.stderr.write(said)
            raise
    if volume.exit_signal is not None:
        return 128 + volume.exit_signal
    return volume.exit_code or 0


def _width(output: str | None) -> int:
    """Returns the width of the terminal on which the result is printed, or the default width of files."""
    from iodock.program.views.volume_text import FILE_WIDTH

    if output is not None or not sys.stderr.isatty():
        return FILE_WIDTH
    # The result is printed on stderr, so the width of that terminal is used. A terminal that does not know
    # its width reports 0.
    return max(20, os.get_terminal_size(sys.stderr.fileno()).columns or FILE_WIDTH)


def _watch(pid: int, every: float, text: Language, quiet: bool) -> int:
    from iodock.program.views.volume_text import interval_text
    from iodock.program.volume.measure import watch

    if not 0 < every < float("inf"):
        raise RequestError(f"--every must be above 0, but is {every}")
    for volume in watch(pid, every):
        click.echo(interval_text(volume, text))
    if not quiet:
        print(f"note: process {pid} has ended", file=sys.stderr)
    return 0
