"""A store's Parquet files, as the engine reads them: under names it understands, whole, and as many rows as
the manifest says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import duckdb

from iodock.errors import StoreError
from iodock.store.schema import FOLDS, TABLES, StoreTable

AGAIN = "import or record again"


class StoredTables:
    """The files of one store. Their names are given to the engine as it takes them: absolute, and UTF-8."""

    def __init__(self, folder: Path, connection: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        """CONNECTION: of the thread that asks."""
        self.folder = folder
        self._connection = connection
        self._descriptor: int | None = None
        self._viewed: dict[str, list[Path]] = {}
        # A relative name may look like something else to the engine: ~, http:, ...
        self._plain = Path(os.path.abspath(folder))  # noqa: PTH100 (links stay as they are)
        if not _is_plain(str(self._plain)):
            self._descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            self._plain = Path(f"/proc/self/fd/{self._descriptor}")

    def close(self) -> None:
        """The files can't be read any more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def files(self) -> list[str]:
        """All that the engine has to open, by the names that it gets."""
        return [str(path) for table in (*TABLES, *FOLDS) for path in self._paths(table)]

    def view(self, table: StoreTable, rows: Mapping[str, int]) -> str | None:
        """A SELECT of the whole table, with null for columns that it lacks; None for one made at import that
        is not there. ROWS: of each table, as the manifest says. Raises StoreError for files that are missing,
        damaged, or of other rows."""
        paths = self._viewed[table.name] = self._paths(table)
        if not paths and table in FOLDS:
            return None
        if not paths and rows.get("events" if table.name in ("calls", "errnos") else table.name):
            hint = f"the store was copied or deleted in part: {AGAIN}"
            raise StoreError(f"{self.folder / table.files}: is missing", hint)
        try:
            select = self._select(table, paths)
            self._check_rows(table, paths, rows.get(table.name))
        except duckdb.Error as error:
            where = self.damaged([table]) or self.folder / table.files
            message = f"{where}: can't be read: {self.named(first_line(error))}"
            raise StoreError(message, f"the file is damaged: {AGAIN}") from error
        return select

    def viewed(self, table: StoreTable) -> list[Path]:
        """The files that its view reads, in order."""
        return self._viewed[table.name]

    def _paths(self, table: StoreTable) -> list[Path]:
        paths = sorted(self._plain.glob(table.files))
        home = os.path.realpath(self._plain)
        for path in paths:
            if not os.path.realpath(path).startswith(f"{home}/"):
                where = self.folder / path.relative_to(self._plain)
                raise StoreError(f"{where}: is a link out of the store", "put the file itself there")
        return paths

    def damaged(self, tables: Sequence[StoreTable]) -> Path | None:
        """The first file that can't be read to its end. Goes through all that is stored."""
        # Small ones first.
        for table in sorted(tables, key=lambda one: "/" in one.files):
            for path in self._paths(table):
                try:
                    self._connection().execute(f"SELECT max(hash(COLUMNS(*))) FROM {_source([path])}")
                except duckdb.InterruptException:
                    return None
                except duckdb.Error:
                    return self.folder / path.relative_to(self._plain)
        return None

    def named(self, text: str) -> str:
        """A message of the engine with names of files as the user gave them."""
        return text.replace(str(self._plain), str(self.folder))

    def _select(self, table: StoreTable, paths: Sequence[Path]) -> str:
        wanted = {column.name: column.type for column in table.columns}
        if not paths:
            nulls = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in wanted.items())
            return f"SELECT {nulls} WHERE false"
        source = _source(paths)
        there = {row[0] for row in self._connection().execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
        missing = [f'NULL::{kind} AS "{name}"' for name, kind in wanted.items() if name not in there]
        return f"SELECT {', '.join(['*', *missing])} FROM {source}"

    def _check_rows(self, table: StoreTable, paths: Sequence[Path], expected: int | None) -> None:
        """Parts that were lost, doubled or exchanged would give wrong numbers, and nobody would know."""
        if expected is None or not paths:
            return
        counted = f"SELECT sum(num_rows) FROM parquet_file_metadata({_list(paths)})"
        found = self._connection().execute(counted).fetchall()[0][0]
        if found != expected:
            where = self.folder / table.files
            message = f"{where}: holds {found:,} rows, the manifest says {expected:,} ({table.name})"
            raise StoreError(message, f"a part is missing, or does not belong here: {AGAIN}")


def _is_plain(path: str) -> bool:
    """Whether the engine takes the name as it is: UTF-8, and without what would be a wildcard."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return not set("*?[") & set(path)


def first_line(error: Exception) -> str:
    """An engine's message without the query that it quotes."""
    return " ".join(str(error).strip().split("\n")[0].split())


def quoted(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def _list(paths: Sequence[Path]) -> str:
    return f"[{', '.join(quoted(_literal_path(path)) for path in paths)}]"


def _source(paths: Sequence[Path]) -> str:
    union = ", union_by_name=true" if len(paths) > 1 else ""
    # `year=2026` in a store's name is no column.
    return f"read_parquet({_list(paths)}{union}, hive_partitioning=false)"


def _literal_path(path: Path) -> str:
    """The path with what would be a wildcard bracketed."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))
