"""What a job does on its mount: a little all the time, or as much as it can.

python moosefs_job.py FOLDER little
python moosefs_job.py FOLDER much PROCESSES
python moosefs_job.py FOLDER fill FILES
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
PAUSE_S = 0.1
"""Of who does little, between two files."""
NAME = "output.step{:06d}.rank{:04d}.dat"


def little(folder: Path) -> None:
    """Makes a file, looks at it and removes it, ten times a second."""
    for number in itertools.count():
        path = folder / f"restart.{number % 100}"
        with contextlib.suppress(OSError):
            path.touch()
            path.stat()
            path.unlink()
        time.sleep(PAUSE_S)


def fill(folder: Path, count: int) -> None:
    """A folder of many files."""
    folder.mkdir()
    for number in range(count):
        os.mknod(folder / NAME.format(number, 0))


def much(folder: Path, processes: int) -> None:
    """Each process looks for the next free name, as `glob` does, and makes a file: the master lists all again
    and again."""
    for number in range(processes):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            _one(folder, folder.with_name(f"next.{number}"))
    signal.pause()


def _one(folder: Path, path: Path) -> NoReturn:
    while True:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            next(entries, None)
        with contextlib.suppress(OSError):
            path.touch()
            path.unlink()


if __name__ == "__main__":
    where, what, *number = sys.argv[1:]
    if what == "much":
        much(Path(where), int(number[0]))
    elif what == "fill":
        fill(Path(where), int(number[0]))
    else:
        little(Path(where))
