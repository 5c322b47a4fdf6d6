"""Implements `iodock bench`, which reads results of other benchmarks, and runs sweeps of IOR and mdtest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.options import examples, json_too, language, quiet, spoken
from iodock.cli.output import destination, is_coloured
from iodock.cli.streams import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from iodock.file_system.health.measurements import Measurements

_EXAMPLES = (
    "iodock bench show ior-*.txt mdtest.out",
    "iodock bench show results/2026.11.21-03.00.00 --format json -o io500.json",
    "iodock bench ior sweep.toml",
)
FORMATS = ("table", "json", "csv")


@click.group(epilog=examples(_EXAMPLES))
def command() -> None:
    """Results of IOR, mdtest, IO500, fio, elbencho, IOzone, md-workbench and h5bench in one format of
    measurements, and sweeps of IOR and mdtest over many settings."""


@command.command(epilog=examples(_EXAMPLES))
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--from", "benchmark", metavar="NAME", help=("type of measurement in the files; default: recognised")
)
@json_too
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="default: table, or the format of -o's ending"
)
@click.option("-o", "--output", metavar="FILE", help="output file; default: stdout")
@language
@quiet
def show(
    files: tuple[str, ...],
    benchmark: str | None,
    form: str | None,
    output: str | None,
    lang: str | None,
    quiet: bool,
) -> None:
    """Read results of benchmarks, whichever program wrote them, into one table of measurements. FILE may be
    the folder of an IO500 result."""
    from iodock.file_system.health import readers
    from iodock.file_system.health.measurements import joined

    together = joined(readers.read(Path(file), benchmark) for file in files)
    write(together, form, output, spoken(lang))


def write(
    measurements: Measurements, form: str | None, output: str | None, lang: str, remarks: bool = False
) -> None:
    """Writes measurements as a table, JSON or CSV. FORM selects the format; without FORM, the ending of
    OUTPUT does. REMARKS adds the remarks to the table."""
    ending = Path(output or "").suffix.lstrip(".")
    chosen = form or (ending if ending in FORMATS else "table")
    with destination(output) as out:
        rendered = _rendered(measurements, chosen, output, lang, remarks)
        out.write(rendered.encode("utf-8", "backslashreplace"))


def _rendered(measurements: Measurements, form: str, output: str | None, lang: str, remarks: bool) -> str:
    from iodock.file_system.views.measurements_words import in_common
    from iodock.file_system.views.remarks_text import remark_text
    from iodock.shared.language import language_in

    text = language_in(lang)
    common = in_common(measurements.cells)
    if form == "json":
        from iodock.file_system.health.measurements_json import text_of

        return text_of(measurements, lambda remark: remark_text(remark, text, common))
    if form == "csv":
        from iodock.file_system.views.measurements_csv import render as rows

        return rows(measurements)
    from iodock.file_system.views.measurements_text import render
    from iodock.shared.tables.table import terminal_width

    colour = is_coloured(output)
    width = terminal_width() if output is None else None
    return render(measurements, text, remarks, width, colour)


def _sweep(
    name: str, sweep_file: str, output: str | None, dry_run: bool, lang: str | None, quiet: bool
) -> int:
    from dataclasses import replace

    from iodock.cli.output import check_folder
    from iodock.cli.progress import ProgressBar
    from iodock.file_system.health import remarks
    from iodock.file_system.health.sweeps import plan, runs
    from iodock.file_system.health.sweeps.commands import command as command_of

    sweep = plan.load(Path(sweep_file), name)
    result = Path(output or f"{Path(sweep_file).stem}.json")
    check_folder(str(result))
    if dry_run:
        order, left_out = runs.planned(sweep)
        folder = Path(sweep.folder) / "FOLDER"
        for run in order:
            click.echo(" ".join(command_of(sweep, run.cell, name, folder)))
        say(f"{len(order):,} runs; combinations that can't be run, left out: {left_out:,}")
        return 0
    with ProgressBar(f"running {name}", quiet, "runs", rated=False) as progress:
        found = runs.carry_out(sweep, name, result.with_suffix(".runs"), progress)
    measured = replace(found.measurements, remarks=remarks.find(found.measurements))
    write(measured, "json", str(result), spoken(lang))
    write(measured, "table", None, spoken(lang), remarks=True)
    if not quiet:
        say(f"written: {result}; graphs: iodock health report {result}")
    for failure in found.failed[:20]:
        say(f"failed: {failure}")
    if found.failed:
        say(f"error: runs that failed: {len(found.failed):,}; the same command tries them again")
    return int(bool(found.failed))


def _sweep_options(function: Callable[..., int]) -> Callable[..., int]:
    function = quiet(language(function))
    function = click.option("--dry-run", is_flag=True, help="print the commands, run nothing")(function)
    function = click.option(
        "-o", "--output", metavar="FILE.json", help="the result; default: the sweep's name, .json"
    )(function)
    return click.argument("sweep", metavar="SWEEP.toml")(function)


@command.command(epilog=examples(("iodock bench ior sweep.toml", "iodock bench ior sweep.toml --dry-run")))
@_sweep_options
def ior(sweep: str, output: str | None, dry_run: bool, lang: str | None, quiet: bool) -> int:
    """Run IOR over a matrix of settings: nodes x processes, transfer size, file per process or one file,
    API, stripes, collective buffering. Runs are repeated and shuffled. Completed runs are kept next to the
    result in FILE.runs, so that the same command resumes the sweep."""
    return _sweep("ior", sweep, output, dry_run, lang, quiet)


@command.command(epilog=examples(("iodock bench mdtest sweep.toml -o mdtest.json",)))
@_sweep_options
def mdtest(sweep: str, output: str | None, dry_run: bool, lang: str | None, quiet: bool) -> int:
    """Run mdtest over a matrix of settings: nodes x processes, separate or shared directories, bytes per
    file. Runs are repeated and shuffled; the same command resumes the sweep."""
    return _sweep("mdtest", sweep, output, dry_run, lang, quiet)
