"""Runs the load engine of crates/iodock-load in a separate process. This module sends a plan to the engine
and receives its events.

The engine forks its workers. A fork is safe only in a process with a single thread, so the engine has a
process of its own. It removes its files and ends when it receives a signal or when its standard input is
closed. The kernel closes the input if this process is killed.
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
    # The line is empty if the user interrupted the command before it sent the plan.
    "plan = sys.stdin.readline()\nplan and load_engine(plan)"
)

Event = Mapping[str, Any]


class EngineError(IodockError):
    """The engine failed. What it measured before remains valid. `kind` has one of the values in
    crates/iodock-load/src/error.rs."""

    def __init__(self, message: str, hint: str | None, kind: str) -> None:
        super().__init__(message, hint)
        self.kind = kind


def run(plan: Mapping[str, Any], meeting: Meeting | None = None) -> Generator[Event, None, None]:
    """Executes PLAN and yields the event of each step. If several ranks run the plan, MEETING is the barrier
    at which they wait for each other. Raises EngineError after the engine has removed its files.

    When the iteration ends, for whatever reason, the engine has ended as well. A caller that may stop early
    must close the iterator.
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
    # These signals are blocked until the engine has installed its own handlers. Otherwise, a signal during
    # its start would end the engine with a Python traceback.
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
            # The rest of the output is discarded. The output ends when the engine has removed its files.
            for _ in process.stdout:
                pass
            process.wait()


def _send(stdin: IO[str], line: str) -> None:
    try:
        stdin.write(line + "\n")
        stdin.flush()
    except BrokenPipeError:
        # The engine has ended. `run` notices this because the event `ended` is missing.
        pass


def _close(stdin: IO[str]) -> None:
    with suppress(BrokenPipeError):
        stdin.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Delays signals that would end this process until the engine has removed its files. If an exception is
    already ending the process, the delayed signals are ignored."""
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
            # The handler is None if it was installed by C code instead of Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if waiting and not is_ending:
        signal.raise_signal(waiting[0])
