"""Replaces names of files, hosts and programs in texts about a store by made-up names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePosixPath

from iodock.program.store.anonymous import Anonymiser
from iodock.program.store.store import Store

_NAMES_SQL = """SELECT DISTINCT unnest([name, folder, rtrim(folder, '/'), pattern]) AS name FROM files
UNION SELECT path FROM commands"""
_HOSTS_SQL = "SELECT DISTINCT host AS name FROM processes UNION SELECT host FROM files"


def renaming_of(
    store: Store, names: Anonymiser, texts: Iterable[str], paths: Iterable[str] = ()
) -> Callable[[str], str]:
    """Returns a function that replaces names in texts. It replaces each name from the store that occurs in
    TEXTS by the one that NAMES makes up. PATHS has patterns that were made from these names and are
    replaced, too. Raises QueryError."""
    # There are few texts but possibly many names, so only names that occur in a text are remembered.
    said = "\n".join(texts)
    made: dict[str, str] = {}

    def note(name: str, new: str) -> None:
        # In SQL, each quotation mark within a name is doubled, so this form of the name is replaced, too.
        for old, instead in ((name, new), (name.replace("'", "''"), new.replace("'", "''"))):
            if len(old) > 1 and old != instead and old in said:
                made[old] = instead

    for name in (*(row["name"] for row in store.rows(_NAMES_SQL)), *paths):
        if name:
            note(name, names.path(name))
            last = PurePosixPath(name).name
            if len(last) > 2 and last in said:
                note(last, names.path(name.rstrip("/")).rpartition("/")[2])
    for row in store.rows(_HOSTS_SQL):
        if row["name"]:
            note(row["name"], names.word(row["name"], "host"))
    longest = sorted(made, key=len, reverse=True)

    def renamed(text: str) -> str:
        parts = [text]
        for name in longest:
            if any(name in part for part in parts[::2]):
                split = []
                for place, part in enumerate(parts):
                    # Every second part is a made-up name already, so it is not searched for names.
                    split += [part] if place % 2 else _around(part, name, made[name])
                parts = split
        return "".join(parts)

    return renamed


def _around(text: str, name: str, new: str) -> list[str]:
    """Splits the text at each occurrence of NAME, and puts NEW between the parts."""
    found: list[str] = []
    for part in text.split(name):
        found += [part, new]
    return found[:-1]
