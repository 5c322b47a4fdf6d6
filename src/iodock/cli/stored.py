"""Under which name a recording was stored, where that needs saying."""

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

_KEPT = N_("{store} is this run; the one before is kept as {kept}")
_MADE = N_("created the folder {folder}")
_ELSEWHERE = N_("{asked}: {why}; the run is recorded as {store}")


def refuse_at_a_terminal(store: str) -> None:
    """Who sits there corrects a name at once; a job must run, and gets another name. Raises IodockError."""
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
    """What became of the store before, and of the name. Another name than was asked for is also said to who
    wants no remarks."""
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
    """Becomes the program, where a store that can't make way is all that is wrong. Raises OSError."""
    import signal

    say(f"warning: {why}; the program runs unrecorded")
    sys.stdout.flush()
    # Python ignores these, which a program would inherit.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], list(command))
