"""Implements `iodock symbolize STORE`, which adds functions and source lines to the stacks of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.options import examples, language, quiet, spoken
from iodock.shared.errors import RequestError
from iodock.shared.language import N_
from iodock.shared.text import visible

if TYPE_CHECKING:
    from iodock.program.capture import Symbolized, UnknownModule
    from iodock.shared.language import Language

_MOST_MODULES = 10
_EXAMPLES = (
    "iodock symbolize run.iodock",
    "iodock symbolize run.iodock --debug-dir ~/build --debug-dir /mnt/node/usr/lib/debug",
)
_NOT_FOUND = N_("{file}: no file with the build id {build_id} exists at its path or in the given folders")
_NO_FILE = N_("{file}: not found, neither at its path nor in the given folders")
_NO_LINES = N_(
    "{file}: no debug information. Compile with -g, or name the folder of its debug information by "
    "--debug-dir"
)


@click.command(epilog=examples(_EXAMPLES))
@click.argument("store")
@click.option(
    "--debug-dir",
    "folders",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="also search this folder for programs, libraries, and debug information as below /usr/lib/debug."
    " May be repeated",
)
@language
@quiet
def command(store: str, folders: tuple[Path, ...], lang: str | None, quiet: bool) -> None:
    """Name functions and source lines of a run with stacks after the run, or on another machine. A file of
    code is taken if its build id is the one that was recorded, so lines are never those of another build;
    where there is none, if its code makes calls where calls were seen. Debug information may be in the file,
    in one beside it (.gnu_debuglink, .dwp, .dwo), or in a folder by build id. Names that were known stay."""
    from iodock.program.capture import symbolize
    from iodock.program.store import Store
    from iodock.shared.language import language_in

    for folder in folders:
        if not folder.is_dir():
            raise RequestError(f"{folder}: no such folder", "--debug-dir is the name of a folder")
    with Store.open(store) as opened:
        if not opened.rows_of("sites"):
            raise RequestError(
                f"{opened.name}: does not contain the places from which its calls were made",
                "record with --stacks sites",
            )
        tables = opened.tables
    found = symbolize(tables, folders)
    if quiet:
        return
    text = language_in(spoken(lang))
    for line in _said(found, text):
        click.echo(line)


def _said(found: Symbolized, text: Language) -> Iterator[str]:
    yield text.ngettext(
        "{n} place that calls came from: {functions} with a function ({functions_before} before), {lines} "
        "with a line ({lines_before} before)",
        "{n} places that calls came from: {functions} with a function ({functions_before} before), {lines} "
        "with a line ({lines_before} before)",
        found.sites,
        functions=found.functions[1],
        functions_before=found.functions[0],
        lines=found.lines[1],
        lines_before=found.lines[0],
    )
    own = [one for one in found.unknown if not one.is_installed]
    for one in own[:_MOST_MODULES]:
        yield _why(one, text)
    if len(own) > _MOST_MODULES:
        more = len(own) - _MOST_MODULES
        yield text.ngettext("{n} more file without lines", "{n} more files without lines", more)
    if installed := len(found.unknown) - len(own):
        yield text.ngettext(
            "{n} installed library without lines", "{n} installed libraries without lines", installed
        )


def _why(one: UnknownModule, text: Language) -> str:
    file = visible(one.module)
    if one.why == "no-debug-information":
        return text.gettext(_NO_LINES, file=file)
    if one.build_id is None:
        return text.gettext(_NO_FILE, file=file)
    return text.gettext(_NOT_FOUND, file=file, build_id=one.build_id)
