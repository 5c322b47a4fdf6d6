"""Implements `iodock query STORE SQL`, which runs an SQL query on a store."""

from __future__ import annotations

import click

from iodock.cli.beside import say_beside
from iodock.cli.options import examples, json_too, quiet, tables
from iodock.cli.output import TABLE_FORMATS, chosen_format, destination, write_table
from iodock.shared.tables import write_data

EXAMPLES = (
    "iodock query run.iodock 'SELECT call, count(*) FROM calls_seen GROUP BY call ORDER BY 2 DESC'",
    "iodock query run.iodock 'SELECT * FROM files' --format csv -o files.csv",
    "iodock query run.iodock 'DESCRIBE calls_seen'",
)


@click.command(epilog=examples(EXAMPLES))
@click.argument("store")
@click.argument("sql")
@json_too
@click.option(
    "--format",
    "form",
    type=click.Choice(TABLE_FORMATS),
    help="output format; default: table, or by the ending of -o",
)
@click.option("-o", "--output", metavar="FILE", help="output file; default: stdout")
@click.option(
    "--unsafe",
    is_flag=True,
    help="allow the query to read and write any file, attach databases and load extensions",
)
@tables
@quiet
def command(
    store: str, sql: str, form: str | None, output: str | None, unsafe: bool, wide: bool, quiet: bool
) -> None:
    """Ask a store in SQL. Its tables: events files processes commands calls errnos mounts samples, and
    two views with names: calls_seen, one row per call, and call_ends, one row per call and end (a rename has
    two). Those that rules read are there too: uses, transfers, places, ... (iodock explain lists their
    columns). A query reads this store and nothing else, and changes nothing."""
    from iodock.program.relations.profile import Profile, tables_in
    from iodock.program.store import Store
    from iodock.program.views.untyped import answer_of
    from iodock.shared.settings import load

    chosen = chosen_format(form, output)
    with Store.open(store) as opened:
        asked = opened.unsafe if unsafe else opened
        if views := tables_in(sql):
            Profile(asked, load()).need(views)
        answer = answer_of(asked.engine.user_query(sql), "query", opened.manifest)
    if chosen == "table":
        write_table(answer, output, wide, is_query=True)
    else:
        with destination(output) as out:
            write_data(answer, chosen, out)
    if not quiet and chosen != "json":
        say_beside(answer)
