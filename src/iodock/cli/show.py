"""Implements `iodock show ANALYSIS STORE`, which prints an analysis in any format."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from iodock.cli.helps import equipped
from iodock.cli.opening import check_opens, open_page
from iodock.cli.options import JSON_HELP, examples, filter_arguments, filters, json_form, quiet, tables
from iodock.cli.output import TABLE_FORMATS, chosen_format, destination, is_coloured, write_table
from iodock.cli.spoken import language
from iodock.cli.usage import unknown
from iodock.shared.charts import CHART_FORMATS
from iodock.shared.errors import RequestError
from iodock.shared.tables import write_data

if TYPE_CHECKING:
    from iodock.program.store import Store

_TYPES: dict[str, dict[str, Any]] = {
    "int": {"type": int, "metavar": "N"},
    "flag": {"is_flag": True},
    "seconds": {"metavar": "TIME"},
    "keys": {"metavar": "KEY,..."},
    "choice": {},
    "column": {"metavar": "COLUMN"},
}


JOBS = "jobs"
"""This analysis is of a folder; all others are of a store."""


class Analyses(click.Group):
    """A click group whose commands are the analyses. Each command is created from the description of its
    analysis."""

    def list_commands(self, context: click.Context) -> list[str]:
        from iodock.program import analyses

        return [*analyses.listed(), JOBS]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        from iodock.program import analyses

        if name == JOBS:
            from iodock.cli.jobs import make

            return make()
        return _command(name) if name in analyses.names() else None

    def resolve_command(self, context: click.Context, args: list[str]) -> Any:
        from iodock.program import analyses

        if args and not args[0].startswith("-") and args[0] not in (*analyses.names(), JOBS):
            listed = (*analyses.listed(), JOBS)
            otherwise = f"analyses: {', '.join(listed)}"
            raise unknown("analysis", args[0], listed, otherwise, "iodock show summary")
        return super().resolve_command(context, args)


@click.group(
    cls=Analyses,
    subcommand_metavar="ANALYSIS STORE [OPTIONS]",
    epilog=examples(
        (
            "iodock show summary run.iodock",
            "iodock show summary run.iodock --by file,call --top 20 --user-files",
            "iodock show timeline run.iodock --every 0.1 --format png -o timeline.png",
        )
    ),
)
def command() -> None:
    """Show an analysis of a store, as a table, CSV, JSON, Parquet, or a chart (PNG, SVG, PDF, HTML)."""


def _command(name: str) -> click.Command:
    from iodock.program import analyses
    from iodock.program.views.charts import charts_for

    analysis = analyses.find(name)
    made = click.Command(
        name,
        callback=partial(_show, name),
        help=analysis.doc,
        short_help=analysis.title,
        epilog=examples(analysis.examples),
        params=[click.Argument(["store"])],
    )
    for option in analysis.every_option:
        parameters = dict(_TYPES[option.type])
        if option.type == "choice":
            parameters["type"] = click.Choice(option.choices)
        flag = f"--{option.name.replace('_', '-')}"
        default = False if option.type == "flag" else None
        made.params.append(click.Option([flag], default=default, help=option.doc, **parameters))
    _output_options(made, charts_for(name))
    filters(made)
    return equipped(made)


def _output_options(made: click.Command, charts: list[str]) -> None:
    formats = click.Choice((*TABLE_FORMATS, *CHART_FORMATS))
    made.params += [
        click.Option(
            ["--format"],
            type=formats,
            help="format of the output; default: table, or the format of -o FILE's ending. CSV has an "
            "apostrophe before a text that a spreadsheet would take for a formula; JSON and Parquet "
            "have texts unchanged",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help=JSON_HELP),
        click.Option(["-o", "--output"], metavar="FILE", help="output file; default: stdout"),
        click.Option(
            ["--open", "opens"], is_flag=True, help="open a chart written as FILE.html in a browser"
        ),
        click.Option(["--chart"], type=click.Choice(charts), help="chart to draw"),
        click.Option(["--title"], metavar="TEXT", help="title of the chart"),
        click.Option(["--only"], metavar="SERIES,...", help="draw only these series, e.g. failed"),
        click.Option(["--width"], type=int, metavar="PIXELS", help="width of the chart"),
        click.Option(["--height"], type=int, metavar="PIXELS", help="height of the chart"),
        click.Option(["--theme"], type=click.Choice(("light", "dark", "print")), help="colours of the chart"),
    ]
    quiet(tables(made))


def _show(name: str, store: str, **values: Any) -> None:
    from iodock.program import analyses
    from iodock.program.analyses.base import request
    from iodock.program.store import Store
    from iodock.shared.tables.table import column_named

    wanted = json_form(values.pop("as_json"), values.pop("format"))
    form = chosen_format(wanted, output := values.pop("output"))
    chart = {key: values.pop(key) for key in ("chart", "title", "only", "width", "height", "theme")}
    silent, is_wide, opens = values.pop("quiet"), values.pop("wide"), values.pop("opens")
    check_opens(opens, form, output)
    analysis = analyses.find(name)
    chosen = filter_arguments(values)
    if values["sort"] is not None:
        values["sort"] = column_named(values["sort"], analysis.columns, language())
    asked = request(analysis, {**chosen, **values})
    with Store.open(store) as opened:
        if analysis.stream is not None and form in TABLE_FORMATS:
            from iodock.cli.streaming import write_stream

            answer = write_stream(analysis.stream(opened, asked), form, output, is_wide)
        else:
            answer = analysis.run(opened, asked)
            if name == "machine":
                answer = _with_servers(answer, opened)
            _write(answer, form, output, chart, is_wide)
    # In JSON the notes are a part of the document, so they are not printed on stderr as well.
    if not silent and form != "json":
        from iodock.cli.beside import say_beside

        say_beside(answer)
    if opens:
        open_page(str(output))


def _with_servers(answer: Any, opened: Store) -> Any:
    """Adds the curves of file servers to an answer, if the settings name a monitor."""
    from iodock.cli.servers import servers_of
    from iodock.program.analyses.machine import with_servers
    from iodock.shared.settings import load

    servers = servers_of(opened, load())
    return answer if servers is None else with_servers(answer, servers, language())


def _write(answer: Any, form: str, output: str | None, chart: dict[str, Any], is_wide: bool) -> None:
    if form == "table" and answer.analysis == "flame" and "sort" not in answer.options:
        _write_flame(answer, output, is_wide)
        return
    if form == "table":
        write_table(answer, output, is_wide)
        return
    with destination(output) as out:
        if form in CHART_FORMATS:
            out.write(drawn(answer, form, chart))
        else:
            write_data(answer, form, out)


def _write_flame(answer: Any, output: str | None, is_wide: bool) -> None:
    from iodock.program.views.flame_text import flame_text
    from iodock.shared.tables.table import terminal_width

    width = terminal_width() if output in (None, "-") and not is_wide else None
    tree = flame_text(answer, width, is_coloured(output), language())
    with destination(output, sideways=is_wide) as out:
        out.write(tree.encode("utf-8", "backslashreplace"))


def drawn(answer: Any, form: str, chart: dict[str, Any]) -> bytes:
    """Draws the chart of an answer in the format FORM. Raises RequestError for an unknown chart or an invalid
    size."""
    from iodock.program.views.charts import ChartOptions, UnknownChart
    from iodock.program.views.charts.export import draw

    only = tuple(part.strip() for part in (chart["only"] or "").split(",") if part.strip())
    try:
        options = ChartOptions(
            title=chart["title"],
            width=chart["width"],
            height=chart["height"],
            theme=chart["theme"] or "light",
            only=only,
        )
        picture = draw(form, answer, chart["chart"], options)
    except (UnknownChart, ValueError) as error:
        raise RequestError(str(error)) from error
    return picture
