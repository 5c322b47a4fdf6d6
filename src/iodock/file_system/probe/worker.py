"""Executes operations in a child process. If a call of the child never returns, the parent is not blocked.

Parent and child communicate over a socket pair. The parent sends the name of an operation, and the child
replies with its outcome as JSON. If the parent gives up waiting, the child still completes its call when the
server responds, reports the duration, removes its files, and ends.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from iodock.file_system.probe.operations import Operation, Steps, WrongContent

_LONGEST = 4096
WRONG_CONTENT = "wrong content"
DIED = "the child died"


@dataclass(frozen=True, slots=True)
class Reply:
    """The child's report about an operation."""

    operation: Operation
    start_ns: int
    """Time at which the operation began, ns since the epoch."""
    duration_ns: int
    error: str | None
    """Name of the errno, `exit N` of a command, or a sentence."""
    found: dict[str, Any]


class Worker:
    """The child process, from the parent's point of view. Every method returns within a time limit."""

    def __init__(self, steps: Steps) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            _serve(theirs, steps)
        theirs.close()
        self.ended = False

    def ask(self, operation: Operation) -> None:
        """Requests the child to execute an operation. Errors are ignored here, because `reply` detects a dead
        child."""
        try:
            self.channel.send(operation.value.encode())
        except OSError:
            return

    def reply(self, seconds: float, wake: int | None = None) -> Reply | None:
        """Returns the child's reply. Returns None if it does not come within SECONDS, or if WAKE becomes
        readable before it."""
        until = time.monotonic() + seconds
        waiting = select.poll()
        waiting.register(self.channel, select.POLLIN)
        if wake is not None:
            waiting.register(wake, select.POLLIN)
        while True:
            ready = {at for at, _ in waiting.poll(max(0.0, until - time.monotonic()) * 1e3)}
            if self.channel.fileno() in ready:
                return self._received()
            if ready or time.monotonic() >= until:
                return None

    def _received(self) -> Reply:
        try:
            content = self.channel.recv(_LONGEST)
        except OSError:
            content = b""
        if not content:
            return Reply(Operation.DF, time.time_ns(), 0, DIED, {})
        said = json.loads(content)
        return Reply(Operation(said["op"]), said["start"], said["ns"], said["error"], said["found"])

    def give_up(self) -> None:
        """Informs the child that no more requests will follow. The child ends after its present call. Its
        last reply can still be received."""
        try:
            self.channel.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def has_ended(self, seconds: float = 0.0) -> bool:
        """Returns whether the child has ended. It waits for the end for at most SECONDS, and then reaps the
        child."""
        until = time.monotonic() + seconds
        while not self.ended:
            try:
                self.ended = os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
            except ChildProcessError:
                self.ended = True
            if self.ended or time.monotonic() >= until:
                break
            time.sleep(0.002)
        return self.ended

    def kill(self) -> None:
        """Kills the child and the processes that it started. If a process is blocked in a call of a file
        system, it dies only when the call returns."""
        if not self.has_ended():
            for ending in (os.killpg, os.kill):
                try:
                    ending(self.pid, signal.SIGKILL)
                except OSError:
                    continue


def _serve(channel: socket.socket, steps: Steps) -> None:
    """Executes everything that the child does, and then ends the process."""
    status = 1
    try:
        _stand_alone(channel.fileno())
        if not steps.keeps_folder:
            # A file system can't be unmounted while it contains the current folder of a process. If a call
            # hangs, the child must not prevent an administrator from unmounting another file system.
            os.chdir("/")
        _answer(channel, steps)
        steps.clean()
        status = 0
    finally:
        # The exit functions and buffered output belong to the parent, so the child ends without running and
        # writing them.
        os._exit(status)


def _stand_alone(channel: int) -> None:
    """Detaches the child from the parent's session, terminal and open files. Otherwise, a child that hangs
    would keep the parent's pipes, locks and sockets open, and other processes would wait for it."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    # /proc lists only descriptors that are open. A loop up to the limit could take very long, because the
    # limit may be 10^9.
    for descriptor in [int(one.name) for one in Path("/proc/self/fd").iterdir()]:
        if descriptor >= 3 and descriptor != channel:
            with suppress(OSError):
                os.close(descriptor)


def _answer(channel: socket.socket, steps: Steps) -> None:
    while asked := channel.recv(_LONGEST):
        operation = Operation(asked.decode())
        reply = _timed(operation, partial(steps.do, operation))
        try:
            channel.send(json.dumps(reply).encode(), socket.MSG_NOSIGNAL)
        except OSError:
            return


def _timed(operation: Operation, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    error: str | None = None
    found: dict[str, Any] = {}
    start, from_ns = time.time_ns(), time.perf_counter_ns()
    try:
        found = call()
    except OSError as failed:
        error = errno.errorcode.get(failed.errno or 0, failed.strerror or "unknown")
    except WrongContent:
        error = WRONG_CONTENT
    duration = time.perf_counter_ns() - from_ns
    if "exit" in found:
        error = f"exit {found.pop('exit')}"
    return {"op": operation.value, "start": start, "ns": duration, "error": error, "found": found}
