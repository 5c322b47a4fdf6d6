"""Implements `iodock report STORE`, which writes the check-up of a run as an HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from iodock.cli.opening import check_opens, open_page, opening
from iodock.cli.options import examples, language, quiet, spoken
from iodock.cli.output import check_folder, destination

_EXAMPLES = (
    "iodock report run.iodock",
    "iodock report run.iodock -o run.html --lang ja",
    "iodock report run.iodock --source --open",
)


@click.command(epilog=examples(_EXAMPLES))
@click.argument("store")
@click.option("-o", "--output", metavar="FILE", help="output file; default: NAME.html here; - is stdout")
@click.option("--force", is_flag=True, help="replace an earlier report, as is done anyway; other files stay")
@click.option(
    "--source",
    is_flag=True,
    help=(
        "with the source lines around those that findings name; except for files that have changed "
        "since the run began"
    ),
)
@opening
@language
@quiet
def command(
    store: str, output: str | None, force: bool, source: bool, opens: bool, lang: str | None, quiet: bool
) -> None:
    """Write the whole check-up as one HTML page that works offline: the verdict, then calls, files, sizes,
    timeline, offsets, processes, failures, and what could not be seen. Prints the page's name. An earlier
    report of that name is replaced, any other file is not. Of counters (Darshan's logs) the page has what to
    change, volume, sizes, files, ranks and the heatmap."""
    from iodock.cli.servers import servers_of
    from iodock.program.diagnosis import diagnose
    from iodock.program.store import Store
    from iodock.program.views.counters import counters_html
    from iodock.program.views.report import report_html
    from iodock.program.views.report.target import check_target, page_bytes
    from iodock.shared.settings import load

    with Store.open(store) as opened:
        target = output or f"{opened.name.removesuffix('.iodock')}.html"
        check_opens(opens, "html", target)
        if target != "-":
            check_target(Path(target))
        check_folder(target)
        code = spoken(lang)
        site = load()
        servers = servers_of(opened, site)
        found = diagnose(opened, site, servers)
        if opened.manifest.profiles_only:
            page = counters_html(opened, code, found)
        else:
            page = report_html(opened, code, found, servers, source)
    with destination(target) as out:
        out.write(page_bytes(page))
    if target != "-" and not quiet:
        click.echo(str(Path(target)))
    if opens:
        open_page(target, code)
