"""Groups and sums events outside the SQL engine, in one pass over the columns that are needed
(crates/iodock-fold)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iodock import _native

if TYPE_CHECKING:
    # The function that returns an Arrow table imports Arrow, because this takes long and small folds don't
    # need it.
    import pyarrow as pa

_TYPES = {
    "int64": ("q", "BIGINT"),
    "uint32": ("I", "UINTEGER"),
    "uint16": ("H", "USMALLINT"),
    "uint8": ("B", "UTINYINT"),
    "int8": ("b", "TINYINT"),
    "double": ("d", "DOUBLE"),
}
"""Maps Arrow's name of a type to Python's code for it and the engine's name."""


@dataclass(frozen=True, slots=True)
class EventFold:
    """Describes a derived table that can be computed without the SQL engine."""

    name: str
    """Name of the fold: `uses` or `transfers`."""
    groups: str
    """A SELECT over the table `folding.groups`, in which the same key may occur several times."""
    places: str | None = None
    """A SELECT of `file_id place` (UINTEGER, not null), if files are folded by place; None: they are not."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Holds rows of a fold, column by column: name, type, values and validity bits, in the memory layout
    of Arrow."""

    rows: int
    columns: Sequence[tuple[str, str, bytes, bytes | None]]

    @property
    def select(self) -> str:
        """Returns SQL that selects the rows. It has a parameter for each entry of `values`."""
        names = [f'unnest($c{at}::{_TYPES[kind][1]}[]) AS "{name}"' for at, (name, kind, *_) in self._all]
        return f"SELECT {', '.join(names)}"

    @property
    def values(self) -> dict[str, list[Any]]:
        """Returns the columns as lists of Python's numbers."""
        return {f"c{at}": _listed(_TYPES[kind][0], of, valid) for at, (_, kind, of, valid) in self._all}

    @property
    def arrow(self) -> pa.Table:
        """Returns the rows as an Arrow table that uses the same memory."""
        import pyarrow as pa

        return pa.table(
            {
                name: pa.Array.from_buffers(
                    pa.type_for_alias(kind),
                    self.rows,
                    [None if valid is None else pa.py_buffer(valid), pa.py_buffer(values)],
                )
                for name, kind, values, valid in self.columns
            }
        )

    @property
    def _all(self) -> Iterable[tuple[int, tuple[str, str, bytes, bytes | None]]]:
        return enumerate(self.columns)


def _listed(code: str, values: bytes, valid: bytes | None) -> list[Any]:
    numbers: list[Any] = array(code, values).tolist()
    if valid is None:
        return numbers
    return [one if valid[at >> 3] >> (at & 7) & 1 else None for at, one in enumerate(numbers)]


Places = tuple[bytes, bytes]
"""Number and place of each file, as unsigned 32-bit integers in memory."""


def places_of(rows: Iterable[tuple[int, int]]) -> Places:
    """Returns the columns of rows of `file_id` and `place`, each as the bytes of unsigned 32-bit integers."""
    files, places = array("I"), array("I")
    for file, place in rows:
        files.append(file)
        places.append(place)
    return files.tobytes(), places.tobytes()


def places_in(rows: pa.Table) -> Places:
    """Returns the columns `file_id` and `place` of a table, each as the bytes of unsigned 32-bit integers.
    The columns must not contain nulls."""
    return _numbers(rows["file_id"]), _numbers(rows["place"])


class Folding:
    """Makes one pass over the events in several files. Another thread can stop it."""

    def __init__(self, paths: Sequence[Path], name: str, places: Places | None) -> None:
        """Starts a pass over the files in PATHS. Raises NativeError if the fold is not possible."""
        self._folding = _native.EventFolding(list(paths), name, places)
        self.stopped = False

    @property
    def rows(self) -> int:
        """Returns the total number of events."""
        return self._folding.rows

    def tables(self) -> Iterator[Groups]:
        """Yields the groups in parts, or nothing if there are no groups. Raises NativeError,
        KeyboardInterrupt."""
        while table := self._folding.next_table():
            yield Groups(*table)

    def stop(self) -> None:
        """Stops the pass: the call that computes the current part raises NativeError."""
        self.stopped = True
        self._folding.cancel()


def _numbers(column: pa.ChunkedArray) -> bytes:
    """Returns the bytes of a column of unsigned 32-bit integers, which has no nulls."""
    return b"".join(_bytes(chunk) for chunk in column.chunks)


def _bytes(chunk: pa.Array) -> bytes:
    made: bytes = chunk.buffers()[1].slice(4 * chunk.offset, 4 * len(chunk)).to_pybytes()
    return made
