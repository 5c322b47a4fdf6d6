"""Implements `iodock export STORE`, which writes a run in the formats of other viewers."""

from __future__ import annotations

import sys
from typing import Any

import click

from iodock.cli.beside import say_losses, say_notes
from iodock.cli.options import examples, filter_arguments, filters, language, quiet, spoken
from iodock.cli.output import destination
from iodock.shared.errors import RequestError

FORMATS = ("perfetto", "speedscope", "pprof", "collapsed", "svg")
_WEIGHTS = ("time", "bytes", "calls")
_ENDINGS = {
    ".perfetto-trace": "perfetto",
    ".pftrace": "perfetto",
    ".speedscope.json": "speedscope",
    ".pb.gz": "pprof",
    ".folded": "collapsed",
    ".collapsed": "collapsed",
    ".svg": "svg",
}
_BINARY = ("perfetto", "pprof")
_EXAMPLES = (
    "iodock export run.iodock -o run.svg",
    "iodock export run.iodock -o run.pftrace",
    "iodock export run.iodock --format pprof -o run.pb.gz",
)


@click.command(epilog=examples(_EXAMPLES))
@click.argument("store")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="format of the output; default: the format of -o FILE's ending (.pftrace, .speedscope.json, "
    ".pb.gz, .folded, .svg)",
)
@click.option("-o", "--output", metavar="FILE", help="output file; default: stdout")
@click.option(
    "--weigh",
    type=click.Choice(_WEIGHTS),
    help="quantity that determines the width of a path; default: time, if known. Files of speedscope and "
    "pprof have all three; this one is shown first",
)
@filters
@language
@quiet
def command(
    store: str,
    form: str | None,
    output: str | None,
    weigh: str | None,
    lang: str | None,
    quiet: bool,
    **values: Any,
) -> None:
    """Write a run for other viewers. A trace of Perfetto has each call, with its thread, file and stack.
    speedscope, pprof and collapsed stacks (for flame graphs) have sums by path. A path is program, functions,
    call and file, or without stacks program, file and call; many files of similar names are one, their
    pattern. An SVG file is a flame graph to zoom and search in a browser."""
    from iodock.program.exports import export
    from iodock.program.relations.filters import Filters
    from iodock.program.store import Store
    from iodock.shared.language import language_in

    chosen = _format(form, output)
    if chosen == "perfetto" and weigh is not None:
        raise RequestError("a trace contains each call, but no weights", "leave --weigh out")
    if chosen in _BINARY and output is None and sys.stdout.isatty():
        raise RequestError(
            f"{chosen} is not text, so it can't be printed on a terminal", "use -o FILE, or a pipe"
        )
    asked = Filters.from_mapping(filter_arguments(values))
    with Store.open(store) as opened:
        with destination(output) as out:
            notes = export(opened, chosen, asked, weigh, out, language_in(spoken(lang)))
        losses = opened.manifest.losses
    if not quiet:
        say_notes(notes)
        say_losses((loss.name, loss.count, loss.cure) for loss in losses)


def _format(form: str | None, output: str | None) -> str:
    if form is not None:
        return form
    for ending, known in _ENDINGS.items():
        if output is not None and output.endswith(ending):
            return known
    raise RequestError("the format is not known", "give it with --format")
