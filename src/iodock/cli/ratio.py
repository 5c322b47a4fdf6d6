"""Implements `iodock ratio FILE...`, step 1 of the method. It computes the share of computing from times that
other tools recorded."""

from __future__ import annotations

import sys
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from iodock.cli.opening import check_opens, open_page, opening
from iodock.cli.options import examples, json_too, quiet
from iodock.cli.output import TABLE_FORMATS, chosen_format, destination, is_coloured
from iodock.cli.progress import ProgressBar
from iodock.cli.sizes import size_bytes
from iodock.cli.spoken import language
from iodock.program.ratio.source import RatioError
from iodock.shared.charts import CHART_FORMATS
from iodock.shared.errors import RequestError
from iodock.shared.tables import write_data
from iodock.shared.units import number_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iodock.program.ratio.files import Files
    from iodock.program.ratio.record import Record
    from iodock.program.ratio.source import Progress
    from iodock.shared.answer import Answer
    from iodock.shared.settings import Ratio

_EXAMPLES = (
    "/usr/bin/time -v ./a.out 2> time.log; iodock ratio time.log",
    "iodock ratio time.log --time-format '%e %U %S'",
    "iodock ratio node1/pacct node2/pacct --name 'IOR*' --by node",
    "sacct -P -o JobID,JobName,User,ElapsedRaw,UserCPU,SystemCPU,AllocCPUS,State | iodock ratio -",
    "iodock ratio SCRIPT.i30005 --expect 1TiB",
    "iodock ratio --history year.sacct -o utilisation.png",
)


def _positive(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise RequestError(f"--{parameter.name} must be a number above 0, not {number_text(value, 6)}")
    return value


def _seconds(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not 0 <= value < float("inf"):
        raise RequestError(f"--min-real must be a number of seconds from 0 on, not {number_text(value, 6)}")
    return value


@click.command(epilog=examples(_EXAMPLES))
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--from", "source_format", metavar="FORMAT", help="format of the files; default: recognised")
@click.option("--time-format", metavar="FORMAT", help="the files are output of GNU time -f FORMAT")
@click.option(
    "--cores", type=float, callback=_positive, metavar="N", help="number of cores if no source gives it"
)
@click.option(
    "--assistant-cores",
    type=click.IntRange(0),
    metavar="N",
    help="PJM: cores of a node that no job can use; default: 2 of 34",
)
@click.option(
    "--by",
    type=click.Choice(("record", "command", "user", "node")),
    help="add records up by this key; default: command for process accounting, otherwise records are not "
    "added up",
)
@click.option("--name", metavar="GLOB", help="only commands or jobs of this name")
@click.option("--user", "owner", metavar="NAME", help="only jobs of this user")
@click.option(
    "--expect",
    metavar="SIZE",
    help='I/O volume that you expect for each record, such as 500M or 1.5TiB; adds the column "of '
    'expected", the I/O volume divided by it',
)
@click.option("--threshold", type=float, callback=_positive, metavar="X", help="I/O-heavy below; default 0.1")
@click.option("--settings", metavar="FILE", help="the site's settings, which contain [ratio] io_below")
@click.option("--history", is_flag=True, help="distribution of all jobs, and a threshold for the site")
@click.option(
    "--weight",
    type=click.Choice(("jobs", "core-hours")),
    default="jobs",
    help="with --history: unit in which the threshold and the chart count",
)
@click.option(
    "--min-real",
    type=click.FloatRange(0),
    callback=_seconds,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="with --history: leave out jobs shorter than this, which mostly start and end",
)
@json_too
@click.option("--format", "form", type=click.Choice((*TABLE_FORMATS, *CHART_FORMATS)), help="default: table")
@click.option("-o", "--output", metavar="FILE", help="output file; default: stdout")
@opening
@click.option("--title", metavar="TEXT", help="title of the chart")
@click.option("--width", type=int, metavar="PIXELS", help="width of the chart")
@click.option("--height", type=int, metavar="PIXELS", help="height of the chart")
@click.option("--theme", type=click.Choice(("light", "dark", "print")), help="colours of the chart")
@quiet
def command(files: tuple[str, ...], form: str | None, **values: Any) -> None:
    """Share of the elapsed time in which a program computed: step 1 of finding out whether I/O is the
    problem. Reads times of GNU time, bash, csh and zsh, process accounting (pacct, dump-acct), sacct, PJM
    job statistics, and iodock stores; - is standard input. System time has its own column."""
    form = chosen_format(form, values["output"])
    check_opens(values["opens"], form, values["output"])
    if form in CHART_FORMATS and not values["history"]:
        raise RequestError(
            f"a list of ratios has no chart, so not {form}", "charts are available with --history"
        )
    if values["by"] and values["history"]:
        raise RequestError("--by can't be combined with --history, which counts each job", "leave one out")
    if values["expect"] and values["history"]:
        raise RequestError(
            "--expect can't be combined with --history, which has no I/O volumes", "leave one out"
        )
    expected = None if values["expect"] is None else size_bytes(values["expect"], "--expect")
    read = _opened(files, values)
    limits = _limits(values)
    answer = _history(read, limits, values) if values["history"] else _listed(read, limits, values, expected)
    _write(answer, form, values)
    if not values["quiet"]:
        from iodock.cli.beside import say_beside

        say_beside(answer)
    if values["opens"]:
        open_page(values["output"])


def _write(answer: Answer, form: str, values: dict[str, Any]) -> None:
    from iodock.cli.show import drawn

    with destination(values["output"]) as out:
        if form == "table":
            out.write(_table(answer, values["output"]).encode("utf-8", "backslashreplace"))
        elif form in TABLE_FORMATS:
            write_data(answer, form, out)
        else:
            chart = {name: values[name] for name in ("title", "width", "height", "theme")}
            out.write(drawn(answer, form, {**chart, "only": None, "chart": values["weight"]}))


def _opened(files: tuple[str, ...], values: dict[str, Any]) -> Files:
    from iodock.program.ratio.files import Files
    from iodock.program.ratio.reader import ReadOptions

    options = ReadOptions(values["time_format"], values["assistant_cores"], values["by"] == "node")
    # sys.stdin is None if the stream was already closed when Python started.
    stdin = sys.stdin.buffer if sys.stdin else BytesIO()
    return Files(files, values["source_format"], options, stdin)


def _limits(values: dict[str, Any]) -> Ratio:
    import dataclasses

    from iodock.shared.settings import load

    limits = load(values["settings"]).ratio
    wanted = values["threshold"]
    return limits if wanted is None else dataclasses.replace(limits, io_below=wanted)


def _records(read: Files, values: dict[str, Any], progress: Progress) -> Iterator[Record]:
    from iodock.program.ratio.grouping import chosen

    return chosen(read.records(progress), values["name"], values["owner"])


def _listed(read: Files, limits: Ratio, values: dict[str, Any], expected: int | None) -> Answer:
    from iodock.program.ratio.grouping import added
    from iodock.program.ratio.judge import judge
    from iodock.program.ratio.tables import answer_of, table_of_judged

    cores = values["cores"]
    with ProgressBar("reading", values["quiet"], "records") as progress:
        records = _records(read, values, progress)
        first = next(records, None)
        if first is None:
            raise _none_chosen(values)
        records = chain((first,), records)
        # The reader determines the default grouping, and the reader is known only after the first record was
        # read.
        by = values["by"] or read.usual_grouping()
        shown = records if by == "record" else added(records, by)
        table = table_of_judged((judge(one, limits, cores) for one in shown), cores is not None, expected)
    said: dict[str, Any] = {"io_below": limits.io_below, "compute_above": limits.compute_above, "by": by}
    if expected is not None:
        said["expected_bytes"] = expected
    return answer_of(table, read.losses.listed(), read.notes, said)


def _history(read: Files, limits: Ratio, values: dict[str, Any]) -> Answer:
    from iodock.program.ratio.history import history_of
    from iodock.program.ratio.tables import history_answer

    with ProgressBar("reading", values["quiet"], "records") as progress:
        records = _records(read, values, progress)
        history = history_of(records, values["weight"], values["min_real"], values["cores"])
    if history is None:
        if values["name"] or values["owner"]:
            raise _none_chosen(values)
        raise RatioError(
            f"no job of {number_text(values['min_real'], 6)} s or more has a ratio",
            "--min-real 0 includes short jobs; iodock ratio FILE without --history lists the missing values",
        )
    said = {"io_below": limits.io_below, "weight": values["weight"], "min_real": values["min_real"]}
    return history_answer(history, read.losses.listed(), read.notes, said, ", ".join(read.file_names()))


def _none_chosen(values: dict[str, Any]) -> RequestError:
    wanted = [
        f"--{name} {value}" for name, value in (("name", values["name"]), ("user", values["owner"])) if value
    ]
    return RequestError(f"no record matches {' '.join(wanted)}", "leave it out to see what there is")


def _table(answer: Answer, output: str | None) -> str:
    from iodock.program.views import ratio_history_text, ratio_text
    from iodock.shared.tables.table import terminal_width

    render = ratio_history_text.render if answer.analysis == "ratio-history" else ratio_text.render
    colour = is_coloured(output)
    return render(answer, terminal_width() if output is None else None, colour, language())
