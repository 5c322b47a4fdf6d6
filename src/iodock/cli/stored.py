"""Reports where a recording was stored, if its name differs from the requested one or if an earlier store was
renamed."""

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
    """Raises IodockError on a terminal if the requested name exists and is not a store. An interactive user
    can choose another name at once. A batch job should not fail because of this, so its recording is stored
    under another name."""
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
    """Reports that an earlier store was renamed, that a folder was created, or that the store has another
    name than requested. A different name is reported even with --quiet."""
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
    """Executes the program without recording it. This happens if an existing store can't be renamed, because
    the program should run nevertheless. Raises OSError."""
    import signal

    say(f"warning: {why}; the program runs unrecorded")
    sys.stdout.flush()
    # Python ignores these signals, and a program that is started with exec would ignore them as well.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], list(command))
