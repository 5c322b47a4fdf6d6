"""Prints the check-up of a run in the terminal after the run was recorded."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from iodock.shared.language import N_


def print_checkup_of(folder: Path, language: str) -> None:
    """Prints the check-up of the store FOLDER on stderr, because stdout belongs to the recorded program.
    LANGUAGE is a language code."""
    from rich.console import Console

    from iodock.cli.digest_follows import digest_follows
    from iodock.cli.servers import servers_in_time
    from iodock.program.store import Store
    from iodock.program.views.checkup import checkup_of, print_checkup
    from iodock.shared.language import language_in
    from iodock.shared.settings import load

    console = Console(file=sys.stderr, highlight=False)
    # Diagnosing several million calls takes seconds. A line that says so is shown on a terminal, and removed
    # afterwards.
    doing = language_in(language).gettext(N_("searching for things worth changing"))
    with Store.open(folder) as store:
        if store.manifest.profiles_only:
            from iodock.cli.light import print_counts

            print_counts(store, console, language)
            return
        with console.status(doing) if console.is_terminal else nullcontext():
            site = load()
            checkup = checkup_of(store, str(folder), settings=site, servers=servers_in_time(store, site))
            checkup = replace(checkup, digest_follows=digest_follows(store, console.is_terminal))
        console.print()
        print_checkup(checkup, console, language)
