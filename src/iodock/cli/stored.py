"""Reports the name of the store, if it is not the requested name or an earlier store was moved."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from iodock import _native
from iodock.cli.streams import say
from iodock.shared.errors import IodockError
from iodock.shared.language import N_, language_in

_KEPT = N_("{store} is this run; the previous one is kept as {kept}")
_MADE = N_("created the folder {folder}")
_ELSEWHERE = N_("{asked}: {why}; the run is recorded as {store}")


def refuse_at_a_terminal(store: str) -> None:
    """Raises IodockError if a terminal is used, because an interactive user can correct the name immediately.
    A job has to run, so its store gets another name."""
    path = Path(store)
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or not os.path.lexists(store):
        return
    if path.is_symlink() or not path.is_dir():
        what = "is a link" if path.is_symlink() else "is a file"
    elif (path / "manifest.json").is_file() or not (foreign := _native.foreign_in_store(store)):
        return
    else:
        what = f"is no iodock store ({foreign[0].name})"
    raise IodockError(f"{store}: {what}", "give another name with -o")


def say_where(recorded: _native.RecordSummary, asked: str, language: str, quiet: bool) -> None:
    """Reports what happened to the previous store, and the name of the new one. If that is not the requested
    name, it is reported even with --quiet."""
    text = language_in(language)
    store, elsewhere = recorded["store"], recorded.get("elsewhere")
    if (folder := recorded.get("made_folder")) and not quiet:
        say(f"note: {text.gettext(_MADE, folder=folder)}")
    if (kept := recorded.get("kept")) and not quiet:
        say(f"note: {text.gettext(_KEPT, store=store, kept=kept)}")
    if elsewhere:
        said = text.gettext(_ELSEWHERE, asked=asked, why=elsewhere, store=store)
        say(f"warning: {said}")


def run_unrecorded(command: Sequence[str], why: str) -> NoReturn:
    """Executes the program without recording. This is done if the only problem is an existing store that
    can't be moved. Raises OSError."""
    import signal

    say(f"warning: {why}; the program runs unrecorded")
    sys.stdout.flush()
    # Python ignores these signals, and the program would inherit this setting.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], list(command))
