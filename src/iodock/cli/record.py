"""`iodock record CMD ARG...` and `iodock record -p PID`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.naming import free_name
from iodock.cli.options import examples, language, quiet, spoken
from iodock.errors import IodockError, RequestError

if TYPE_CHECKING:
    from iodock.capture import Recorded

_EXAMPLES = (
    "iodock record -- ./a.out input.dat",
    "iodock record -o run.iodock -- mpirun -n 4 ./a.out",
    "mpirun -n 4 iodock record -o run.iodock ./a.out",
    "iodock record -p 4711 -o run.iodock",
)


@click.command(
    epilog=examples(_EXAMPLES),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "-o", "--output", metavar="STORE", help="name of the store; default: NAME.iodock after the program"
)
@click.option("--backend", metavar="NAME", default="auto", help="how to record: auto (default) or ptrace")
@click.option(
    "-p", "--pid", metavar="PID,...", multiple=True, help="record processes that run already, until Ctrl-C"
)
@click.option("--force", is_flag=True, help="replace a store of that name")
@language
@quiet
@click.argument("command", metavar="[--] CMD ARG...", nargs=-1, type=click.UNPROCESSED)
def command(
    command: tuple[str, ...],
    output: str | None,
    backend: str,
    pid: tuple[str, ...],
    force: bool,
    lang: str | None,
    quiet: bool,
) -> int:
    """Record the I/O of a program, or of processes that run already, then print the check-up. The program
    runs as it would without: its output, exit status and signals are its own; what iodock has to say goes to
    stderr."""
    pids = _pids(pid)
    if bool(pids) == bool(command):
        raise RequestError("give a command, or -p PID", "iodock record -- CMD ARG...")
    from iodock import capture

    sys.stdout.flush()
    if pids:
        store = Path(output) if output else free_name(_name_of_process(pids[0]))
        recorded = capture.attach(pids, store, backend=backend, force=force)
    else:
        store = Path(output) if output else free_name(Path(command[0]).name)
        recorded = capture.record(command, store, backend=backend, force=force)
    _after(recorded, store, lang, quiet)
    return _pass_on(recorded)


def _pids(given: tuple[str, ...]) -> list[int]:
    parts = [part for one in given for part in one.split(",") if part.strip()]
    if not all(part.strip().isdigit() for part in parts):
        raise RequestError(f"not a process id: {', '.join(parts)}")
    return [int(part) for part in parts]


def _name_of_process(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip().replace("/", "_") or str(pid)
    except OSError:
        return str(pid)


def _after(recorded: Recorded, store: Path, lang: str | None, quiet: bool) -> None:
    """Tables and check-up. Whatever fails here is said, and the program's status passed on all the same."""
    from iodock.cli.run import say_error

    for warning in recorded.warnings if not quiet else ():
        print(f"warning: {warning}", file=sys.stderr)
    if recorded.failure:
        print(f"error: recording stopped early: {recorded.failure}", file=sys.stderr)
    if not recorded.must_finish:
        return
    try:
        _finish(store, lang, quiet)
    except KeyboardInterrupt:
        print(f"note: interrupted; {store} becomes whole when it is next opened", file=sys.stderr)
    except (IodockError, OSError, ValueError) as error:
        say_error(error)


def _finish(store: Path, lang: str | None, quiet: bool) -> None:
    from iodock import capture
    from iodock.cli.progress import ProgressBar

    with ProgressBar("writing tables", quiet) as progress:
        capture.finish(store, progress)
    if not quiet:
        from iodock.cli.checkup import print_checkup_of

        print_checkup_of(store, spoken(lang))


def _pass_on(recorded: Recorded) -> int:
    """The program's own end: its exit status, or death by the same signal."""
    if recorded.exit_signal is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        _die_of(recorded.exit_signal)
        return 128 + recorded.exit_signal
    if recorded.exit_code is not None:
        return recorded.exit_code
    return 1 if recorded.failure else 0


def _die_of(number: int) -> None:
    import resource

    # The program has left its own core, if any: not another one of this interpreter.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
