"""Runs a command. Results and exceptions are converted to messages on stderr and to an exit status."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from iodock.cli import spoken
from iodock.cli.helps import equipped
from iodock.cli.options import no_pager
from iodock.cli.registry import VERBS
from iodock.cli.streams import say
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.language import N_

FAILED, USAGE = 1, 2
INTERRUPTED = 128 + signal.SIGINT

_EPILOG = """\b
Examples:
  iodock record -- ./a.out
  iodock import run.log -o run.iodock
  iodock show summary run.iodock --by file --top 10
  iodock report run.iodock -o run.html"""


class Verbs(click.Group):
    """The click group of all commands. A command is imported only when it is used."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        found: click.Command = import_module(VERBS[name][0]).command
        return equipped(found)

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        if incomplete.startswith("-"):
            return super().shell_complete(context, incomplete)
        # click's own method would import all commands to read their help texts.
        return [
            CompletionItem(name, help=help)
            for name, (_, help) in VERBS.items()
            if name.startswith(incomplete)
        ]

    def resolve_command(self, context: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            from iodock.cli.usage import unknown

            raise unknown("command", args[0], VERBS, "iodock --help lists them", "iodock diagnose")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in VERBS.items()])


def _version(context: click.Context, option: click.Parameter, value: bool) -> None:
    """Prints version information and exits if --version was given."""
    if value and not context.resilient_parsing:
        from iodock.cli.version import lines

        click.echo("\n".join(lines()))
        context.exit()


@equipped
@click.group(cls=Verbs, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@no_pager
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="show the version, its build and the back ends, and exit",
)
def iodock() -> None:
    """The I/O check-up for HPC: record or import a program's file I/O, and see where time and bytes go."""


SYSTEMS = (
    N_("No such file or directory"),
    N_("Permission denied"),
    N_("Is a directory"),
    N_("Not a directory"),
    N_("File exists"),
    N_("No space left on device"),
    N_("Read-only file system"),
    N_("Disk quota exceeded"),
    N_("Too many open files"),
    N_("Connection refused"),
)
"""Texts of system errors, listed for translation: the C library has only English texts if the locale is not
installed."""
_LONGEST = 2000
"""Length of an error's message, in characters."""


def run(arguments: Sequence[str]) -> int:
    """Runs the command that ARGUMENTS describe, and returns its exit status. It raises no exceptions unless
    IODOCK_TRACEBACK is set."""
    # The arguments of `record` contain those of the recorded program, which may have an option --lang of its
    # own.
    spoken.ask_by(() if list(arguments[:1]) == ["record"] else arguments)
    try:
        # click's method `main` is not used, because it prints errors in another form and exits with other
        # statuses.
        with iodock.make_context("iodock", list(arguments)) as context:
            status: Any = iodock.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except BaseException as error:
        return failed(error)
    return status if isinstance(status, int) else 0


def failed(error: BaseException) -> int:
    """Prints an error and returns the exit status for it."""
    if os.environ.get("IODOCK_TRACEBACK"):
        raise error
    if isinstance(error, (KeyboardInterrupt, click.Abort)) or _is_interrupted_query(error):
        say("error: interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        print(error.ctx.get_help() if error.ctx else "", file=sys.stderr)
        return USAGE
    if isinstance(error, click.ClickException):
        return _click_failed(error)
    say_error(error)
    if isinstance(error, RequestError):
        return USAGE
    # If a program to record is not found or not executable, the exception contains the exit status that a
    # shell would return.
    status = getattr(error, "exit_status", FAILED)
    return status if isinstance(status, int) else FAILED


def _is_interrupted_query(error: BaseException) -> bool:
    # The SQL engine converts Ctrl-C to this exception.
    return type(error) is RuntimeError and str(error) == "Query interrupted"


def _click_failed(error: click.ClickException) -> int:
    from iodock.cli.usage import words

    _say(*words(error))
    return USAGE if isinstance(error, click.UsageError) else FAILED


def say_error(error: BaseException) -> None:
    """Prints an error on stderr, as a line `error: ...` and, if there is a hint, a line `hint: ...`."""
    hint = error.hint if isinstance(error, IodockError) else None
    if isinstance(error, (IodockError, ValueError)):
        message = str(error)
    elif isinstance(error, MemoryError):
        message, hint = "not enough memory", "choose fewer rows, with filters or --top"
    elif isinstance(error, OSError):
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    elif isinstance(error, ImportError) and not isinstance(error, ModuleNotFoundError):
        message = f"a Python package can't be loaded: {error}"
        hint = "is PYTHONPATH set for another Python? unset it"
    elif isinstance(error, ImportError) and error.name:
        message, hint = f"the Python package {error.name} is missing", "make setup, or pip install iodock"
    else:
        message = f"iodock has a bug: {type(error).__name__}: {error}"
        hint = "set IODOCK_TRACEBACK=1 and report the output"
    _say(message, hint)


def _say(message: str, hint: str | None) -> None:
    # The message may contain text from a file, which may be very long.
    shown = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
    say(f"error: {shown}")
    if hint:
        say(f"hint: {hint}")
