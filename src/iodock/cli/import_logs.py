"""Implements `iodock import LOG...`, which converts logs of tracers and Darshan to stores."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iodock._native import known_formats
from iodock.cli.beside import say_losses
from iodock.cli.naming import name_of_log, store_name
from iodock.cli.options import examples, quiet
from iodock.cli.spoken import language
from iodock.cli.streams import say
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.language import N_

if TYPE_CHECKING:
    from iodock.program.capture import Imported
    from iodock.shared.language import Language

_EXAMPLES = (
    "strace -f -ttt -T -o run.log ./a.out; iodock import run.log",
    "iodock import trace.*.log.xz --rank-from 'trace.{rank}.log.xz' -o run.iodock",
    "zcat run.log.gz | iodock import - -o run.iodock --cwd /scratch/me",
    "iodock import *.darshan",
)
# Largest number of digits of a size or line number. No file has more bytes or lines.
_DIGITS = 15
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _bytes(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    plain = text.strip().lower().removesuffix("b").removesuffix("i")
    number, unit = plain.rstrip("kmg"), plain[len(plain.rstrip("kmg")) :]
    if not _is_number(number) or unit not in _SIZES:
        raise RequestError(f"not a size: {text}", "write bytes, or 64M, 1G")
    return int(number) * _SIZES[unit]


def _lines(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[int, int | None] | None:
    if text is None:
        return None
    first, dash, last = text.replace(" ", "").partition("-")
    numbers = _is_number(first) and (_is_number(last) or not last)
    if not (dash and numbers and int(first) > 0 and (not last or int(last) >= int(first))):
        raise RequestError(f"not a range of lines: {text}", "write 120-260, or 120- to the end")
    return int(first), int(last) if last else None


@click.command("import", epilog=examples(_EXAMPLES))
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "-o", "--output", metavar="STORE", help="name of the store; default: NAME.iodock after the first log"
)
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    type=click.Choice(("auto", *known_formats())),
    default="auto",
    help=f"auto (default), {', '.join(known_formats())}",
)
@click.option(
    "--cwd", metavar="DIR", multiple=True, help="working directory of the program; once, or once for each log"
)
@click.option(
    "--rank-from",
    metavar="HOW",
    help="each log is an MPI rank: name (the number that varies), order (as given), trace.{rank}.log, "
    "or a regular expression with a group named rank",
)
@click.option(
    "--lines",
    metavar="FIRST-LAST",
    callback=_lines,
    help="only these lines, as one log: of a file that holds several; 120- is to its end",
)
@click.option("--force", is_flag=True, help="replace a store of that name")
@click.option(
    "--coverage-memory",
    metavar="SIZE",
    callback=_bytes,
    help="memory for remembering which bytes were read and written, e.g. 256M",
)
@quiet
def command(
    logs: tuple[str, ...],
    output: str | None,
    form: str,
    cwd: tuple[str, ...],
    rank_from: str | None,
    lines: tuple[int, int | None] | None,
    force: bool,
    coverage_memory: int | None,
    quiet: bool,
) -> None:
    """Convert logs of strace, Darshan or another tracer (--format lists them) to a store. Several logs
    form one run (strace -ff, one per rank); - is standard input; .gz, .xz and .zst are read directly. A
    table of strace -c becomes a store of counts, and each log of Darshan, or text of darshan-parser, a
    store of counters by file. Prints the store's name."""
    from iodock.program.capture import is_darshan

    options = {
        "format": None if form == "auto" else form,
        "working_directories": cwd,
        "rank_from": rank_from,
        "lines": lines,
        "force": force,
        "coverage_bytes": coverage_memory,
    }
    if form == "auto" and len(logs) > 1 and any(is_darshan(log) for log in logs):
        _import_each(logs, output, options, quiet)
        return
    _import(logs, Path(output) if output else store_name(name_of_log(logs[0]), force=force), options, quiet)


def _import_each(logs: tuple[str, ...], output: str | None, options: dict[str, Any], quiet: bool) -> None:
    """Converts each Darshan log to a store of its own, because each log is a separate job. If a log can't be
    read, an error is printed and the others are still converted. Raises RequestError, and IodockError at the
    end if a log failed."""
    from iodock.cli.run import say_error

    _check_jobs(logs, output)
    failed = 0
    for log in logs:
        try:
            _import((log,), store_name(name_of_log(log), force=options["force"]), options, quiet)
        except RequestError:
            raise
        except IodockError as error:
            say_error(error)
            failed += 1
    if failed:
        raise IodockError(f"{failed:,} of {len(logs):,} logs could not be imported", "they are named above")


def _check_jobs(logs: tuple[str, ...], output: str | None) -> None:
    from iodock.program.capture import is_darshan

    if other := next((log for log in logs if not is_darshan(log)), None):
        raise RequestError(
            f"{other} is not a log of Darshan, but others are",
            "import the logs separately: each log of Darshan is a job",
        )
    if output:
        raise RequestError(
            f"-o names one store, but there are {len(logs)} logs of Darshan, and each is a separate job",
            "leave it out: each store is called after its log",
        )


def _import(logs: tuple[str, ...], store: Path, options: dict[str, Any], quiet: bool) -> None:
    from iodock.cli.progress import ProgressBar
    from iodock.program.capture import import_logs

    began = time.monotonic()
    with ProgressBar("reading", quiet) as progress:
        found = import_logs(logs, store, **options, progress=progress)
    click.echo(str(store))
    if quiet:
        return
    seconds = time.monotonic() - began
    text = language()
    values = {"formats": "+".join(found.formats), "counts": _counts(found, text), "seconds": f"{seconds:.1f}"}
    if seconds > 1 and found.lines:
        rate = f"{found.lines / seconds / 1e6:.1f}"
        line = text.gettext(N_("{formats}: {counts} in {seconds} s, {rate} M lines/s"), rate=rate, **values)
    else:
        line = text.gettext(N_("{formats}: {counts} in {seconds} s"), **values)
    print(line, file=sys.stderr)
    say_losses((loss.name, loss.count, loss.cure) for loss in found.losses)
    if found.profiles is None:
        say(f"next: iodock show summary {shlex.quote(str(store))}")
        return
    named = shlex.quote(str(store))
    say(f"next: iodock diagnose {named} diagnoses the counters, iodock show summary {named} shows them")


def _counts(found: Imported, text: Language) -> str:
    from iodock.program.store.manifest import read_manifest

    if found.profiles is not None:
        ranks = read_manifest(found.store).raw.get("ranks")
        values = {"profiles": f"{found.profiles:,}", "files": f"{found.files:,}"}
        if ranks is None:
            return text.gettext(N_("{profiles} records of counters on {files} files"), **values)
        of = N_("{profiles} records of counters on {files} files of a job of {ranks} processes")
        return text.gettext(of, ranks=f"{ranks:,}", **values)
    if read_manifest(found.store).counts_only:
        return text.gettext(N_("counts of {calls} calls"), calls=f"{found.calls:,}")
    return text.gettext(
        N_("{calls} calls of {processes} processes and threads on {files} files"),
        calls=f"{found.calls:,}",
        processes=f"{found.processes:,}",
        files=f"{found.files:,}",
    )
