"""A job that creates and removes files on its mount: a few all the time, or as many as possible.

Usage: python moosefs_job.py FOLDER little, or FOLDER much PROCESSES, or FOLDER fill FILES"""

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
BEGINS = "begins"
"""Printed when that is done."""
PAUSE_S = 0.2
"""Pause between two files of a job with little activity."""


def little(folder: Path) -> None:
    """Creates, stats and removes a file several times a second."""
    for number in itertools.count():
        path = folder / f"restart.{number % 100}"
        with contextlib.suppress(OSError):
            path.touch()
            path.stat()
            path.unlink()
        time.sleep(PAUSE_S)


def much(folder: Path, processes: int) -> None:
    """Creates and removes files in PROCESSES processes. Each has its own folder, because the kernel allows
    one process at a time to change a folder."""
    waits, begins = os.pipe()
    for number in range(processes):
        own = folder / f"rank.{number}"
        own.mkdir(exist_ok=True)
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            os.close(begins)
            os.read(waits, 1)
            _one(own / "restart")
    # Closing the pipe starts all processes at once.
    os.close(begins)
    print(BEGINS, flush=True)
    signal.pause()


def _one(path: Path) -> NoReturn:
    while True:
        with contextlib.suppress(OSError):
            path.touch()
            path.unlink()


if __name__ == "__main__":
    where, what, *number = sys.argv[1:]
    if what == "much":
        much(Path(where), int(number[0]))
    else:
        little(Path(where))
