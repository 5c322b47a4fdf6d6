"""`iodock ratio FILE...`: step 1 of the method, from times that others wrote down."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from iodock.cli.options import examples, quiet
from iodock.cli.output import CHART_FORMATS, DATA_FORMATS, chosen_format, destination
from iodock.errors import RequestError

if TYPE_CHECKING:
    from iodock.answer import Answer
    from iodock.ratio.files import Files
    from iodock.settings import Ratio

_EXAMPLES = (
    "/usr/bin/time -v ./a.out 2> time.log; iodock ratio time.log",
    "iodock ratio time.log --time-format '%e %U %S'",
    "iodock ratio node1/pacct node2/pacct --name 'IOR*' --by node",
    "sacct -P -o JobID,JobName,User,ElapsedRaw,UserCPU,SystemCPU,AllocCPUS,State | iodock ratio -",
    "iodock ratio --history year.sacct -o utilisation.png",
)


def _positive(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise RequestError(f"--{parameter.name} must be above 0, not {value:g}")
    return value


@click.command(epilog=examples(_EXAMPLES))
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--from", "source_format", metavar="FORMAT", help="what the files are; default: recognised")
@click.option("--time-format", metavar="FORMAT", help="the files are output of GNU time -f FORMAT")
@click.option("--cores", type=float, callback=_positive, metavar="N", help="cores, where no source says")
@click.option(
    "--assistant-cores",
    type=click.IntRange(0),
    metavar="N",
    help="PJM: cores of a node that no job can use; default: 2 of 34",
)
@click.option(
    "--by",
    type=click.Choice(("record", "command", "user", "node")),
    help="add up by; default: command for process accounting, else every record",
)
@click.option("--name", metavar="GLOB", help="only commands or jobs of this name")
@click.option("--user", "owner", metavar="NAME", help="only this user's")
@click.option("--threshold", type=float, callback=_positive, metavar="X", help="I/O-heavy below; default 0.1")
@click.option("--settings", metavar="FILE", help="the site's settings, with [ratio] io_below")
@click.option("--format", type=click.Choice((*DATA_FORMATS, *CHART_FORMATS)), help="default: table")
@click.option("-o", "--output", metavar="FILE", help="where to write; default: stdout")
@quiet
def command(files: tuple[str, ...], **values: Any) -> None:
    """How much of the elapsed time a program computed: step 1 of finding out whether I/O is the problem.
    Reads times of GNU time, bash, csh and zsh, process accounting (pacct, dump-acct), sacct, PJM job
    statistics, and iodock stores; - is standard input. System time is shown apart."""
    form = chosen_format(values["format"], values["output"])
    read = _opened(files, values)
    limits = _limits(values)
    answer = _listed(read, limits, values)
    with destination(values["output"]) as out:
        if form == "table":
            out.write(_table(answer, values["output"]).encode("utf-8", "backslashreplace"))
        elif form in DATA_FORMATS:
            import_module(f"iodock.views.{form}").write(answer, out)
        else:
            raise RequestError(f"a list of ratios has no chart, so not {form}", "charts: --history")
    if not values["quiet"]:
        from iodock.cli.show import say_beside

        say_beside(answer)


def _opened(files: tuple[str, ...], values: dict[str, Any]) -> Files:
    from iodock.ratio.files import Files
    from iodock.ratio.reader import ReadOptions

    options = ReadOptions(values["time_format"], values["assistant_cores"], values["by"] == "node")
    return Files(files, values["source_format"], options, sys.stdin.buffer)


def _limits(values: dict[str, Any]) -> Ratio:
    import dataclasses

    from iodock.settings import load

    limits = load(values["settings"]).ratio
    wanted = values["threshold"]
    return limits if wanted is None else dataclasses.replace(limits, io_below=wanted)


def _listed(read: Files, limits: Ratio, values: dict[str, Any]) -> Answer:
    from iodock.ratio.grouping import added, chosen
    from iodock.ratio.judge import judge
    from iodock.ratio.tables import answer_of

    with _progress(values["quiet"]) as progress:
        records = chosen(read.records(progress), values["name"], values["owner"])
        found = list(records)
    by = values["by"] or read.usual_grouping()
    shown = found if by == "record" else added(found, by)
    cores = values["cores"]
    judged = (judge(record, limits, cores) for record in shown)
    said = {"io_below": limits.io_below, "compute_above": limits.compute_above, "by": by}
    return answer_of(judged, read.losses.listed(), read.notes, said, cores is not None)


def _progress(quiet: bool) -> Any:
    from iodock.cli.progress import ProgressBar

    return ProgressBar("reading", quiet)


def _table(answer: Answer, output: str | None) -> str:
    from iodock.views.ratio_text import render
    from iodock.views.table import terminal_width

    colour = output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return render(answer, terminal_width() if output is None else None, colour)
