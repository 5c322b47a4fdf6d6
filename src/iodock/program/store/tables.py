"""Passes a store's Parquet files to the engine under names that the engine accepts. Checks that the files
are complete and have the number of rows that the manifest states."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from iodock import _native
from iodock.program.store.schema import FOLDS, TABLES, StoreTable
from iodock.program.store.seen import VIEWS
from iodock.shared.engine import checksums
from iodock.shared.engine.bare import bare
from iodock.shared.engine.sql import quoted
from iodock.shared.errors import StoreError

AGAIN = "import or record again"


class StoredTables:
    """Represents the files of one store. The engine gets their absolute names in UTF-8."""

    def __init__(
        self,
        folder: Path,
        checksums: Mapping[str, str],
        connection: Callable[[], bare.DuckDBPyConnection],
    ) -> None:
        """CHECKSUMS has the checksum of each file by its name in the store, from the manifest. CONNECTION
        is a function that returns the connection of the calling thread."""
        self._checksums = checksums
        self._checked: set[str] = set()
        self.folder = folder
        self._connection = connection
        self._descriptor: int | None = None
        self._found: dict[str, list[Path]] = {}
        self._viewed: dict[str, list[Path]] = {}
        self._shapes: dict[Path, tuple[int, list[str]]] = {}
        # The engine could interpret a relative name in its own way, for example one that begins with ~ or
        # http:.
        self._plain = Path(os.path.abspath(folder))  # noqa: PTH100 (links stay as they are)
        if not _is_plain(str(self._plain)):
            self._descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            self._plain = Path(f"/proc/self/fd/{self._descriptor}")

    def close(self) -> None:
        """Closes the folder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def files(self) -> list[str]:
        """Returns all files that the engine has to open, under the names that the engine uses."""
        return [str(path) for table in (*TABLES, *FOLDS) for path in self._paths(table)]

    def check_whole(self, rows: Mapping[str, int]) -> None:
        """Raises StoreError if files of a table are missing or damaged, or have another number of rows
        than ROWS states. ROWS comes from the manifest."""
        for table in TABLES:
            self._check_files(table, rows)
        for table in FOLDS:
            # iodock works without these tables, so a damaged one counts as missing.
            with contextlib.suppress(StoreError):
                self._check_files(table, rows)
        for table in (*TABLES, *FOLDS):
            if not self._viewed.get(table.name):
                continue
            try:
                self._check_rows(table, rows.get(table.name))
            except StoreError:
                if table not in FOLDS:
                    raise
                del self._viewed[table.name]

    def _check_files(self, table: StoreTable, rows: Mapping[str, int]) -> None:
        paths = self._paths(table)
        self._check_names(table, paths)
        if not paths and rows.get("events" if table.name in ("calls", "errnos") else table.name):
            hint = f"the store was copied or deleted in part: {AGAIN}"
            raise StoreError(f"{self.folder / table.files}: is missing", hint)
        self._viewed[table.name] = paths

    def view(self, table: StoreTable) -> str | None:
        """Returns SQL that selects the whole table, with null for missing columns. Returns None if the
        table is missing and is one that import computes from events. Raises StoreError."""
        paths = self._viewed.get(table.name, [])
        if not paths and table in FOLDS:
            return None
        try:
            return self._select(table, paths)
        except bare.Error as error:
            raise self._unreadable(table, error) from error

    def _unreadable(self, table: StoreTable, error: bare.Error) -> StoreError:
        where = self.damaged([table]) or self.folder / table.files
        message = f"{where}: can't be read: {self.named(first_line(error))}"
        return StoreError(message, f"the file is damaged: {AGAIN}")

    def viewed(self, table: StoreTable) -> list[Path]:
        """Returns the files that the table's view reads, in order."""
        return self._viewed[table.name]

    def has(self, name: str) -> bool:
        """Returns whether the table has files."""
        return bool(self._viewed.get(name))

    def _paths(self, table: StoreTable) -> list[Path]:
        """Returns the table's files. The folder is searched only once, so files that are added later are
        ignored."""
        if table.name not in self._found:
            self._found[table.name] = self._look_for(table)
        return self._found[table.name]

    def _look_for(self, table: StoreTable) -> list[Path]:
        paths = sorted(self._plain.glob(table.files))
        home = os.path.realpath(self._plain)
        for path in paths:
            if not os.path.realpath(path).startswith(f"{home}/"):
                where = self._shown(path)
                raise StoreError(
                    f"{where}: is a link out of the store", "replace the link with the file itself"
                )
        return paths

    def check(self, tables: Iterable[StoreTable]) -> None:
        """Raises StoreError if a file of these tables differs from what was written."""
        for table in tables:
            if self._checksums and table.name not in self._checked:
                for path in self._paths(table):
                    if not self._is_as_written(path):
                        raise StoreError(f"{self._shown(path)}: {checksums.DIFFERS}", checksums.AGAIN)
                self._checked.add(table.name)

    def _is_as_written(self, path: Path) -> bool:
        return checksums.is_as_written(path, self._checksums.get(self._name(path), ""))

    def _name(self, path: Path) -> str:
        """Returns the name of a file within the store."""
        return path.relative_to(self._plain).as_posix()

    def _shown(self, path: Path) -> Path:
        """Returns the path of a file, below the store's folder as the user wrote it."""
        return self.folder / path.relative_to(self._plain)

    def _check_names(self, table: StoreTable, paths: Sequence[Path]) -> None:
        """Raises StoreError if files are missing, or if files were added after the store was written."""
        if not self._checksums:
            return
        written = {name for name in self._checksums if fnmatchcase(name, table.files)}
        found = {self._name(path) for path in paths}
        for name in sorted(written - found):
            hint = f"the store was copied or deleted in part: {checksums.AGAIN}"
            raise StoreError(f"{self.folder / name}: is missing", hint)
        for name in sorted(found - written):
            raise StoreError(f"{self.folder / name}: is not part of this store", f"remove it, or {AGAIN}")

    def damaged(self, tables: Sequence[StoreTable]) -> Path | None:
        """Returns the first file that is damaged; None if there is none. Reads all data for this."""
        # Tables in a single file come first, because they are small and take less time.
        for table in sorted(tables, key=lambda one: "/" in one.files):
            for path in self._paths(table):
                if self._checksums:
                    if self._is_as_written(path):
                        continue
                    return self._shown(path)
                try:
                    self._connection().execute(f"SELECT max(hash(COLUMNS(*))) FROM {_source([path])}")
                except bare.InterruptException:
                    return None
                except bare.Error:
                    return self._shown(path)
        return None

    def named(self, text: str) -> str:
        """Replaces the engine's name of the store's folder, in a message of the engine, by the one that
        the user wrote."""
        return text.replace(str(self._plain), str(self.folder))

    def _select(self, table: StoreTable, paths: Sequence[Path]) -> str:
        wanted = {column.name: column.type for column in table.columns}
        if not paths:
            nulls = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in wanted.items())
            return f"SELECT {nulls} WHERE false"
        source = _source(paths)
        there = {name for path in paths for name in self._shape(path)[1]}
        missing = [f'NULL::{kind} AS "{name}"' for name, kind in wanted.items() if name not in there]
        return f"SELECT {', '.join(['*', *missing])} FROM {source}"

    def _shape(self, path: Path) -> tuple[int, list[str]]:
        """Returns the number of rows and the columns of a file, without a query. Raises bare.Error."""
        if path not in self._shapes:
            self._shapes[path] = _native.table_shape(path) or self._asked_shape(path)
        return self._shapes[path]

    def _asked_shape(self, path: Path) -> tuple[int, list[str]]:
        """Returns the number of rows and the columns by a query. If the file is damaged, the engine's
        error says how."""
        ask = self._connection().execute
        rows = ask(f"SELECT sum(num_rows) FROM parquet_file_metadata({_list([path])})").fetchall()[0][0]
        return rows, [row[0] for row in ask(f"DESCRIBE SELECT * FROM {_source([path])}").fetchall()]

    def _check_rows(self, table: StoreTable, expected: int | None) -> None:
        """Raises StoreError if the number of rows differs from the expected one. Otherwise, missing,
        duplicated or swapped parts would give wrong results without any error."""
        try:
            found = sum(self._shape(path)[0] for path in self._viewed[table.name])
        except bare.Error as error:
            raise self._unreadable(table, error) from error
        if expected is not None and found != expected:
            where = self.folder / table.files
            message = (
                f"{where}: contains {found:,} rows, but {expected:,} according to the manifest ({table.name})"
            )
            raise StoreError(message, f"a part is missing, or does not belong to this store: {AGAIN}")


_WORD = re.compile(r"\w+")


def named_in(sql: str) -> list[StoreTable]:
    """Returns the tables that a query may use, because it names them or a view that uses them."""
    words = set(_WORD.findall(sql.lower()))
    return [table for table, names in _naming().items() if not names.isdisjoint(words)]


@cache
def _naming() -> dict[StoreTable, frozenset[str]]:
    read = {view.name: set(_WORD.findall(view.select.lower())) for view in VIEWS}
    return {
        table: frozenset((table.name, *(name for name, words in read.items() if table.name in words)))
        for table in (*TABLES, *FOLDS)
    }


def _is_plain(path: str) -> bool:
    """Returns whether the engine accepts the name unchanged. It must be UTF-8, and without wildcards."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return not set("*?[") & set(path)


def first_line(error: Exception) -> str:
    """Returns the first line of an engine's message, without the query that it quotes after that."""
    return " ".join(str(error).strip().split("\n")[0].split())


def _list(paths: Sequence[Path]) -> str:
    return f"[{', '.join(quoted(_literal_path(path)) for path in paths)}]"


def _source(paths: Sequence[Path]) -> str:
    union = ", union_by_name=true" if len(paths) > 1 else ""
    # Without this setting, `year=2026` in a store's path would become a column.
    return f"read_parquet({_list(paths)}{union}, hive_partitioning=false)"


def _literal_path(path: Path) -> str:
    """Returns the path with each wildcard in brackets, so that the engine does not expand it."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))
