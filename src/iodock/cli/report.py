"""`iodock report STORE`."""

from __future__ import annotations

from pathlib import Path

import click

from iodock.cli.options import examples, language, quiet, spoken
from iodock.cli.output import check_folder, destination
from iodock.errors import IodockError, RequestError

_EXAMPLES = ("iodock report run.iodock", "iodock report run.iodock -o run.html --lang ja")
_MARK = b'<meta name="generator" content="iodock">'
_HEAD_BYTES = 4096


@click.command(epilog=examples(_EXAMPLES))
@click.argument("store")
@click.option("-o", "--output", metavar="FILE", help="where to write; default: NAME.html here; - is stdout")
@click.option("--force", is_flag=True, help="replace an earlier report, as is done anyway; other files stay")
@language
@quiet
def command(store: str, output: str | None, force: bool, lang: str | None, quiet: bool) -> None:
    """Write the whole check-up as one HTML page that works offline: the verdict, then calls, files, sizes,
    timeline, offsets, processes, failures, and what could not be seen. Prints the page's name. An earlier
    report of that name is replaced, any other file is not."""
    from iodock.store import Store
    from iodock.views.report import report_html

    with Store.open(store) as opened:
        target = output or f"{opened.name.removesuffix('.iodock')}.html"
        _check_ending(target)
        _spare_other_files(target)
        check_folder(target)
        page = report_html(opened, language=spoken(lang))
    with destination(target) as out:
        out.write(page.encode("utf-8", "backslashreplace"))
    if target != "-" and not quiet:
        click.echo(str(Path(target)))


def _check_ending(target: str) -> None:
    """Raises RequestError where the name says that another format is wanted."""
    if target != "-" and Path(target).suffix.lower() not in ("", ".html", ".htm"):
        raise RequestError(
            f"{target}: a report is one HTML page", "-o NAME.html; iodock show makes charts and tables"
        )


def _spare_other_files(target: str) -> None:
    """Raises IodockError if TARGET is a file with something else in it than a report."""
    path = Path(target)
    if target == "-" or not path.is_file() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        if _MARK not in file.read(_HEAD_BYTES):
            raise IodockError(
                f"{target}: exists already, and is not a report of iodock",
                "take another name with -o FILE, or remove it yourself",
            )
