"""Runs commands and reads their output. Both the size of the output and the time are limited."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Literal

from iodock.shared.bounded.limits import KIB, Limit

CANNOT_RUN = 126
"""Exit status of shells if the file exists but is not a program."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of running a command."""

    outcome: Literal["answered", "missing", "silent", "endless"]
    """What happened. `silent`: the command did not end in time and may hang for long. `endless`: it wrote
    more than the limit."""
    status: int | None = None
    content: bytes = b""
    """Output on stdout."""
    complained: str = ""
    """Output on stderr."""

    @property
    def said(self) -> str:
        """The standard output of the command as text."""
        return self.content.decode("utf-8", "replace")


def answer_of(command: Sequence[str], limit: Limit, limit_s: float) -> Answer:
    """Runs COMMAND for at most LIMIT_S seconds. After that, COMMAND and all processes that it started are
    killed, but the function does not wait until they have ended."""
    if shutil.which(command[0]) is None:
        return Answer("missing")
    with TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints,
                start_new_session=True, env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
        except OSError as error:
            return Answer("answered", CANNOT_RUN, complained=str(error.strerror))
        assert process.stdout is not None
        until = time.monotonic() + limit_s
        found = bytearray()
        with process.stdout as out:
            for part in _parts(out.fileno(), until):
                found += part
                if len(found) > limit.size_bytes:
                    _kill(process)
                    return Answer("endless")
        while (status := process.poll()) is None and time.monotonic() < until:
            time.sleep(0.01)
        if status is None:
            # A process that is blocked in a call of a file system ends only when the call returns, so its end
            # is not awaited.
            _kill(process)
            return Answer("silent")
        complaints.seek(0)
        said = complaints.read(64 * KIB).decode("utf-8", "replace")
        return Answer("answered", status, bytes(found), said)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _parts(descriptor: int, until: float) -> Iterator[bytes]:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN | select.POLLHUP)
    while (rest := until - time.monotonic()) > 0 and waiting.poll(rest * 1e3):
        part = os.read(descriptor, 64 * KIB)
        if not part:
            return
        yield part
