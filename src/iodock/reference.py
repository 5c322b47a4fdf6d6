"""Everything that has a documented meaning, gathered from where it is declared: for `iodock explain` and the
generated reference."""

from __future__ import annotations

from dataclasses import dataclass

from iodock import _native, analyses
from iodock.relations.keys import KEYS
from iodock.store import TABLES

_CLASSES = {
    "data": "moves bytes: read, write, send, recv, sendfile and their kin",
    "metadata": "about files rather than their contents: open, close, stat, rename, mkdir, readdir, ...",
    "seek": "moves a position: lseek",
    "sync": "waits until data is on its device: fsync, fdatasync, sync, ...",
    "map": "maps memory: mmap, munmap, mprotect, ...; reads and writes through a mapping are not calls",
    "other": "everything else: processes, signals, waiting, memory, ...",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """One name and its meaning."""

    name: str
    group: str
    """Heading under which it is listed."""
    what: str
    """`column of summary, ns`."""
    text: str


def explanations() -> list[Explanation]:
    """All there is, in the order of the groups."""
    return [*_columns(), *_keys(), *_stored(), *_calls(), *_losses()]


def _columns() -> list[Explanation]:
    seen: dict[tuple[str, str, str | None], list[str]] = {}
    for analysis in analyses.every():
        for column in analysis.columns:
            seen.setdefault((column.name, column.doc, column.unit), []).append(analysis.name)
    return [
        Explanation(name, "columns", f"column of {', '.join(where)}{f', {unit}' if unit else ''}", doc)
        for (name, doc, unit), where in seen.items()
    ]


def _keys() -> list[Explanation]:
    return [Explanation(key.name, "keys", "key, for --by", key.doc) for key in KEYS.values()]


def _stored() -> list[Explanation]:
    return [
        Explanation(
            column.name, "stored columns", f"stored column of {table.name}, {column.type}", column.doc
        )
        for table in TABLES
        for column in table.columns
    ]


def _calls() -> list[Explanation]:
    entries = [
        Explanation(name, "classes of calls", "class of calls", text) for name, text in _CLASSES.items()
    ]
    families: dict[str, list[str]] = {}
    for name, family, kind in _native.known_calls():
        if not name:
            continue
        families.setdefault(family, []).append(name)
        text = f"family {family}, class {kind}: {_CLASSES[kind]}"
        entries.append(Explanation(name, "calls", "system call", f"{text}\n  manual: man 2 {name}"))
    for family, names in families.items():
        if len(names) > 1:
            entries.append(Explanation(family, "families of calls", "family of calls", ", ".join(names)))
    return entries


def _losses() -> list[Explanation]:
    return [Explanation(name, "losses", "loss", cure) for name, cure in _native.known_losses()]
