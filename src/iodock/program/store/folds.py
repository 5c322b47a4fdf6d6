"""Folds events outside the SQL engine, in one pass over the columns that are needed (crates/iodock-fold)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from iodock import _native


@dataclass(frozen=True, slots=True)
class EventFold:
    """A derived table that can be computed without the SQL engine."""

    name: str
    """`uses` or `transfers`."""
    groups: str
    """A SELECT over the table `folding.groups`, which may contain the same key several times."""
    places: str | None = None
    """A SELECT of `file_id place` (UINTEGER, not null), if files are folded by place."""


class Folding:
    """One pass over the events in several files. Another thread may stop it."""

    def __init__(self, paths: Sequence[Path], name: str, places: pa.Table | None) -> None:
        """PLACES: `file_id place`. Raises NativeError if this is not possible."""
        by_file = None
        if places is not None:
            by_file = (_numbers(places["file_id"]), _numbers(places["place"]))
        self._folding = _native.EventFolding(list(paths), name, by_file)
        self.stopped = False

    @property
    def rows(self) -> int:
        """Total number of events."""
        return self._folding.rows

    def tables(self) -> Iterator[pa.Table]:
        """The groups, part by part; no table if there are none. Raises NativeError, KeyboardInterrupt."""
        while table := self._folding.next_table():
            yield _as_arrow(*table)

    def stop(self) -> None:
        """The part in progress is the last, and raises NativeError."""
        self.stopped = True
        self._folding.cancel()


def _numbers(column: pa.ChunkedArray) -> bytes:
    """Unsigned 32-bit integers as a buffer; there are no nulls."""
    return b"".join(_bytes(chunk) for chunk in column.chunks)


def _bytes(chunk: pa.Array) -> bytes:
    made: bytes = chunk.buffers()[1].slice(4 * chunk.offset, 4 * len(chunk)).to_pybytes()
    return made


def _as_arrow(rows: int, columns: Sequence[tuple[str, str, bytes, bytes | None]]) -> pa.Table:
    made = {
        name: pa.Array.from_buffers(
            pa.type_for_alias(kind),
            rows,
            [None if valid is None else pa.py_buffer(valid), pa.py_buffer(values)],
        )
        for name, kind, values, valid in columns
    }
    return pa.table(made)
