"""A program in Python in which comments such as `# HERE fsync` mark the lines that make calls."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

PYTHON = r"""
import asyncio
import os
import subprocess
import sys
import threading


def work(file):
    for _ in range(20):
        os.pread(file, 4, 0)  # HERE pread64


def pieces(file):
    for _ in range(20):
        yield os.pwrite(file, b"abc", 0)  # HERE pwrite64


class Log:
    def __init__(self, name):
        self.out = open(name, "wb", buffering=0)

    def line(self, number):
        self.out.write(b"step %d\n" % number)  # HERE write


async def cut(file):
    for _ in range(20):
        os.ftruncate(file, 9)  # HERE ftruncate
        await asyncio.sleep(0)


def deeper(file, depth):
    if depth:
        return deeper(file, depth - 1)
    return os.fsync(file)  # HERE fsync


def main(name):
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    thread = threading.Thread(target=work, args=(file,))
    thread.start()
    thread.join()
    print(sum(pieces(file)), flush=True)
    log = Log(name + ".log")
    for number in range(20):
        log.line(number)
    asyncio.run(cut(file))
    for _ in range(20):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_NORMAL)  # HERE fadvise64
    for _ in range(20):
        deeper(file, 90)
    for number in range(20):
        code = compile("\n" * number + "os.fchmod(file, 0o644)", "made_%d.py" % number, "exec")
        exec(code, {"os": os, "file": file})
        exec("a = 1\n" * 30 + "\n" * number + "os.fchown(file, -1, -1)", {"os": os, "file": file})
    subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    for _ in range(20):
        with open(name, "rb") as again:
            again.read()  # HERE read


main(sys.argv[1])
"""


@functools.cache
def interpreters() -> dict[tuple[int, int], Path]:
    """Returns an interpreter for each installed version of CPython. The key (0, 0) is the system's
    interpreter, if it is not one of these."""
    here = Path(sys.executable).resolve()
    beside = sorted(here.parent.parent.parent.glob("3.*/bin/python3")) if "versions" in here.parts else []
    found: dict[tuple[int, int], Path] = {}
    for path in [here, *beside]:
        asked = "import sys; print(*sys.version_info[:2], sys.implementation.name)"
        done = subprocess.run([path, "-c", asked], capture_output=True, text=True, timeout=60)
        if done.returncode == 0 and done.stdout.endswith("cpython\n"):
            major, minor = map(int, re.findall(r"\d+", done.stdout)[:2])
            found.setdefault((major, minor), path)
    system = Path("/usr/bin/python3")
    new = "import sys; sys.exit(sys.version_info < (3, 11))"
    if system.exists() and system.resolve() != here and not subprocess.run([system, "-c", new]).returncode:
        found[0, 0] = system
    return found
