"""Implements `iodock record`. This module parses arguments that need click; `recording` executes them."""

from __future__ import annotations

import re
from typing import TypedDict

import click

from iodock.cli.options import examples, language, quiet
from iodock.cli.recording import run
from iodock.cli.sizes import size_bytes
from iodock.program.recording import BACKENDS, INTERFACES, LIGHT, PAGE_FAULTS, STACKS, begin_counting
from iodock.shared.errors import RequestError

_RANKS, _MOST_RANGES = "numbers and ranges: --ranks 0,7,96-103", 64
_LEAST_MEMORY, _MOST_MEMORY = 256 << 10, 64 << 20

_EXAMPLES = (
    "iodock record -- ./a.out input.dat",
    "iodock record -o run.iodock -- mpirun -n 4 ./a.out",
    "mpirun -n 4 iodock record -o run.iodock ./a.out",
    "iodock record --live -- ./a.out > out.txt 2> err.txt",
    "iodock record --light -- ./a.out",
    "iodock record -p 4711 -o run.iodock",
    "sudo iodock record --cgroup slurm:4711 -o job.iodock",
)


@click.command(
    epilog=examples(_EXAMPLES),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "-o",
    "--output",
    metavar="STORE",
    help="name of the store, in which %h is the host and %r the MPI rank; default: NAME.iodock after the "
    "program. A store of that name is kept as NAME-1.iodock, NAME-2.iodock, ..., the newest with the highest "
    "number",
)
@click.option(
    "--backend",
    metavar="NAME",
    type=click.Choice(BACKENDS),
    default="auto",
    help="back end: auto (the cheapest one that sees the program; default), ptrace, rewrite, bpf (as root)",
)
@click.option(
    "--page-faults",
    type=click.Choice(PAGE_FAULTS),
    default="auto",
    help="recording of accesses to mapped files: auto (default): from the first map of a data file on; "
    "always: programs and libraries too; never",
)
@click.option(
    "--interfaces",
    type=click.Choice(INTERFACES),
    default="auto",
    help="calls of MPI-IO, HDF5, PnetCDF and NetCDF, which make system calls: auto (default): in programs"
    " that use these libraries; always; stdio: as always, and calls of stdio (fwrite, fprintf, fgets); never",
)
@click.option(
    "--stacks",
    type=click.Choice(STACKS),
    default="auto",
    help="where calls come from: auto (default): sites, if rewrite records the calls; sites: up to the "
    "innermost line of your own code and its caller; all: whole stacks; off",
)
@click.option(
    "--complete",
    is_flag=True,
    help=(
        "with rewrite: also trace the calls of programs before the recorder's library is loaded (about "
        "5 ms of CPU per program)"
    ),
)
@click.option(
    "--light",
    is_flag=True,
    help="count calls by process and file instead of recording each call: the store has sums, sizes and "
    "times, but no order of calls",
)
@click.option(
    "--light-memory",
    metavar="SIZE",
    help=(
        "with --light: memory for a process's counters (default 1 MiB); files beyond it are counted together"
    ),
)
@click.option(
    "--light-first",
    metavar="N",
    type=click.IntRange(0, 1000),
    help="with --light: keep the first N reads and writes of each process completely (default 64)",
)
@click.option(
    "--ranks",
    metavar="LIST",
    help="record these MPI ranks completely (0,7,96-103) and only count the calls of all others; "
    "processes without a rank are recorded, or with --light counted",
)
@click.option(
    "--begin",
    is_flag=True,
    help=(
        "with --light: start no program, and print the variables that make programs count into the "
        "store -o; the first command that opens the store after the programs' end completes its tables"
    ),
)
@click.option(
    "-p",
    "--pid",
    metavar="PID,...",
    multiple=True,
    help="record processes that are already running, until Ctrl-C",
)
@click.option(
    "--cgroup",
    metavar="PATH",
    help="record all processes of a cgroup until Ctrl-C, by bpf; slurm:JOBID is that of a Slurm job",
)
@click.option(
    "--live",
    is_flag=True,
    help=(
        "while the program runs, show rates, and the files and calls that take most time, on the "
        "terminal; the program's own output must go elsewhere"
    ),
)
@click.option("--force", is_flag=True, help="replace a store of that name instead of keeping it")
@language
@quiet
@click.argument("command", metavar="[--] CMD ARG...", nargs=-1, type=click.UNPROCESSED)
def command(
    command: tuple[str, ...],
    output: str | None,
    backend: str,
    page_faults: str,
    interfaces: str,
    stacks: str,
    complete: bool,
    light: bool,
    light_memory: str | None,
    light_first: int | None,
    ranks: str | None,
    begin: bool,
    pid: tuple[str, ...],
    cgroup: str | None,
    live: bool,
    force: bool,
    lang: str | None,
    quiet: bool,
) -> int:
    """Record the I/O of a program, or of processes that are already running, then print the check-up. The
    program runs as it would without iodock: its output, exit status and signals are its own. Messages of
    iodock go to stderr."""
    if begin and ranks is not None:
        raise RequestError("--ranks is for a program that iodock starts", "leave it out")
    if begin:
        return _begin(output, _light(light, light_memory, light_first, ("",)), command)
    pids = _pids(pid)
    if sum(map(bool, (pids, command, cgroup))) != 1:
        raise RequestError("give a command, or -p PID, or --cgroup PATH", "iodock record -- CMD ARG...")
    if complete and not command:
        raise RequestError(
            "--complete is for a program that iodock starts. It is too late for a program that already runs",
            "leave it out",
        )
    if stacks not in ("auto", "off") and ((light and ranks is None) or not command):
        raise RequestError(
            "--stacks is for a program that iodock starts, whose calls are recorded one by one",
            "leave out --stacks",
        )
    return run(
        command=command, pids=pids, cgroup=cgroup, output=output, backend=backend, page_faults=page_faults,
        interfaces=interfaces, stacks=stacks, complete=complete, force=force, live=live, quiet=quiet,
        lang=lang, **counting(light, light_memory, light_first, ranks, command),
    )  # fmt: skip


def _begin(output: str | None, light: tuple[int, int] | None, command: tuple[str, ...]) -> int:
    if light is None or output is None or command:
        raise RequestError(
            "--begin creates a store for programs that are started in another way",
            "iodock record --light --begin -o STORE, without a command",
        )
    for name, value in begin_counting(output, light):
        click.echo(f"export {name}={value}")
    return 0


class Counting(TypedDict):
    """The arguments of `run` that determine which calls are only counted, and the limits for counting."""

    light: tuple[int, int] | None
    ranks: tuple[str, bool] | None


def counting(
    light: bool, memory: str | None, first: int | None, ranks: str | None, command: tuple[str, ...]
) -> Counting:
    """Returns the limits for counting calls, and the ranks whose calls are recorded one by one instead.
    Raises RequestError."""
    if ranks is None:
        return {"light": _light(light, memory, first, command), "ranks": None}
    if not command:
        raise RequestError("--ranks is for a program that iodock starts", "leave it out")
    if not re.fullmatch(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*", ranks):
        raise RequestError(f"not a list of ranks: {ranks}", _RANKS)
    ranges = [[int(end) for end in one.split("-")] for one in ranks.split(",")]
    if any(one[0] > one[-1] for one in ranges) or len(ranges) > _MOST_RANGES:
        raise RequestError(f"not a list of up to {_MOST_RANGES} ranks and ranges: {ranks}", _RANKS)
    return {"light": _light(True, memory, first, command), "ranks": (ranks, light)}


def _light(
    light: bool, memory: str | None, first: int | None, command: tuple[str, ...]
) -> tuple[int, int] | None:
    if not light:
        if memory is not None or first is not None:
            raise RequestError("--light-memory and --light-first are for --light and --ranks", "add --light")
        return None
    if not command:
        raise RequestError(
            "--light is for a program that iodock starts: a running program can't be made to count its calls",
            "leave it out",
        )
    most, kept = LIGHT
    if memory is not None:
        most = size_bytes(memory, "--light-memory")
        if not _LEAST_MEMORY <= most <= _MOST_MEMORY:
            raise RequestError(f"--light-memory must be from 256K to 64M, not {memory}")
    return most, kept if first is None else first


def _pids(given: tuple[str, ...]) -> list[int]:
    parts = [part for one in given for part in one.split(",") if part.strip()]
    if not all(re.fullmatch(r"[0-9]{1,10}", part.strip()) for part in parts):
        raise RequestError(f"not a process id: {', '.join(parts)}")
    return [int(part) for part in parts]
