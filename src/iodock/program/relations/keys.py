"""Defines the keys by which `--by` can group rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iodock.shared.answer import Column
from iodock.shared.errors import RequestError, meant

Origin = Literal["call", "file", "task", "errno", "interface", "site", "stack"]


@dataclass(frozen=True, slots=True)
class Key:
    """Describes one key: the small table that it comes from, and its SQL expression over this table."""

    name: str
    origin: Origin
    expression: str
    """SQL over the alias of that table. In keys of files, {f} is the file at this end or at the other end."""
    type: str
    noun: str
    """Plural of the noun for headings, such as `files`."""
    doc: str

    @property
    def column(self) -> Column:
        """Returns the column that an answer has for this key."""
        return Column(self.name, self.type, None, "key", self.doc)

    def of(self, alias: str) -> str:
        """Returns the SQL expression of the key. ALIAS is the alias of the table of files in the query."""
        return self.expression.format(f=alias)


KEYS = {
    key.name: key
    for key in (
        Key("call", "call", "c.name", "str", "calls", "the system call"),
        Key(
            "family",
            "call",
            "c.family",
            "str",
            "families",
            "calls with the same effect: open = open, openat, ...",
        ),
        Key("class", "call", "c.class", "str", "classes", "data, metadata, seek, sync, map or other"),
        Key(
            "interface",
            "interface",
            "coalesce(k.interface, 'POSIX')",
            "str",
            "interfaces",
            "innermost interface that made the call: MPI-IO, HDF5, PnetCDF, NetCDF, stdio; POSIX: none",
        ),
        Key(
            "interface_call",
            "interface",
            "k.call",
            "str",
            "calls of interfaces",
            "the innermost call of an interface that made it; null for calls that the program made itself",
        ),
        Key("file", "file", "{f}.name", "str", "files", "the file's name, or its kind if it has none"),
        Key(
            "pattern",
            "file",
            "{f}.pattern",
            "str",
            "files and patterns",
            "the pattern of names that 4 files or more share, what varies as *; else the file's name",
        ),
        Key("folder", "file", "{f}.folder", "str", "folders", "the folder of the file"),
        Key(
            "ending",
            "file",
            "{f}.ending",
            "str",
            "endings",
            "text after the last dot of the name, empty if none",
        ),
        Key("kind", "file", "{f}.kind", "str", "kinds", "regular, directory, pipe, socket, ..."),
        Key(
            "mount",
            "file",
            "{f}.mount_point",
            "str",
            "mounts",
            "mount point of the file system, if known",
        ),
        Key(
            "fs_type",
            "file",
            "{f}.fs_type",
            "str",
            "file-system types",
            "type of the file system, if known",
        ),
        Key("pid", "task", "p.pid", "int", "processes", "process id"),
        Key("tid", "task", "p.tid", "int", "threads", "thread id"),
        Key("rank", "task", "p.rank", "int", "ranks", "MPI rank, where known"),
        Key("host", "task", "p.host", "str", "hosts", "the host it ran on"),
        Key(
            "line",
            "site",
            "l.line",
            "str",
            "lines",
            "the source line that made the call; without debug information the function, or the offset in"
            " the file",
        ),
        Key(
            "function",
            "site",
            "l.function",
            "str",
            "functions",
            "the function that this line is in, where known",
        ),
        Key("module", "site", "l.module", "str", "modules", "the program or library that this line is in"),
        Key("stack", "stack", "w.stack", "str", "stacks", "the functions that the call was made through"),
        Key(
            "errno", "errno", "x.name", "str", "errors", "the error's name; null for calls that did not fail"
        ),
    )
}
"""Keys by name, in the order of the documentation."""

COUNTED_FILES = ("pattern", "folder", "ending", "kind", "mount", "fs_type")
"""If a row is grouped by one of these keys, the answer shows the number of files that it represents."""


def find_keys(names: tuple[str, ...]) -> tuple[Key, ...]:
    """Returns the keys of these names. Raises RequestError for an unknown name."""
    names = tuple(name.replace("-", "_") for name in names)
    for name in names:
        if name not in KEYS:
            raise RequestError(f"no such key: {name}", meant(name, KEYS, f"keys: {', '.join(KEYS)}"))
    return tuple(KEYS[name] for name in dict.fromkeys(names))


def noun_of(keys: tuple[Key, ...]) -> str:
    """Returns the plural noun for rows with these keys."""
    return keys[0].noun if len(keys) == 1 else "rows"
