"""Implements `iodock health`, which measures the performance of a file system, shows and compares results,
and makes remarks on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.bench import FORMATS, write
from iodock.cli.health_clean import command as clean
from iodock.cli.health_run import command as run
from iodock.cli.opening import check_opens, open_page, opening
from iodock.cli.options import examples, json_too, language, quiet, spoken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iodock.file_system.health.measurements import Measurements
    from iodock.shared.language import Language

_EXAMPLES = (
    "iodock health run /scratch/me --class S -o work.json",
    "iodock health show scratch.json",
    "iodock health show ior-*.txt --lang ja",
    "iodock health compare january.json today.json",
)


@click.group(epilog=examples(_EXAMPLES))
def command() -> None:
    """The check-up of a file system: its performance by I/O size and number of processes, with the remarks
    that a specialist would make."""


command.add_command(run)
command.add_command(clean)


@command.command(epilog=examples(_EXAMPLES))
@click.argument("results", metavar="RESULT...", nargs=-1, required=True)
@json_too
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="default: table, or the format of -o's ending"
)
@click.option("-o", "--output", metavar="FILE", help="output file; default: stdout")
@language
@quiet
def show(
    results: tuple[str, ...], form: str | None, output: str | None, lang: str | None, quiet: bool
) -> None:
    """Print a result as a table with remarks. RESULT is a file of `iodock health run`, or output of
    another benchmark; several files are treated as one sweep."""
    write(remarked(results), form, output, spoken(lang), remarks=True)


def remarked(results: Sequence[str]) -> Measurements:
    """Combines several results, and finds remarks on all of their cells together. Raises MeasurementError."""
    from dataclasses import replace

    from iodock.file_system.health import readers, remarks
    from iodock.file_system.health.measurements import joined

    together = joined(readers.read(Path(result)) for result in results)
    return replace(together, remarks=remarks.find(together))


@command.command(
    epilog=examples(
        (
            "iodock health compare january.json today.json",
            "iodock health compare january.json today.json --format json --fail-on-regression",
        )
    )
)
@click.argument("base", metavar="BASE")
@click.argument("now", metavar="NOW")
@json_too
@click.option("--format", "form", type=click.Choice(("table", "json")), help="default: table")
@click.option("-o", "--output", metavar="FILE", help="output file; default: stdout")
@click.option("--fail-on-regression", is_flag=True, help="exit with 1 if anything became slower")
@language
@quiet
def compare(
    base: str,
    now: str,
    form: str | None,
    output: str | None,
    fail_on_regression: bool,
    lang: str | None,
    quiet: bool,
) -> int:
    """Report whether a file system became slower since BASE: two results of the same check-up, measured in
    the same way. Only repeated measurements can be compared; those that are left out are listed."""
    from iodock.cli.output import destination, is_coloured
    from iodock.file_system.health import readers
    from iodock.file_system.health.compare import compare as compared
    from iodock.file_system.views import health_compare
    from iodock.shared.language import language_in
    from iodock.shared.tables.table import terminal_width

    found = compared(readers.read(Path(base)), readers.read(Path(now)))
    text = language_in(spoken(lang))
    chosen = form or ("json" if output and output.endswith(".json") else "table")
    with destination(output) as out:
        if chosen == "json":
            rendered = health_compare.to_json(found, text)
        else:
            colour = is_coloured(output)
            rendered = health_compare.render(
                found, text, terminal_width() if output is None else None, colour
            )
        out.write(rendered.encode("utf-8", "backslashreplace"))
    return int(fail_on_regression and found.regressed)


@command.command(
    epilog=examples(
        (
            "iodock health report scratch.json",
            "iodock health report scratch.json -o scratch.pdf",
            "iodock health report ior-*.txt -o ior.html --lang ja",
        )
    )
)
@click.argument("results", metavar="RESULT...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FILE", help="output file; default: the first RESULT's name, .html")
@opening
@language
@quiet
def report(results: tuple[str, ...], output: str | None, opens: bool, lang: str | None, quiet: bool) -> None:
    """Write a check-up as one HTML page: remarks, graphs, how it was measured, all values. FILE.pdf gets the
    graphs with their remarks. Several RESULTs are one: a sweep."""
    from iodock.cli.output import check_folder, destination
    from iodock.shared.language import language_in

    path = output or f"{Path(results[0]).name.split('.')[0]}.html"
    check_opens(opens, "pdf" if path.endswith(".pdf") else "html", path)
    check_folder(path)
    measured, text = remarked(results), language_in(spoken(lang))
    rendered = _pdf(measured, text) if path.endswith(".pdf") else _page(measured, text)
    with destination(path) as out:
        out.write(rendered)
    if output is None:
        click.echo(path)
    if opens:
        open_page(path, text.code)


def _page(measured: Measurements, text: Language) -> bytes:
    from iodock.file_system.views.health_report import render

    return render(measured, text).encode("utf-8", "backslashreplace")


def _pdf(measured: Measurements, text: Language) -> bytes:
    from iodock.file_system.views.health_pdf import render

    return render(measured, text)
