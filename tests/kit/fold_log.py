"""Writes a log with many kinds of calls, for tests of derived tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from iodock.program import capture


def lines(count: int, files: int) -> Iterator[str]:
    """Yields the lines of a log with every kind of call that the derived tables distinguish. Most are
    reads."""
    rare = cycle(
        (
            'openat(AT_FDCWD, "/w/log{n}", O_WRONLY|O_CREAT|O_APPEND, 0666) = 4 <0.000021>',
            'openat(AT_FDCWD, "/w/log{n}", O_WRONLY|O_DSYNC) = -1 ENOENT (None) <0.000017>',
            'openat(AT_FDCWD, "/w/in{n}", O_RDONLY) = 5 <0.000012>',
            'write(4, "..."..., 700) = 700 <0.031>',
            "sendfile(4, 5, NULL, 4096) = 4096 <0.5>",
            'rename("/w/a{n}", "/w/b{n}") = 0 <0.025>',
            "fcntl(4, F_SETFL, O_RDONLY|O_APPEND) = 0 <0.000002>",
            "close(5) = 0 <0.000001>",
            "close(4) = 0 <0.0>",
        )
    )
    for number in range(count):
        call = (
            next(rare).format(n=number // 63 % files)
            if number % 7 == 0
            else f'read(3, "..."..., 4096) = {number % 4097} <0.{number % 1000:06}>'
        )
        yield f"{100 + number % 3} 1700000{number // 1000:03}.{number % 1000:03}000 {call}\n"


def imported(folder: Path, log: Iterator[str]) -> Path:
    path = folder / "log"
    path.write_text("".join(log))
    store = folder / "run.iodock"
    capture.import_logs([str(path)], store)
    return store
