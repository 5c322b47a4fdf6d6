"""Writes a store with stacks, imported from a log of strace -kk that does not depend on this machine."""

from __future__ import annotations

from pathlib import Path

from iodock.program.capture import import_logs

LIBC = " > /usr/lib/libc.so.6(__write+0x14) [0xf78d4]\n"
STEP = (
    LIBC + " > /home/u/solver(write_step+0x20) [0x1176] /home/u/src/solver.c:412\n"
    " > /home/u/solver(main+0x90) [0x12d0] /home/u/src/solver.c:77\n"
)
LAST = LIBC + " > /home/u/solver(main+0x20) [0x1276] /home/u/src/solver.c:500\n"
CALLS = 300


def stacked_store(folder: Path, stacks: bool = True, times: bool = True) -> Path:
    """Imports a run of a solver that writes small pieces, 99 of 100 from one source line, and copies a file.
    Two calls have no stack."""
    lines = [
        '7 1700000001.000000 execve("/home/u/solver", ["solver"], 0x1 /* 1 var */) = 0 <0.000100>\n',
        '7 1700000001.000200 openat(AT_FDCWD, "/data/out", O_WRONLY|O_CREAT, 0644) = 4 <0.000010>\n',
        '7 1700000001.000300 openat(AT_FDCWD, "/data/in", O_RDONLY) = 5 <0.000010>\n',
        "7 1700000001.000400 sendfile(4, 5, NULL, 5000) = 5000 <0.000050>\n",
        STEP,
    ]
    for number in range(CALLS):
        lines.append(f'7 {1_700_000_001.001 + number * 0.001:.6f} write(4, "x"..., 16) = 16 <0.000900>\n')
        lines.append(LAST if number % 100 == 99 else STEP)
    text = "".join(lines)
    if not stacks:
        text = text.replace(STEP, "").replace(LAST, "")
    if not times:
        text = "\n".join(line.partition(" <0.")[0] for line in text.split("\n"))
    (folder / "log").write_text(text)
    return import_logs([str(folder / "log")], folder / "run.iodock").store
