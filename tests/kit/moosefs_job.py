"""What a job does on its mount: a little all the time, or as much as it can. One process; its threads wait
for the file system, not for each other.

    python moosefs_job.py FOLDER little
    python moosefs_job.py FOLDER much THREADS
    python moosefs_job.py FOLDER fill FILES
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import time
from pathlib import Path

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


def much(folder: Path, threads: int) -> None:
    """Each thread looks for the next free name, as `glob` does, and makes a file: the master lists all again
    and again."""
    for thread in range(threads):
        threading.Thread(target=_one, args=(folder, thread), daemon=True).start()
    threading.Event().wait()


def _one(folder: Path, thread: int) -> None:
    path = folder.with_name(f"next.{thread}")
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
