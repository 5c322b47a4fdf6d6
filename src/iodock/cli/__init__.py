"""The command line: one file per verb, listed in `registry`. Only this package reads argv, prints and
exits."""

from __future__ import annotations

import atexit
import gc
import os
import sys

from iodock.cli.streams import prepare

# The same value as typing's, whose import takes as long as Python's own start.
TYPE_CHECKING = False

if TYPE_CHECKING:
    import click


def main() -> None:
    """Entry point of the `iodock` command: runs a verb and exits with its status."""
    if "_IODOCK_COMPLETE" in os.environ:
        from iodock.cli.completing import answer

        sys.exit(answer(os.environ["_IODOCK_COMPLETE"]))
    recording = sys.argv[1:2] == ["record"]
    if recording:
        # Garbage collection is off, because its time would count as the recorded program's own.
        gc.disable()
    elif sys.argv[1:2] and sys.argv[1] in _SHORT:
        # A short command needs most of its objects until its end, so they are rarely collected.
        gc.set_threshold(50_000, 20, 20)
    prepare()
    status = _record(sys.argv[2:]) if recording else None
    if sys.argv[1:3] == ["monitor", "digest"]:
        status = _digest(sys.argv[3:])
    if status is None:
        from iodock.cli.interrupts import watch
        from iodock.cli.run import run

        watch()
        status = run(sys.argv[1:])
    status = _flushed(status)
    if recording:
        # The interpreter is not shut down, because that takes longer than recording a small program.
        _leave(status)
    if sys.argv[1:2] and sys.argv[1] in _SHORT and not (sys.getprofile() or sys.gettrace()):
        # These functions remove temporary folders.
        atexit._run_exitfuncs()
        _leave(status)
    sys.exit(status)


_SHORT = ("show", "diagnose", "report", "query")
"""Commands that print an answer and end."""


def _leave(status: int) -> None:
    sys.stderr.flush()
    os._exit(status)


def _flushed(status: int) -> int:
    """Flushes stdout. Returns the exit status, which becomes an error if flushing fails."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would otherwise try to write again at exit, and report an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if status == 0 and not isinstance(error, BrokenPipeError):
            from iodock.cli.run import failed

            return failed(error)
    return status


def _record(arguments: list[str]) -> int | None:
    """Records a program. Returns None if the arguments are not simple."""
    from iodock.cli import recording

    asked = recording.plain(arguments)
    if asked is None:
        return None
    try:
        return recording.run(**asked)
    except BaseException as error:
        from iodock.cli.run import failed

        return failed(error)


def _digest(arguments: list[str]) -> int | None:
    """Prints a job's digest from a portal. Returns None if the arguments are not simple."""
    from iodock.cli import digest_portal

    asked = digest_portal.plain(arguments)
    if asked is None:
        return None
    try:
        return digest_portal.run(asked)
    except BaseException as error:
        from iodock.cli.run import failed

        return failed(error)


def application() -> click.Group:
    """The whole command line as a click group. The reference is generated from it."""
    from iodock.cli.run import iodock

    return iodock
