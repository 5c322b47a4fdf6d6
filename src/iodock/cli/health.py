"""`iodock health`: what a file system can do, and what to remark on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.bench import FORMATS, write
from iodock.cli.options import examples, language, quiet, spoken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iodock.health.measurements import Measurements

_EXAMPLES = (
    "iodock health show scratch.json",
    "iodock health show ior-*.txt --lang ja",
)


@click.group(epilog=examples(_EXAMPLES))
def command() -> None:
    """The check-up of a file system: what it can do, by size and by number of processes, and the remarks that
    a specialist would make."""


@command.command(epilog=examples(_EXAMPLES))
@click.argument("results", metavar="RESULT...", nargs=-1, required=True)
@click.option("--format", "form", type=click.Choice(FORMATS), help="default: table, or what -o's ending says")
@click.option("-o", "--output", metavar="FILE", help="where to write; default: stdout")
@language
@quiet
def show(
    results: tuple[str, ...], form: str | None, output: str | None, lang: str | None, quiet: bool
) -> None:
    """Print a result as a table with remarks. RESULT is what `iodock health run` wrote, or output of another
    benchmark; several are one: a sweep."""
    write(remarked(results), form, output, spoken(lang), remarks=True)


def remarked(results: Sequence[str]) -> Measurements:
    """Results put together, with remarks made anew on all of their cells. Raises MeasurementError."""
    from dataclasses import replace

    from iodock.health import readers, remarks
    from iodock.health.measurements import joined

    together = joined(readers.read(Path(result)) for result in results)
    return replace(together, remarks=remarks.find(together))
