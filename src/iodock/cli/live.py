"""Implements `iodock live STORE`, and the display of `iodock record --live`. Both show a recording while it
is in progress."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.options import examples, language, spoken
from iodock.cli.streams import on_terminal, say
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.language import N_, language_in

if TYPE_CHECKING:
    from iodock.program.following import Follower
    from iodock.shared.language import Language

EVERY_S = 1.0
"""Interval between redraws."""
_NICE = 19
"""Priority of this process if there are few processors, so that the recorded program comes first."""
_UNSEEN_WIDTH = 100
_BETWEEN_S = 1.2
_TERMINAL = "/dev/tty"


@click.command(epilog=examples(("iodock live run.iodock", "iodock live run.iodock --once > now.txt")))
@click.argument("store")
@click.option(
    "--once",
    is_flag=True,
    help=("print the table once and end; this is the default if stdout is not a terminal"),
)
@language
def command(store: str, once: bool, lang: str | None) -> None:
    """Watch a recording in progress from another terminal: rates, and the files and calls that took most
    time. The recording is only read. Ctrl-C ends the view, but not the recording."""
    from iodock.program.following import Follower, is_in_progress

    folder, text = Path(store), language_in(spoken(lang))
    if not is_in_progress(folder):
        raise RequestError(f"{store}: is not being recorded", f"iodock show summary {store}")
    follower = Follower(folder)
    if once or not sys.stdout.isatty():
        follower.look()
        # Rates are computed from the difference of two samples, so a second sample is taken after 1.2 s.
        time.sleep(_BETWEEN_S)
        click.echo("\n".join(_lines(follower, text, _UNSEEN_WIDTH, 1 << 10)))
        return
    from iodock.cli.ending import told_to_end

    with told_to_end() as wake:
        import select

        def wait(seconds: float) -> bool:
            told, _, _ = select.select([wake], [], [], seconds)
            return bool(told) or not is_in_progress(folder)

        _draw(lambda: follower, text, sys.stdout.fileno(), wait)
    if not is_in_progress(folder):
        over = N_("the recording has ended: iodock diagnose {store}")
        say(text.gettext(over, store=store))


def _lines(follower: Follower, text: Language, width: int, height: int) -> list[str]:
    from iodock.program.views.live_text import live_lines

    return live_lines(follower.look(), text, width, height)


def _draw(
    found: Callable[[], Follower | None], text: Language, fd: int, wait: Callable[[float], bool]
) -> None:
    """Redraws the display about every second, until WAIT returns True. WAIT waits for the given number of
    seconds, and returns whether the recording is over."""
    from iodock.cli.block import Block
    from iodock.shared.text import cells

    block, follower, pause = Block(fd), None, 0.0
    # In Linux, the priority of a thread is set with its thread id. Threads that it starts inherit the
    # priority.
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    try:
        while not wait(pause):
            # A recording can't be read while it is starting or ending. This is no error, and the next attempt
            # may succeed.
            with suppress(IodockError):
                follower = follower or found()
                if follower is not None:
                    size = block.size
                    block.draw(_lines(follower, text, size.columns - 1, size.lines - 1), cells)
            pause = EVERY_S
    finally:
        block.clear()


def terminal_for(store: str) -> int | None:
    """Opens the terminal for the display, and returns its file descriptor. Returns None if there is no
    terminal. Raises RequestError if the recorded program would write to the same terminal."""
    try:
        fd = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        say("note: --live shows nothing, because there is no terminal")
        return None
    if any(_is_terminal_of_this_session(number) for number in (1, 2)):
        os.close(fd)
        raise RequestError(
            "--live would overwrite the output of the program on this terminal",
            "redirect the program's output: ... > out.txt 2> err.txt; or watch from another terminal: "
            f"iodock live {store}",
        )
    return fd


def _is_terminal_of_this_session(number: int) -> bool:
    try:
        os.tcgetpgrp(number)
    except OSError:
        return False
    return True


@contextmanager
def shown(fd: int, lang: str | None) -> Iterator[None]:
    """Displays the recording of this process on the terminal FD until the context ends. After that, messages
    are printed on this terminal as well."""
    over = threading.Event()
    text = language_in(spoken(lang))
    arguments = (_own_follower, text, fd, over.wait)
    drawing = threading.Thread(target=_draw, args=arguments, name="live", daemon=True)
    drawing.start()
    try:
        yield
    finally:
        over.set()
        drawing.join()
        sys.stderr = on_terminal(fd)


def _own_follower() -> Follower | None:
    """Returns an object that reads the recording of this process while it is in progress. The recording is
    found through its journal, which
    this process has open."""
    from iodock.program.following import Follower

    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            path = entry.readlink()
            if path.suffix == ".journal" and path.parent.name == "journal":
                return Follower(path.parent.parent)
    return None
