"""Tests what `iodock live` and `record --live` show of a recording in progress, on a real pseudo terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from iodock.cli.block import Block
from iodock.program.following import Rates, Sight, Sums
from iodock.program.views.live_text import live_lines
from iodock.shared.language import language_in
from iodock.shared.text import cells
from recorded import IODOCK, bpf_unavailable, live, needs_root, run, wait_until

BACKENDS = ["rewrite", "ptrace", pytest.param("bpf", marks=needs_root)]
# Prints which standard streams are a terminal, works for some seconds, and fails.
PROGRAM = """
import os, signal, sys, time
print([os.isatty(n) for n in (0, 1, 2)], flush=True)
print('to stderr', file=sys.stderr, flush=True)
signal.signal(signal.SIGINT, lambda *_: sys.exit(7))
f = os.open('out.dat', os.O_WRONLY | os.O_CREAT)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    os.write(f, b'x' * 1000)
    time.sleep(0.002)
print('done', flush=True)
sys.exit(3)
"""


def on_terminal(
    command: Sequence[object],
    cwd: Path,
    size: tuple[int, int] = (24, 80),
    keys: tuple[bytes, bytes] = (b"", b""),
) -> tuple[int, bytes]:
    """Runs a command in a pseudo terminal. Returns its exit status and its output. KEYS: typed once there is
    output."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvp(str(command[0]), [str(one) for one in command])
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    said, began, typed = b"", time.monotonic(), not keys[1]
    while time.monotonic() - began < 90:
        if not typed and keys[0] in said:
            typed = bool(os.write(master, keys[1]))
        if select.select([master], [], [], 0.1)[0]:
            try:
                more = os.read(master, 1 << 16)
            except OSError:
                break
            said += more
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(master)
    return status, said


def screen_of(said: bytes, columns: int) -> list[str]:
    """Returns the visible lines of a terminal with this many columns. Knows the sequences that iodock writes
    (\\r, \\n, up, erase below)."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]|[^\x1b\r\n]", said.decode()):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
        elif part.endswith("A") and part.startswith("\x1b"):
            row = max(0, row - int(part[2:-1] or 1))
        elif part == "\x1b[J":
            lines = [*lines[:row], lines[row][:column] if row < len(lines) else ""]
        elif not part.startswith("\x1b"):
            if column == columns:
                row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
            lines[row] = lines[row].ljust(column)[:column] + part + lines[row][column + 1 :]
            column += 1
        lines += [""] * (row + 1 - len(lines))
    return lines


def recorded(folder: Path, *options: str, seconds: float = 6) -> str:
    """Returns a shell command that records the program with its output in files."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    words = [*IODOCK, "record", *options, "-o", "run.iodock", "--", sys.executable, "-S", program, seconds]
    return "exec " + " ".join(f"'{word}'" for word in words) + " > out.txt 2> err.txt"


@pytest.mark.whole
@live
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_live_view_does_not_change_the_programs_output(tmp_path: Path, backend: str) -> None:
    if backend == "bpf" and (reason := bpf_unavailable()):
        pytest.skip(reason)
    without, with_it = tmp_path / "without", tmp_path / "with"
    for folder in (without, with_it):
        folder.mkdir()
    line = recorded(without, "--backend", backend, "-q", seconds=0.1)
    plain, _ = on_terminal(["sh", "-c", line], without)
    status, said = on_terminal(["sh", "-c", recorded(with_it, "--backend", backend, "--live")], with_it)
    assert status == plain == 3
    for name in ("out.txt", "err.txt"):
        assert (with_it / name).read_bytes() == (without / name).read_bytes()
    assert (with_it / "err.txt").read_text() == "to stderr\n"
    assert b"recording for " in said
    assert b"out.dat" in said
    assert re.search(rb"written \d[^ ]* [kKM]i?B/s", said), said
    screen = "\n".join(screen_of(said, 80))
    assert "recording for" not in screen
    # The terminal shows the result where the user sees it.
    assert "iodock diagnose" in screen or "iodock report" in screen


@pytest.mark.whole
@live
@pytest.mark.parametrize("columns", [40, 60])
def test_the_live_view_fits_a_narrow_terminal(tmp_path: Path, columns: int) -> None:
    _, said = on_terminal(["sh", "-c", recorded(tmp_path, "--live", "-q")], tmp_path, (24, columns))
    drawn = said.decode()
    assert "recording for " in drawn
    for line in re.split(r"\r*\n", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)):
        assert cells(line.replace("\r", "")) < columns, line
    assert "recording for" not in "\n".join(screen_of(said, columns))


@pytest.mark.whole
@live
def test_live_view_on_the_programs_terminal_is_refused_before_the_start(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [*IODOCK, "record", "--live", "-o", "run.iodock", "--", sys.executable, program, 1]
    status, said = on_terminal(command, tmp_path)
    assert status == 2
    assert b"would overwrite the output of the program" in said
    assert b"iodock live run.iodock" in said
    assert not (tmp_path / "out.dat").exists()
    assert not (tmp_path / "run.iodock").exists()


@pytest.mark.whole
@live
def test_an_interrupt_reaches_the_program_during_the_live_view(tmp_path: Path) -> None:
    line = recorded(tmp_path, "--live", "-q", seconds=30)
    status, said = on_terminal(["sh", "-c", line], tmp_path, keys=(b"out.dat", b"\x03"))
    assert status == 7
    assert "done" not in (tmp_path / "out.txt").read_text()
    assert (tmp_path / "run.iodock" / "events").is_dir()
    assert "recording for" not in "\n".join(screen_of(said, 80))


@live
def test_the_program_runs_if_the_live_view_has_no_terminal(tmp_path: Path) -> None:
    done = run(
        [*IODOCK, "record", "--live", "-q", "-o", "run.iodock", "--", "true"],
        tmp_path,
        start_new_session=True,
    )
    assert done.returncode == 0
    assert "is no terminal" in done.stderr


@pytest.mark.whole
@live
def test_live_view_in_another_terminal_reports_the_end(tmp_path: Path) -> None:
    line = recorded(tmp_path, "-q", seconds=12)
    with subprocess.Popen(["sh", "-c", line], cwd=tmp_path, start_new_session=True) as recorder:
        wait_until((tmp_path / "run.iodock" / "journal" / "main.calls").exists)
        once = run([*IODOCK, "live", "run.iodock"], tmp_path)
        _, said = on_terminal([*IODOCK, "live", "run.iodock"], tmp_path)
        recorder.wait(60)
    assert once.returncode == 0, once.stderr
    assert once.stdout.startswith("recording for ")
    assert "\x1b" not in once.stdout
    assert b"out.dat" in said
    screen = "\n".join(screen_of(said, 80))
    assert "recording for" not in screen
    assert "the recording has ended: iodock diagnose run.iodock" in screen
    over = run([*IODOCK, "live", "run.iodock"], tmp_path)
    assert over.returncode == 2
    assert "is not being recorded" in over.stderr


SIGHT = Sight(
    12.34,
    0.81,
    Rates(12345.6, 120.0, 1.5e8, 3.0e6),
    (
        Sums("/scratch/a/very/long/name/of/a/file/in/many/folders.dat", 58201, 4_100_000_000, 0, 14_900_000),
        *(Sums(f"/scratch/データ/{n}.h5", n, n * 1_000_000, n << 20, 0) for n in (3, 2, 1)),
    ),
    (Sums("write", 58201, 4_000_000_000, 0, 14_900_000), Sums("openat", 3, 1000, 0, 0)),
)


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("width", [1, 20, 40, 57, 80, 200])
def test_no_line_is_wider_than_the_terminal(language: str, width: int) -> None:
    lines = live_lines(SIGHT, language_in(language), width, 30)
    assert max(map(cells, lines)) <= width
    assert len(live_lines(SIGHT, language_in(language), width, 5)) <= 5


def test_the_least_important_columns_are_dropped_first() -> None:
    wide, narrow = ("\n".join(live_lines(SIGHT, language_in("en"), width, 30)) for width in (120, 40))
    assert "58,201" in wide and "14.2 MiB" in wide and "4.1 s" in wide
    assert "4.1 s" in narrow and "folders.dat" in narrow and "14.2 MiB" not in narrow


def test_a_terminal_that_became_narrower_is_cleared_completely() -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    block = Block(slave)
    block.draw(["x" * 70, "", "y" * 30], cells)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    block.draw(["z"], cells)
    block.clear()
    block.clear()
    os.write(slave, b"end")
    said = b""
    while not said.endswith(b"end"):
        said += os.read(master, 1 << 12)
    os.close(master)
    os.close(slave)
    # The terminal has become narrower, so 70 cells take two lines.
    assert said.count(b"\x1b[4A\x1b[J") == 1
    assert said.endswith(b"\r\x1b[1A\x1b[Jend")
