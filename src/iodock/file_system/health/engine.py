"""Runs the engine of crates/iodock-load in a separate process. It receives a plan, sends events, and leaves
nothing behind.

The engine forks its workers, which is safe only in a process with one thread, so it needs its own process. It
ends, and removes its files, when it receives a signal or its standard input is closed, and therefore also
when this process is killed.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import iodock
from iodock.file_system.health.mpi import Meeting
from iodock.shared.errors import IodockError

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from iodock._native import load_engine\n"
    # The input is empty if the command was interrupted before it sent the plan.
    "plan = sys.stdin.readline()\nplan and load_engine(plan)"
)

Event = Mapping[str, Any]


class EngineError(IodockError):
    """The engine could not continue. Earlier measurements are valid. `kind` is as in
    crates/iodock-load/src/error.rs."""

    def __init__(self, message: str, hint: str | None, kind: str) -> None:
        super().__init__(message, hint)
        self.kind = kind


def run(plan: Mapping[str, Any], meeting: Meeting | None = None) -> Generator[Event, None, None]:
    """Executes PLAN and yields the event of each step. MEETING: synchronises the ranks for a plan whose job
    is `met_outside`. Raises EngineError after everything was removed.

    When the iteration has ended, in whatever way, the engine has ended, too. Close the iterator if it may end
    early.
    """
    failure: EngineError | None = None
    ended = False
    with _engine(plan) as (process, events):
        for event in events:
            if event["event"] == "barrier":
                if meeting and meeting.wait(lambda: process.poll() is None) and process.stdin:
                    _send(process.stdin, "go")
            elif event["event"] == "failed":
                failure = EngineError(event["message"], event["hint"] or None, event["kind"])
            elif event["event"] == "ended":
                ended = True
                failure = _left_behind(event["left"], plan) or failure if event["left"] else failure
            else:
                yield event
    if failure is None and not ended:
        failure = EngineError("the engine was killed", _clean_hint(plan), "system")
    if failure is not None:
        raise failure


def _clean_hint(plan: Mapping[str, Any]) -> str:
    return f"remove the remaining files: iodock health clean {plan['directory']}"


def _left_behind(left: list[str], plan: Mapping[str, Any]) -> EngineError:
    return EngineError(f"could not be removed: {', '.join(left[:5])}", _clean_hint(plan), "system")


@contextmanager
def _engine(plan: Mapping[str, Any]) -> Iterator[tuple[subprocess.Popen[str], Iterator[Event]]]:
    package = str(Path(iodock.__file__).parent.parent)
    # These signals are blocked until the engine has its own handlers: with Python's handlers it would end
    # with a traceback.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    assert process.stdin is not None and process.stdout is not None
    try:
        _send(process.stdin, json.dumps(plan))
        yield process, (json.loads(line) for line in process.stdout if line.endswith("\n"))
    finally:
        with _undisturbed():
            _close(process.stdin)
            # Further output is ignored. Its end means that everything was removed.
            for _ in process.stdout:
                pass
            process.wait()


def _send(stdin: IO[str], line: str) -> None:
    try:
        stdin.write(line + "\n")
        stdin.flush()
    except BrokenPipeError:
        # The engine has ended, which shows in its missing events.
        pass


def _close(stdin: IO[str]) -> None:
    with suppress(BrokenPipeError):
        stdin.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Delays signals that request the end until everything is removed. If the process is ending already, they
    have no effect."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_ending = sys.exc_info()[0] is not None
    waiting: list[int] = []
    before = {number: signal.signal(number, lambda told, _: waiting.append(told)) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            # The handler is None if it was not installed by Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if waiting and not is_ending:
        signal.raise_signal(waiting[0])
