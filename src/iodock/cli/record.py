"""`iodock record CMD ARG...` and `iodock record -p PID`."""

from __future__ import annotations

import re

import click

from iodock.cli.options import examples, language, quiet
from iodock.cli.recording import run
from iodock.program.recording import BACKENDS, PAGE_FAULTS
from iodock.shared.errors import RequestError

_EXAMPLES = (
    "iodock record -- ./a.out input.dat",
    "iodock record -o run.iodock -- mpirun -n 4 ./a.out",
    "mpirun -n 4 iodock record -o run.iodock ./a.out",
    "iodock record --live -- ./a.out > out.txt 2> err.txt",
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
    help="name of the store; default: NAME.iodock after the program. A store of that name is kept as "
    "NAME-1.iodock, NAME-2.iodock, ..., the newest with the highest number",
)
@click.option(
    "--backend",
    metavar="NAME",
    type=click.Choice(BACKENDS),
    default="auto",
    help="how to record: auto (the cheapest that sees the program; default), ptrace, rewrite, bpf (as root)",
)
@click.option(
    "--page-faults",
    type=click.Choice(PAGE_FAULTS),
    default="auto",
    help="what mapped files show: auto (default): from the first map of a data file on; always: programs and "
    "libraries too; never",
)
@click.option(
    "--complete",
    is_flag=True,
    help="by rewrite: trace also what programs do before its library is loaded (some 5 ms of CPU a program)",
)
@click.option(
    "-p", "--pid", metavar="PID,...", multiple=True, help="record processes that run already, until Ctrl-C"
)
@click.option(
    "--cgroup",
    metavar="PATH",
    help="record all processes of a cgroup until Ctrl-C, by bpf; slurm:JOBID is that of a Slurm job",
)
@click.option(
    "--live",
    is_flag=True,
    help="while it runs show rates, and the files and calls that take most time, on the terminal; the "
    "program's own output must go elsewhere",
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
    complete: bool,
    pid: tuple[str, ...],
    cgroup: str | None,
    live: bool,
    force: bool,
    lang: str | None,
    quiet: bool,
) -> int:
    """Record the I/O of a program, or of processes that run already, then print the check-up. The program
    runs as it would without: its output, exit status and signals are its own; what iodock has to say goes to
    stderr."""
    pids = _pids(pid)
    if sum(map(bool, (pids, command, cgroup))) != 1:
        raise RequestError("give a command, or -p PID, or --cgroup PATH", "iodock record -- CMD ARG...")
    if complete and not command:
        raise RequestError(
            "--complete is for a program that iodock starts: of one that runs already the start is over",
            "leave it out",
        )
    return run(
        command=command, pids=pids, cgroup=cgroup, output=output, backend=backend, page_faults=page_faults,
        complete=complete, force=force, live=live, quiet=quiet, lang=lang,
    )  # fmt: skip


def _pids(given: tuple[str, ...]) -> list[int]:
    parts = [part for one in given for part in one.split(",") if part.strip()]
    if not all(re.fullmatch(r"[0-9]{1,10}", part.strip()) for part in parts):
        raise RequestError(f"not a process id: {', '.join(parts)}")
    return [int(part) for part in parts]
