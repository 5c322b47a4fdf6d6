"""Implements `iodock show jobs DIR`, which lists the jobs in a folder of Darshan logs or stores."""

from __future__ import annotations

from pathlib import Path

import click

from iodock.cli.helps import equipped
from iodock.cli.options import JSON_HELP, examples, json_form, quiet, tables
from iodock.cli.output import TABLE_FORMATS, chosen_format, destination, write_table
from iodock.cli.progress import ProgressBar
from iodock.shared.errors import RequestError

_EXAMPLES = (
    "iodock show jobs /darshan-logs/2026/11",
    "iodock show jobs logs --sort io_share --top 20",
    "iodock show jobs logs --format csv -o jobs.csv",
)
SHORT = "Jobs of a folder of Darshan logs or stores"


def make() -> click.Command:
    """Makes the command. Its help contains the descriptions of the columns."""
    from iodock.program.jobs import DOC

    made = click.Command("jobs", callback=_show, help=DOC, short_help=SHORT, epilog=examples(_EXAMPLES))
    made.params = [
        click.Argument(["folder"], metavar="DIR"),
        click.Option(
            ["--sort"], metavar="COLUMN", help="sort by this column: for measures the largest value first"
        ),
        click.Option(["--top"], type=click.IntRange(1), metavar="N", help="only the first N rows"),
        click.Option(
            ["--format"],
            type=click.Choice(TABLE_FORMATS),
            help=("output format; default: by the ending of FILE"),
        ),
        click.Option(["--json", "as_json"], is_flag=True, help=JSON_HELP),
        click.Option(["-o", "--output"], metavar="FILE", help="output file; default: stdout"),
    ]
    return equipped(quiet(tables(made)))


def _show(
    folder: str,
    sort: str | None,
    top: int | None,
    format: str | None,
    as_json: bool,
    output: str | None,
    quiet: bool,
    wide: bool,
) -> None:
    from iodock.cli.beside import say_notes
    from iodock.program.jobs import COLUMNS, jobs_of
    from iodock.shared.tables import write_data
    from iodock.shared.tables.table import column_named

    form = chosen_format(json_form(as_json, format), output)
    if form not in TABLE_FORMATS:
        raise RequestError(f"jobs have no chart: {form}", f"--format {', '.join(TABLE_FORMATS)}")
    options = {"sort": None if sort is None else column_named(sort, COLUMNS), "top": top}
    with ProgressBar("reading", quiet, "jobs", rated=False) as bar:
        answer = jobs_of(Path(folder), options, lambda done, of: bar(done, of, done))
    if form == "table":
        write_table(answer, output, wide)
    else:
        with destination(output) as out:
            write_data(answer, form, out)
    # In JSON the notes are a part of the document, so they are not printed on stderr as well.
    if not quiet and form != "json":
        say_notes(answer.notes)
