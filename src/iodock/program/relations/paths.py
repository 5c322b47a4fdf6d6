"""Provides call paths for exports to profilers: frames, paths that consist of frames, and the weights of
paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.relations.filters import Filters
from iodock.program.relations.flames import PATHS, Frame, frames_of, keep_flames
from iodock.program.relations.selection import select
from iodock.program.store import Store
from iodock.shared.errors import RequestError

WEIGHTS = ("time", "bytes", "calls")
_COLUMNS = {"time": "time_ns", "bytes": "bytes", "calls": "count"}


@dataclass(frozen=True, slots=True)
class Path:
    """Holds the numbers of a path's frames, outermost first, and the sums of the calls with this path."""

    frames: tuple[int, ...]
    time_ns: int | None
    bytes: int | None
    calls: int

    def weight(self, name: str) -> int:
        """Returns the path's weight NAME, which is one of WEIGHTS. Returns 0 if it is unknown."""
        return (self.calls if name == "calls" else self.bytes if name == "bytes" else self.time_ns) or 0


@dataclass(frozen=True, slots=True)
class Paths:
    """Iterates over the paths of a store's calls. Each iteration reads the store again, so that the paths
    need not fit into memory."""

    store: Store
    frames: dict[int, Frame]
    weights: tuple[str, ...]
    """Names of the weights, the chosen one first. Weights that the store does not know are left out."""
    notes: tuple[str, ...]

    def __iter__(self) -> Iterator[Path]:
        rows = self.store.reader(f"SELECT path, time_ns, bytes, count FROM {PATHS} ORDER BY path")
        for batch in rows:
            for row in batch.to_pylist():
                yield Path(tuple(row["path"]), row["time_ns"], row["bytes"], row["count"])


def paths_of(store: Store, filters: Filters, weight: str | None) -> Paths:
    """Returns the paths of the chosen calls. Raises RequestError if the store does not have the requested
    weight."""
    selection = select(store, filters)
    keep_flames(store, selection)
    (known,) = store.rows(
        f"SELECT {', '.join(f'sum({one}) AS {one}' for one in _COLUMNS.values())} FROM {PATHS}"
    )
    there = tuple(name for name in WEIGHTS if known[_COLUMNS[name]])
    if weight is not None and weight not in there and known["count"]:
        lacks = (
            f"{store.name}: does not contain the durations of the chosen calls"
            if weight == "time"
            else f"{store.name}: the chosen calls transfer no bytes"
        )
        raise RequestError(lacks, "--weigh calls")
    chosen = (weight or (there or WEIGHTS)[0],)
    return Paths(
        store, frames_of(store), (*chosen, *(one for one in there if one not in chosen)), selection.notes
    )
