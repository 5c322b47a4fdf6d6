"""Defines the keys by which counters can be grouped."""

from __future__ import annotations

from iodock.program.relations.keys import KEYS, Key
from iodock.program.store import Store
from iodock.shared.answer import Column
from iodock.shared.errors import RequestError, meant

_OPERATION = (
    "open, read, write, seek, stat or sync; 'all metadata' has the time of opens, closes, seeks, stats"
)
_INTERFACE = "posix, stdio, mpi-io, hdf5, pnetcdf, or objects inside files"
_SQL = {
    **{
        name: name for name in ("family", "class", "interface", "file", "pattern", "folder", "ending", "kind")
    },
    **{name: name for name in ("fs_type", "pid", "rank", "host")},
    "mount": "mount_point",
}
_OF_OPERATIONS = ("family", "class")
NO_FILE = ("family", "class", "interface", "pid", "rank", "host", "file")
"""If a row is grouped by one of these keys, the answer does not show the number of files that it
represents."""


def key_columns(names: tuple[str, ...]) -> tuple[Column, ...]:
    """Returns the columns that an answer has for these keys."""
    docs = {"family": _OPERATION, "interface": _INTERFACE, "rank": "MPI rank, empty for all ranks together"}
    return tuple(Column(name, KEYS[name].type, None, "key", docs.get(name, KEYS[name].doc)) for name in names)


def sql_of(name: str) -> str:
    """Returns the SQL for the key. The query must use the alias `o` for the table of operations."""
    return f"o.{_SQL[name]}"


def found_keys(names: tuple[str, ...], store: Store) -> tuple[str, ...]:
    """Returns the requested keys and the interface. The interface is always a key: the same bytes pass
    through several interfaces, and a sum over interfaces would count them several times. Raises RequestError
    for an unknown key, and for keys that counters do not have."""
    for name in names:
        if name not in KEYS:
            raise RequestError(f"no such key: {name}", meant(name, KEYS, f"keys: {', '.join(_SQL)}"))
        if name not in _SQL:
            more = store.manifest.calls_hint
            raise RequestError(_untold(KEYS[name]), f"keys: {', '.join(_SQL)}; for others {more}")
    return tuple(dict.fromkeys((*names, "interface")))


def _untold(key: Key) -> str:
    if key.name == "call":
        return "counters do not have system calls, only operations: --by family"
    return f"counters don't tell {key.noun}"


def noun(keys: tuple[str, ...]) -> str:
    """Returns the plural noun for rows with these keys."""
    return KEYS[keys[0]].noun if len(keys) == 1 else "rows"
