"""Reads a monitor store: the list of its valid files, and SQL queries on them.

docs/explanation/monitor-store.md describes tables and columns. Only the collector's intake writes to the
store.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from iodock import _native
from iodock.shared.bounded import files
from iodock.shared.bounded.documents import from_json
from iodock.shared.bounded.limits import CATALOGUE
from iodock.shared.engine import checksums
from iodock.shared.engine.connection import connected
from iodock.shared.engine.need import EVERYTHING, Need
from iodock.shared.engine.sql import quoted
from iodock.shared.errors import QueryError, StoreError

RESOLUTIONS = ("fine", "minute", "ten_minutes")
"""Names of the resolutions, from the finest to the coarsest."""
TABLES = ("job_io", "targets", "losses", "events", "job_names")
MOMENTS = ("losses", "events", "job_names")
"""Tables whose rows have a time `ts` instead of an interval, and are not summed."""
FORMAT = "iodock monitor store"
VERSION = 1
_COLUMNS_OF_PLACE = "begin_ts BIGINT, end_ts BIGINT, host TEXT, source TEXT, file_system TEXT, target TEXT"


@dataclass(frozen=True)
class StoredFile:
    """One file with rows of a table. Times are in ns since the epoch."""

    name: str
    """Path below the store's folder."""
    begin: int
    end: int
    rows: int
    rolled: bool
    """Whether the rows are also contained as sums in the next coarser resolution."""
    checksum: str | None = None
    """Checksum of the bytes that were written; None: the file was written without a checksum."""


@dataclass(frozen=True)
class Catalogue:
    """The list of the store's valid files, by table and resolution."""

    files: dict[tuple[str, str], tuple[StoredFile, ...]]
    spools: dict[str, frozenset[str]]
    """For each machine, the spools from which data was received."""

    def of(self, table: str, resolution: str) -> tuple[StoredFile, ...]:
        """Returns the files of a table in one resolution."""
        return self.files.get((table, resolution), ())

    def chosen(self, table: str, resolution: str, begin: int, end: int) -> list[StoredFile]:
        """Returns files that together contain every row from BEGIN to END exactly once. Finer files than the
        resolution are used only if they are not summed into coarser ones yet."""
        coarsest = RESOLUTIONS.index(resolution)
        chosen = list(self.of(table, resolution))
        for finer in RESOLUTIONS[:coarsest]:
            chosen += [file for file in self.of(table, finer) if not file.rolled]
        return [file for file in chosen if file.begin <= end and file.end >= begin]


class MonitorTables(Protocol):
    """The interface for queries. `MonitorStore` implements it, and so do other sources that provide the same
    tables."""

    @property
    def catalogue(self) -> Catalogue | None:
        """Returns the catalogue, or None if this kind of store has none."""

    @property
    def is_empty(self) -> bool:
        """Returns whether no data has ever been pushed."""

    @property
    def limits(self) -> Sequence[str]:
        """Returns sentences, to be translated, about data that the store can't provide. A `MonitorStore` has
        none."""

    def table(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        *,
        begin: int,
        end: int,
        resolution: str,
        need: Need = EVERYTHING,
    ) -> pa.Table:
        """Returns the result of a SELECT. Each of TABLES contains the rows that overlap the time from BEGIN
        to END (ns since the epoch). A store may leave out rows that are not in NEED. Raises StoreError,
        QueryError."""


class MonitorStore:
    """A monitor store for reading. Queries may run while the collector writes."""

    limits: Sequence[str] = ()
    shows_job_names = True
    """Whether the names of jobs may be shown. A site can disable this."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: tuple[tuple[int, int], Catalogue] | None = None
        self._damaged: set[str] = set()
        self.on_asked: Callable[[str, float], None] = lambda resolution, seconds: None
        """Is called with the duration of each query and its resolution."""

    @property
    def catalogue(self) -> Catalogue:
        """Returns the current catalogue, which is read again if it has changed. Raises StoreError."""
        path = self.folder / "catalogue.json"
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            if self._read is None or self._read[0] != stamp:
                self._read = (stamp, catalogue_of(files.content(path, CATALOGUE, StoreError), path))
        except FileNotFoundError:
            raise StoreError(
                f"{self.folder}: not a monitor store", "create one with iodock monitor serve --store DIR"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path}: not the catalogue of a monitor store: {error}") from error
        return self._read[1]

    @property
    def is_empty(self) -> bool:
        """Returns whether no data has ever been pushed. Raises StoreError."""
        return not self.catalogue.files

    def table(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        *,
        begin: int,
        end: int,
        resolution: str,
        need: Need = EVERYTHING,
    ) -> pa.Table:
        """Runs a query as described in MonitorTables. NEED is ignored, because the query reads the files
        directly and nothing has to be fetched."""
        try:
            return self._ask(sql, parameters, begin, end, resolution)
        except duckdb.IOException:
            # The collector may have replaced a file after the catalogue was read. The catalogue is read again
            # and the query runs once more.
            self._read = None
            try:
                return self._ask(sql, parameters, begin, end, resolution)
            except duckdb.Error as error:
                raise StoreError(f"{self.folder}: {error}") from error
        except duckdb.Error as error:
            raise QueryError(str(error)) from error

    def _ask(self, sql: str, parameters: Sequence[object], begin: int, end: int, resolution: str) -> pa.Table:
        catalogue, begun = self.catalogue, time.perf_counter()
        with self._connection.cursor() as cursor:
            # Only tables that the query uses are opened, because opening hundreds of files takes longer than
            # most queries.
            for table in tables_in(sql):
                level = "fine" if table in MOMENTS else resolution
                chosen = catalogue.chosen(table, level, begin, end)
                cursor.execute(self._view(table, chosen, begin, end))
            found = cursor.sql(sql, params=list(parameters)).to_arrow_table()
        self.on_asked(resolution, time.perf_counter() - begun)
        return found

    def _view(self, table: str, chosen: list[StoredFile], begin: int, end: int) -> str:
        rows = self.rows(chosen) if chosen else nothing(table)
        return f"CREATE TEMP VIEW {table} AS SELECT * FROM ({rows}) WHERE {between(table, begin, end)}"

    def rows(self, chosen: Iterable[StoredFile]) -> str:
        """Returns SQL for all rows of these files, whose checksums are verified first. Raises StoreError if a
        file is damaged."""
        named = list(chosen)
        for file in named:
            if self.is_damaged(file):
                raise self._damage(file.name)
        return self.rows_at(self.folder / file.name for file in named)

    def rows_at(self, paths: Iterable[Path]) -> str:
        """Returns SQL for all rows of files that are not in the catalogue."""
        listed = ", ".join(quoted(str(path)) for path in paths)
        return f"SELECT * FROM read_parquet([{listed}])"

    def is_damaged(self, file: StoredFile) -> bool:
        """Returns whether a file's bytes differ from those that were written. Each file is read only once for
        this."""
        if file.checksum is None or not checksums.is_damaged(self.folder / file.name, file.checksum):
            return False
        self._damaged.add(file.name)
        return True

    def check(self) -> None:
        """Raises StoreError if a valid file was found damaged since this store was opened."""
        every = (file for files in self.catalogue.files.values() for file in files)
        self._damaged = {file.name for file in every if file.name in self._damaged and self.is_damaged(file)}
        for name in sorted(self._damaged):
            raise self._damage(name)

    def _damage(self, name: str) -> StoreError:
        return StoreError(
            f"{self.folder / name}: {checksums.DIFFERS}",
            "copy it again from a backup; or stop the collector, remove the file and start the "
            "collector: it continues without the file's rows",
        )

    def write(
        self, sql: str, path: Path, times: tuple[str, str] = ("begin_ts", "end_ts")
    ) -> tuple[int, int, int] | None:
        """Writes the result of a SELECT to a Parquet file and waits until it is on the disk. TIMES are the
        names of the columns with begin and end. Returns the number of rows, the smallest begin and the
        largest end. If there are no rows, writes no file and returns None. Raises StoreError."""
        target = quoted(str(path))
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(f"COPY ({sql}) TO {target} (FORMAT parquet, COMPRESSION zstd)")
                # DuckDB takes these values from the statistics in the file without reading rows.
                extent = f"SELECT count(*), min({times[0]}), max({times[1]}) FROM read_parquet({target})"
                rows, begin, end = cursor.execute(extent).fetchall()[0]
            if not rows:
                path.unlink()
                return None
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except (duckdb.Error, OSError) as error:
            path.unlink(missing_ok=True)
            raise StoreError(f"{path}: {error}") from error
        return rows, begin, end

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return connected()


def between(table: str, begin: int, end: int) -> str:
    """Returns the SQL condition that a row overlaps the time between two moments, ns since the epoch."""
    return {
        "losses": f"ts BETWEEN {begin} AND {end}",
        "job_names": f"ts BETWEEN {begin} AND {end}",
        "events": f"last_ts >= {begin} AND ts <= {end}",
    }.get(table, f"end_ts > {begin} AND begin_ts <= {end}")


def counters() -> list[str]:
    """Returns the columns of `job_io` with counts."""
    from iodock import _native

    return [*_native.monitor_counters(), "other", "time_us"]


def tables_in(sql: str) -> list[str]:
    """Returns the names of the tables that a SELECT uses. A name followed by / or - is a part of a path and
    does not count."""
    return [name for name in TABLES if re.search(rf"\b{name}\b(?![/-])", sql)]


def nothing(table: str) -> str:
    """Returns a SELECT without rows that has the columns of a table."""
    columns = {
        "job_io": f"{_COLUMNS_OF_PLACE}, job TEXT, user TEXT, session TEXT, command TEXT, known_by TEXT, "
        f"exact BOOLEAN, {', '.join(f'{name} BIGINT' for name in counters())}",
        "targets": f"{_COLUMNS_OF_PLACE}, metric TEXT, unit TEXT, bucket BIGINT, is_level BOOLEAN, "
        "value BIGINT, greatest BIGINT, exact BOOLEAN",
        "losses": "ts BIGINT, host TEXT, name TEXT, source TEXT, target TEXT, count BIGINT, detail TEXT",
        "events": "ts BIGINT, last_ts BIGINT, host TEXT, kind TEXT, severity TEXT, source TEXT, "
        "file_system TEXT, target TEXT, count BIGINT, text TEXT",
        "job_names": "ts BIGINT, host TEXT, job TEXT, user TEXT, name TEXT",
    }[table]
    casts = (column.split() for column in columns.split(", "))
    return "SELECT " + ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in casts) + " WHERE false"


def catalogue_of(document: bytes, path: Path) -> Catalogue:
    """Parses the text of a catalogue. Raises StoreError, ValueError, KeyError, TypeError if it is invalid."""
    if _native.is_whole_document(document) is False:
        raise StoreError(
            f"{path}: {checksums.DIFFERS}", f"restore the store from a backup; {checksums.CHANGED}"
        )
    return _parsed(from_json(document), path)


def _parsed(found: dict[str, Any], path: Path) -> Catalogue:
    """Checks the format and version of a catalogue and converts it. Raises StoreError, KeyError,
    TypeError."""
    if found["format"] != FORMAT:
        raise StoreError(f"{path}: not the manifest of a monitor store but of {found['format']!r}")
    if found["version"] != VERSION:
        raise StoreError(f"{path}: version {found['version']}; this iodock reads {VERSION}")
    files = {
        (table, resolution): tuple(_file(entry) for entry in entries)
        for table, resolutions in found["tables"].items()
        for resolution, entries in resolutions.items()
    }
    spools: defaultdict[str, set[str]] = defaultdict(set)
    for sender in found["applied"]:
        spool, _, host = sender.partition(" ")
        spools[host].add(spool)
    return Catalogue(files, {host: frozenset(known) for host, known in spools.items()})


def _file(entry: dict[str, Any]) -> StoredFile:
    return StoredFile(
        entry["file"], entry["begin"], entry["end"], entry["rows"], entry.get("rolled", False),
        entry.get("file_checksum"),
    )  # fmt: skip
