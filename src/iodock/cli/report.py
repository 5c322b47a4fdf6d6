"""`iodock report STORE`."""

from __future__ import annotations

from pathlib import Path

import click

from iodock.cli.options import examples, language, quiet, spoken
from iodock.cli.output import destination

_EXAMPLES = ("iodock report run.iodock", "iodock report run.iodock -o run.html --lang ja")


@click.command(epilog=examples(_EXAMPLES))
@click.argument("store")
@click.option("-o", "--output", metavar="FILE", help="where to write; default: NAME.html here; - is stdout")
@language
@quiet
def command(store: str, output: str | None, lang: str | None, quiet: bool) -> None:
    """Write the whole check-up as one HTML page that works offline: the verdict, then calls, files, sizes,
    timeline, offsets, processes, failures, and what could not be seen. Prints the page's name."""
    from iodock.store import Store
    from iodock.views.report import report_html

    with Store.open(store) as opened:
        page = report_html(opened, language=spoken(lang))
        target = output or f"{opened.name.removesuffix('.iodock')}.html"
    with destination(target) as out:
        out.write(page.encode("utf-8"))
    if target != "-" and not quiet:
        click.echo(str(Path(target)))
