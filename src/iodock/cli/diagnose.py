"""Implements `iodock diagnose STORE`, which prints the findings about a run."""

from __future__ import annotations

import click

from iodock.cli.options import examples, json_too, language, no_pager, quiet, spoken
from iodock.cli.output import check_folder, destination

_EXAMPLES = (
    "iodock diagnose run.iodock",
    "iodock diagnose run.iodock --format json -o findings.json",
    "iodock diagnose run.iodock --fail-on medium --settings site.toml",
)


@click.command(epilog=examples(_EXAMPLES))
@click.argument("store")
@json_too
@click.option(
    "--format", "form", type=click.Choice(("table", "json")), default="table", help="format of the answer"
)
@click.option("-o", "--output", metavar="FILE", default="-", help="output file; default: stdout")
@language
@click.option(
    "--fail-on",
    type=click.Choice(("low", "medium", "high")),
    help="exit with 1 if there is a finding of this severity or above",
)
@click.option("--settings", metavar="FILE", help="the site's settings; default: $IODOCK_SETTINGS")
@no_pager
@quiet
def command(
    store: str,
    form: str,
    output: str,
    lang: str | None,
    fail_on: str | None,
    settings: str | None,
    quiet: bool,
) -> int:
    """Report what is wrong with a run's I/O, what to change and what that saves: few findings, those that
    save most first, or that nothing is worth changing."""
    from iodock.cli.servers import servers_of
    from iodock.program.diagnosis import diagnose
    from iodock.program.findings import Severity
    from iodock.program.store import Store
    from iodock.shared.language import language_in
    from iodock.shared.settings import load

    text = language_in(spoken(lang))
    check_folder(output)
    with Store.open(store) as opened:
        site = load(settings)
        found = diagnose(opened, site, servers_of(opened, site))
    if form == "json":
        from iodock.program.views.diagnosis_json import diagnosis_json

        with destination(output) as out:
            out.write(diagnosis_json(found, text).encode())
    else:
        from iodock.program.views.diagnosis_text import diagnosis_text

        with destination(output) as out:
            out.write(diagnosis_text(found, text, output == "-").encode())
    limit = Severity(fail_on) if fail_on else None
    return int(limit is not None and any(one.severity.at_least(limit) for one in found.findings))
