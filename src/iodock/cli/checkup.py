"""The check-up in the terminal, after a recording."""

from __future__ import annotations

import sys
from pathlib import Path


def print_checkup_of(folder: Path, language: str) -> None:
    """Prints the check-up of a store on stderr: stdout belongs to the program that was recorded. LANGUAGE is
    a code."""
    from rich.console import Console

    from iodock.store import Store
    from iodock.views.checkup import checkup_of, print_checkup

    console = Console(file=sys.stderr, highlight=False)
    with Store.open(folder) as store:
        console.print()
        print_checkup(checkup_of(store, str(folder)), console, language)
