"""Checks the watched folder before the first round. A child process examines the folder, because its calls
may hang."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from errno import ENOTDIR
from pathlib import Path
from stat import S_ISDIR, S_ISGID
from typing import Any

from iodock.file_system.probe.operations import Operation, Steps
from iodock.file_system.probe.worker import Worker
from iodock.shared.errors import RequestError


@dataclass(frozen=True, slots=True)
class ProbedFolder:
    """Properties of a folder whose file system responded."""

    device: int
    """Device number (st_dev) of the folder."""
    path: str
    """Absolute path without links."""
    space: Mapping[str, int]
    """Result of statvfs, under the names of its C structure."""
    group: int
    """Group of new files in the folder."""


_SPACE = ("f_frsize", "f_bsize", "f_blocks", "f_bavail", "f_files", "f_favail", "f_namemax")


class _Look(Steps):
    def _stat(self) -> dict[str, Any]:  # type: ignore[override]
        path = Path(self.target).resolve(strict=True)
        found = path.stat()
        if not S_ISDIR(found.st_mode):
            raise NotADirectoryError(ENOTDIR, "is not a folder")
        space = os.statvfs(path)
        return {
            "device": found.st_dev,
            "path": str(path),
            "writable": os.access(path, os.W_OK | os.X_OK),
            "group": found.st_gid if found.st_mode & S_ISGID else os.getegid(),
            "space": {name: getattr(space, name) for name in _SPACE},
        }


def look(target: str, seconds: float, to_write: bool = True) -> ProbedFolder | None:
    """Examines a folder in a child process. Returns None if the child does not reply within SECONDS. Raises
    RequestError if the folder does not exist, or if TO_WRITE is set and the user may not write there."""
    worker = Worker(_Look(target, "", 0))
    worker.ask(Operation.STAT)
    reply = worker.reply(seconds)
    worker.give_up()
    if not worker.has_ended(0.2):
        worker.kill()
    worker.channel.close()
    if reply is None:
        return None
    if reply.error is not None:
        raise RequestError(f"{target}: {_SAID.get(reply.error, reply.error)}", "name an existing folder")
    if to_write and not reply.found["writable"]:
        raise RequestError(f"{target}: you may not write there", "name a folder of yours on that file system")
    return ProbedFolder(
        reply.found["device"], reply.found["path"], reply.found["space"], reply.found["group"]
    )


_SAID = {"ENOENT": "no such folder", "ENOTDIR": "is not a folder", "EACCES": "you may not access that path"}
