"""Tests the pager on a real terminal: when iodock uses one, which one, and that leaving it early is no
error."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import struct
import sys
import termios
from pathlib import Path

import pytest

from in_process import asked
from iodock.program.capture import import_logs

PLAIN = {name: value for name, value in os.environ.items() if name not in ("PAGER", "IODOCK_PAGER", "LESS")}


def at_a_terminal(
    arguments: list[object], lines: int = 24, keys: tuple[bytes, bytes] | None = None, **surroundings: str
) -> tuple[str, int]:
    """Runs iodock in a terminal with 80 columns. Returns its output and the exit status. KEYS: keys to press,
    each with the output to wait for."""
    process, terminal = pty.fork()
    if process == 0:
        words = [sys.executable, "-m", "iodock", *map(str, arguments)]
        os.execve(sys.executable, words, {**PLAIN, "TERM": "xterm"} | surroundings)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 80, 0, 0))
    seen = b""
    while data := _read(terminal):
        seen += data
        if keys and keys[1] in seen:
            os.write(terminal, keys[0])
            keys = None
    os.close(terminal)
    return seen.decode(), os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # Reading fails with EIO when the other end of the terminal is closed.
        return b""


def test_only_output_longer_than_the_screen_is_paged(mixed_path: Path, tmp_path: Path) -> None:
    pager = f"cat > {tmp_path / 'paged'}"
    seen, status = at_a_terminal(["show", "summary", mixed_path], lines=50, PAGER=pager)
    assert status == 0 and not (tmp_path / "paged").exists() and "openat" in seen
    seen, status = at_a_terminal(["show", "summary", mixed_path], lines=5, PAGER=pager)
    paged = (tmp_path / "paged").read_text()
    assert status == 0 and "openat" in paged and "openat" not in seen
    # The output keeps its colours.
    assert paged.startswith("\x1b[1mCalls")


def test_iodock_pager_precedes_pager(mixed_path: Path, tmp_path: Path) -> None:
    chosen, other = (f"cat > {tmp_path / name}" for name in ("chosen", "other"))
    at_a_terminal(["show", "files", mixed_path], lines=5, IODOCK_PAGER=chosen, PAGER=other)
    assert (tmp_path / "chosen").exists() and not (tmp_path / "other").exists()


@pytest.mark.parametrize("before", [True, False])
def test_the_option_no_pager_prints_directly(mixed_path: Path, tmp_path: Path, before: bool) -> None:
    words = ["show", "files", mixed_path]
    words = ["--no-pager", *words] if before else [*words, "--no-pager"]
    seen, _ = at_a_terminal(words, lines=5, PAGER=f"cat > {tmp_path / 'paged'}")
    assert "calls" in seen and not (tmp_path / "paged").exists()


@pytest.mark.parametrize("pager", ["", "cat"])
def test_an_empty_pager_variable_prints_directly(mixed_path: Path, pager: str) -> None:
    seen, status = at_a_terminal(["show", "files", mixed_path], lines=5, PAGER=pager)
    assert status == 0 and "calls" in seen


@pytest.mark.parametrize("verb", ["show summary {}", "show accesses {} --format csv", "explain losses"])
def test_leaving_the_pager_early_is_not_an_error(mixed_path: Path, verb: str) -> None:
    words = [word.format(mixed_path) for word in verb.split(" ")]
    seen, status = at_a_terminal(words, lines=5, PAGER="head -c 1")
    assert status == 0 and "error" not in seen


def test_the_exit_status_is_that_of_the_command(mixed_path: Path) -> None:
    words = ["diagnose", mixed_path, "--fail-on", "low"]
    assert at_a_terminal(words, lines=3, PAGER="true")[1] == asked(*words)[0]


def test_a_missing_pager_gives_a_warning(mixed_path: Path) -> None:
    seen, status = at_a_terminal(["show", "files", mixed_path], lines=5, PAGER="/no/such/pager")
    assert status == 0 and "warning: the pager /no/such/pager can't be started" in seen and "calls" in seen


@pytest.mark.whole
@pytest.mark.skipif(shutil.which("less") is None, reason="needs less")
def test_less_is_called_with_the_options_of_git(mixed_path: Path) -> None:
    words = ["show", "files", mixed_path]
    seen, status = at_a_terminal(words, lines=5, keys=(b"q", b"\r\n:"))
    assert status == 0 and "calls" in seen and "total" not in seen
    # The pager does not wrap a table that is wider than the screen.
    seen, _ = at_a_terminal([*words, "--wide"], lines=50, keys=(b"q", b"(END)"))
    assert "read_again_bytes" not in seen and "hidden" not in seen


def test_no_pager_is_started_in_a_pipe(
    mixed_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from in_process import printed

    monkeypatch.setenv("PAGER", f"cat > {tmp_path / 'paged'}")
    assert "calls" in printed("show", "files", mixed_path) and not (tmp_path / "paged").exists()


@pytest.mark.parametrize("pager", ["/no/such/pager", "sleep 0.2; no-such-pager", "exec no-such-pager"])
def test_a_missing_pager_loses_no_output(tmp_path: Path, pager: str) -> None:
    rows = 40_000
    read = "1 1700000000.0 read(3, ..., 4096) = 4096 <0.00001>\n"
    (tmp_path / "log").write_text(
        '1 1700000000.0 openat(AT_FDCWD, "/d/a", O_RDONLY) = 3 <0.00001>\n' + read * rows
    )
    store = tmp_path / "s.iodock"
    import_logs([str(tmp_path / "log")], str(store))
    seen, status = at_a_terminal(["show", "accesses", store, "--format", "csv", "-q"], PAGER=pager)
    assert status == 0 and seen.count(',"read","/d/a",') == rows


def test_a_dumb_terminal_gets_no_colour(mixed_path: Path) -> None:
    seen, _ = at_a_terminal(["show", "files", mixed_path], TERM="dumb")
    assert "\x1b" not in seen
