"""Writes logs that the tests of several rules share."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from diagnosing import diagnosed
from iodock.program.findings import Diagnosis
from metadata_log import FIRST, Trace
from processor_times import THREAD

MIB = 1 << 20
FILES = 100
NAMED = ("<pipe:[1]>", "<pipe:[2]>")


def pwrite(log: Trace, size: int, at: int, took_us: int = 20) -> None:
    log.call(f'pwrite64(3, ""..., {size}, {at})', str(size), took_us)


def columns(
    folder: Path, passes: int = 40, stride: int = 16000, size: int = 8, step: int = 8, verb: str = "pread64"
) -> Diagnosis:
    """Diagnoses PASSES reads of a matrix. Each pass reads SIZE bytes from each row of STRIDE bytes, and the
    next pass begins STEP bytes further on."""
    log = Trace()
    log.open("/data/field.bin")
    for number in range(passes):
        for row in range(1200 // passes):
            at = row * stride + number * step
            log.call(f'{verb}(3, ""..., {size}, {at})', str(size), 300)
    return diagnosed(log.imported(folder))


def pieces(log: Trace, name: str, count: int, pid: int, verb: str = "write", took_us: int = 10_000) -> None:
    log.open(name, 3, flags="O_RDWR|O_CREAT", pid=pid)
    for _ in range(count):
        (log.write if verb == "write" else log.read)(MIB, took_us, 3, pid)
    log.close(pid=pid)


def threads(log: Trace, count: int) -> list[int]:
    pids = [FIRST + 1 + number for number in range(count)]
    for pid in pids:
        log.call(THREAD, str(pid))
        log.clocks[pid] = log.clocks[FIRST]
    return pids


def stages(log: Trace, piece: int, write_us: int, pipes: tuple[str, str] = NAMED) -> None:
    """Writes `cat /data/big | cat | cat`: three processes of one program, of which only the first reads a
    file. Each process writes pieces of PIECE bytes to the next, which runs while the first one reads."""

    def call(verb: str, pid: int, fd: int, took_us: int) -> None:
        log.call(f'{verb}({fd}{pipes[fd > 11]}, ""..., {piece})', str(piece), took_us, pid)

    for fd, pipe in zip((10, 12), pipes, strict=True):
        log.call(f"pipe2([{fd}{pipe}, {fd + 1}{pipe}], 0)")
    copies = [FIRST + 1 + number for number in range(3)]
    for pid in copies:
        log.start(pid, "/usr/bin/cat")
    log.open("/data/big", 3, flags="O_RDONLY", pid=copies[0])
    for _ in range(100):
        log.read(MIB, 5_000, 3, copies[0])
        call("write", copies[0], 11, write_us)
        log.clocks[copies[1]] = log.clocks[copies[0]]
        call("read", copies[1], 10, 100)
        call("write", copies[1], 13, write_us)
        log.clocks[copies[2]] = log.clocks[copies[1]]
        call("read", copies[2], 12, 100)
    for pid in copies:
        log.end(pid)


def any_order(count: int, of: int) -> list[int]:
    """Returns COUNT random numbers below OF, always the same ones."""
    chosen = random.Random(count)
    return [chosen.randrange(of) for _ in range(count)]


def spread(folder: Path, each: Callable[[Trace], None], flags: str = "O_RDONLY", files: int = FILES) -> Path:
    """Imports a log in which EACH is done to many files, one file after the other."""
    log = Trace()
    for number in range(files):
        log.open(f"/data/station-{number}.dat", flags=flags)
        each(log)
        log.close()
    return log.imported(folder)


def at(log: Trace, call: str, size: int, offset: int, took_us: int) -> None:
    log.call(f'{call}(3, ""..., {size}, {offset})', str(size), took_us)
