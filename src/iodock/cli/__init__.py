"""The command line of iodock. Each command has a module of its own, and `registry` lists them. Only this
package reads arguments, prints, and exits."""

from __future__ import annotations

import atexit
import gc
import os
import sys

from iodock.cli.streams import prepare

# This constant equals typing.TYPE_CHECKING. Importing `typing` takes as long as starting Python.
TYPE_CHECKING = False

if TYPE_CHECKING:
    import click


def main() -> None:
    """Runs the command that the arguments name, and exits with its status. This is the entry point of
    `iodock`."""
    if "_IODOCK_COMPLETE" in os.environ:
        from iodock.cli.completing import answer

        sys.exit(answer(os.environ["_IODOCK_COMPLETE"]))
    recording = sys.argv[1:2] == ["record"]
    if recording:
        # Garbage collection is switched off. Its time would be counted as time of the recorded program.
        gc.disable()
    elif sys.argv[1:2] and sys.argv[1] in _SHORT:
        # These commands need most of their objects until they end, so collecting garbage often would only
        # cost time.
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
        # The normal shutdown of the interpreter is skipped, because it takes longer than recording a small
        # program.
        _leave(status)
    if sys.argv[1:2] and sys.argv[1] in _SHORT and not (sys.getprofile() or sys.gettrace()):
        # os._exit does not run the functions that were registered with atexit. They remove temporary folders.
        atexit._run_exitfuncs()
        _leave(status)
    sys.exit(status)


_SHORT = ("show", "diagnose", "report", "query")
"""Commands that print an answer and end."""


def _leave(status: int) -> None:
    sys.stderr.flush()
    os._exit(status)


def _flushed(status: int) -> int:
    """Flushes stdout and returns STATUS. If flushing fails, it returns the status of an error instead."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # stdout still contains data. Python would try to write it again at exit and print another error, so
        # stdout is redirected to /dev/null.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if status == 0 and not isinstance(error, BrokenPipeError):
            from iodock.cli.run import failed

            return failed(error)
    return status


def _record(arguments: list[str]) -> int | None:
    """Records a program without loading click. Returns None if the arguments need click's parser."""
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
    """Prints a job's digest from a portal without loading click. Returns None if the arguments need click's
    parser."""
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
    """Returns the whole command line as a click group, from which the reference documentation is
    generated."""
    from iodock.cli.run import iodock

    return iodock
