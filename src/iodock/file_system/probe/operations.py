"""Defines and executes the operations of one round. They make at most 20 system calls on the watched file
system, write at most 1 MiB, and use a folder that is created for the round."""

from __future__ import annotations

import os
import random
import subprocess
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 20
"""Most bytes that a round may write and read back."""
MOST_CALLS = 20
"""Most calls on the watched file system in one round."""
PREFIX = ".iodock-probe-"


class Operation(StrEnum):
    """The operations, in the order in which a round executes them."""

    MKDIR = "mkdir"
    CREATE = "create"
    WRITE = "write"
    FSYNC = "fsync"
    CLOSE = "close"
    READ = "read"
    STAT = "stat"
    READDIR = "readdir"
    RENAME = "rename"
    REMOVE = "remove"
    RMDIR = "rmdir"
    DF = "df"
    COMMAND = "command"
    """A user's command, which replaces all other operations."""


ROUND = tuple(one for one in Operation if one is not Operation.COMMAND)
NEEDS: dict[Operation, Operation] = {
    Operation.CREATE: Operation.MKDIR,
    Operation.WRITE: Operation.CREATE,
    Operation.FSYNC: Operation.WRITE,
    Operation.CLOSE: Operation.CREATE,
    Operation.READ: Operation.WRITE,
    Operation.STAT: Operation.CREATE,
    Operation.READDIR: Operation.MKDIR,
    Operation.RENAME: Operation.CREATE,
    Operation.REMOVE: Operation.CREATE,
    Operation.RMDIR: Operation.MKDIR,
}
"""For each operation, the operation that must have been answered before it."""
OPEN_FILE = (Operation.WRITE, Operation.FSYNC, Operation.CLOSE)
"""These operations use the descriptor from `create`, so only the process that created the file can execute
them."""


class WrongContent(Exception):
    """The error that is raised if the content read differs from the content written."""


class Steps:
    """Executes the operations of one round. Objects of this class are used only in child processes, because
    any operation may never return."""

    keeps_folder = False
    """Whether the operations need the folder in which the run was started."""

    def __init__(self, target: str, folder: str, size_bytes: int, made: bool = False) -> None:
        self.target = target
        self.folder = Path(target) / folder
        self.file = self.folder / "probe"
        self.renamed = self.folder / "renamed"
        # The folder's name is the seed, so that each process of a round has the same content. Random content
        # can't be compressed by the file system.
        self.content = random.Random(folder).randbytes(size_bytes)
        self.descriptor: int | None = None
        self.made = made

    def do(self, operation: Operation) -> dict[str, Any]:
        """Executes an operation, and returns additional results such as the free space. Raises OSError and
        WrongContent."""
        return getattr(self, f"_{operation.value}")() or {}

    def clean(self) -> None:
        """Removes the files and the folder of this round, if they still exist."""
        if not self.made:
            return
        for remove in (self.file.unlink, self.renamed.unlink, self.folder.rmdir):
            with suppress(OSError):
                remove()

    def _mkdir(self) -> None:
        self.folder.mkdir(0o700)
        self.made = True

    def _create(self) -> None:
        self.descriptor = os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def _write(self) -> None:
        rest = memoryview(self.content)
        while rest:
            rest = rest[os.write(self._open(), rest) :]

    def _fsync(self) -> None:
        os.fsync(self._open())

    def _close(self) -> None:
        descriptor, self.descriptor = self._open(), None
        os.close(descriptor)

    def _open(self) -> int:
        if self.descriptor is None:
            raise OSError(9, "no open file")
        return self.descriptor

    def _read(self) -> None:
        descriptor = os.open(self.file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # This call drops the file from the client's page cache, which is possible because the data was
            # synced before. The next read then has to fetch it from the server.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            found = b""
            while len(found) < len(self.content) and (
                part := os.read(descriptor, len(self.content) - len(found))
            ):
                found += part
        finally:
            os.close(descriptor)
        if found != self.content:
            raise WrongContent

    def _stat(self) -> None:
        self.file.stat()

    def _readdir(self) -> None:
        with os.scandir(self.folder) as entries:
            for _ in entries:
                pass

    def _rename(self) -> None:
        self.file.rename(self.renamed)

    def _remove(self) -> None:
        # If the rename was not answered, it is not known which of the two names the file has. The new name is
        # tried first.
        try:
            self.renamed.unlink()
        except FileNotFoundError:
            self.file.unlink()

    def _rmdir(self) -> None:
        self.folder.rmdir()
        self.made = False

    def _df(self) -> dict[str, Any]:
        found = os.statvfs(self.target)
        return {
            "free_bytes": found.f_bavail * found.f_frsize,
            "size_bytes": found.f_blocks * found.f_frsize,
            "free_inodes": found.f_favail,
            "inodes": found.f_files,
        }


class CommandSteps(Steps):
    """Executes a command of the user as the only operation. The current folder of the command is the one in
    which the run was started."""

    keeps_folder = True

    def __init__(self, command: str) -> None:
        super().__init__("/", "", 0)
        self.command = command

    def _command(self) -> dict[str, Any]:
        status = subprocess.run(["/bin/sh", "-c", self.command], stdin=subprocess.DEVNULL, check=False)
        return {"exit": status.returncode} if status.returncode else {}
