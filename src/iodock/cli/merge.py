"""Implements `iodock merge PART... -o STORE`, which combines the stores of nodes or ranks."""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.beside import say_losses
from iodock.cli.options import examples, language, quiet, spoken
from iodock.cli.streams import say
from iodock.shared.errors import RequestError
from iodock.shared.language import N_
from iodock.shared.units import NANOSECONDS

if TYPE_CHECKING:
    from iodock.program.capture import HostClock, Merged
    from iodock.shared.language import Language

_EXAMPLES = (
    "srun -N 2 -n 8 iodock record -q -o '/scratch/parts/%h-%r.iodock' -- ./a.out",
    "iodock merge /scratch/parts/*.iodock -o run.iodock",
)


@click.command(epilog=examples(_EXAMPLES))
@click.argument("parts", metavar="PART...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="STORE", required=True, help="name of the store to create")
@click.option("--force", is_flag=True, help="replace a store of that name")
@language
@quiet
def command(parts: tuple[str, ...], output: str, force: bool, lang: str | None, quiet: bool) -> None:
    """Create one store from the parts of one run: stores of single nodes or ranks. Reports which ranks are
    missing, which parts were truncated, and how far the clocks of the hosts differ. Prints the store's
    name."""
    from iodock.cli.progress import ProgressBar
    from iodock.program.capture import merge
    from iodock.program.store import Store
    from iodock.shared.language import language_in

    into = Path(output)
    if any(Path(part).resolve() == into.resolve() for part in parts):
        raise RequestError(f"{output} is one of the parts", "give another name for the merged store with -o")
    began = time.monotonic()
    with ExitStack() as opened:
        # If the recorder of a part was killed, opening the part creates its tables from its journal.
        stores = [opened.enter_context(Store.open(part)) for part in parts]
        with ProgressBar("merging", quiet) as progress:
            merged = merge([store.tables for store in stores], into, force=force, progress=progress)
    click.echo(str(merged.found.store))
    if quiet:
        return
    text = language_in(spoken(lang))
    _say(merged, len(parts), time.monotonic() - began, text)
    say_losses(((loss.name, loss.count, loss.cure) for loss in merged.found.losses), spoken(lang))
    say(f"next: iodock show ranks {shlex.quote(str(merged.found.store))}")


def _say(merged: Merged, parts: int, seconds: float, text: Language) -> None:
    found = merged.found
    said = text.gettext(
        N_(
            "{parts} parts: {calls} calls of {processes} processes and threads on {files} files, in "
            "{seconds} s"
        ),
        parts=parts,
        calls=found.calls,
        processes=found.processes,
        files=found.files,
        seconds=f"{seconds:.1f}",
    )
    print(said, file=sys.stderr)
    if merged.ranks:
        say(text.gettext(N_("ranks: {ranks} of {of}"), ranks=merged.ranks, of=merged.expected_ranks or "?"))
    for line in clock_lines(merged.clocks, text):
        say(line)


def clock_lines(clocks: tuple[HostClock, ...], text: Language) -> list[str]:
    """Returns a line for each host except the first one. It states how far the host's clock differs from the
    clock of the first host."""
    return [_clock_line(clocks[0].host, clock, text) for clock in clocks[1:]]


def _clock_line(first: str, clock: HostClock, text: Language) -> str:
    if clock.offset_ns is None or clock.within_ns is None:
        return text.gettext(
            N_(
                "clock of {host}: the difference from the clock of {first} is unknown, because the "
                "recording has no call that all ranks made together (MPI_File_open)"
            ),
            host=clock.host,
            first=first,
        )
    values = {
        "host": clock.host, "first": first, "difference": NANOSECONDS.text(abs(clock.offset_ns)),
        "within": NANOSECONDS.text(clock.within_ns), "calls": clock.calls,
    }  # fmt: skip
    if abs(clock.offset_ns) <= clock.within_ns:
        return text.gettext(_SAME, **values)
    return text.gettext(_BEHIND if clock.offset_ns > 0 else _AHEAD, **values)


_SAME = N_(
    "clock of {host}: differs from the clock of {first} by at most {within}, estimated from {calls} "
    "calls of MPI_File_open that all ranks made together"
)
_BEHIND = N_(
    "clock of {host}: {difference} behind the clock of {first}, ± {within}, estimated from {calls} "
    "calls of MPI_File_open that all ranks made together"
)
_AHEAD = N_(
    "clock of {host}: {difference} ahead of the clock of {first}, ± {within}, estimated from {calls} "
    "calls of MPI_File_open that all ranks made together"
)
