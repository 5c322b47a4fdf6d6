"""Opens a store, reads its manifest, and runs SQL on its tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any

from iodock import _native
from iodock.program.store.engine import Engine
from iodock.program.store.folds import EventFold
from iodock.program.store.manifest import Manifest, read_manifest
from iodock.program.store.schema import TABLES
from iodock.shared.errors import IodockError, RequestError, StoreError

if TYPE_CHECKING:
    import pyarrow as pa

Progress = Callable[[int, int], None]


class Store:
    """Represents a folder of Parquet tables with a manifest. `Store.open` opens it, and nothing changes
    its tables."""

    def __init__(self, path: Path, manifest: Manifest, shadow: TemporaryDirectory[str] | None = None) -> None:
        self.path = path
        self.manifest = manifest
        self._unsafe: Store | None = None
        self._is_unsafe = False
        self._engine: Engine | None = None
        # The temporary folder that has the tables, or None if they are in the store's own folder.
        self._shadow = shadow

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Store:
        """Opens a store. If its recorder crashed, iodock first makes the tables, in a temporary folder if
        the store's own has no space for them. If its recording is in progress, iodock reads the data
        flushed so far into a temporary folder. Raises StoreError."""
        folder = Path(path)
        manifest = read_manifest(folder)
        if not _is_unfinished(folder, manifest):
            return cls(folder, manifest)
        shadow = _in_progress(folder) or _finish_somewhere(folder)
        return cls(folder, read_manifest(_tables_of(folder, shadow)), shadow)

    @staticmethod
    def is_unfinished(path: str | os.PathLike[str]) -> bool:
        """Returns whether the store is incomplete and has a journal, so that `open` would have to make its
        tables. Raises StoreError."""
        return _is_unfinished(Path(path), read_manifest(Path(path)))

    @property
    def tables(self) -> Path:
        """Returns the folder of the tables. It differs from the store's own folder if the tables are in a
        temporary one."""
        return _tables_of(self.path, self._shadow)

    @property
    def engine(self) -> Engine:
        """Returns the SQL engine, and starts it on first use."""
        if self._engine is None:
            self._engine = Engine(self.tables, self.manifest.rows, self.manifest.checksums, self._is_unsafe)
        return self._engine

    @property
    def unsafe(self) -> Store:
        """Returns the same store with an engine that lets a user's query do anything, such as read and
        write other files, or load extensions. `close` of this store closes it, too."""
        if self._unsafe is None:
            self._unsafe = Store(self.path, self.manifest, self._shadow)
            self._unsafe._is_unsafe = True
        return self._unsafe

    def check(self) -> None:
        """Raises StoreError if any of the store's files differs from what was written."""
        self.engine.check()

    def need_calls(self) -> None:
        """Raises RequestError if the store has only counts for each kind of call, or profiles (counters by
        file), instead of individual calls."""
        self.need_no_profiles()
        if self.manifest.counts_only:
            raise RequestError(
                f"{self.name}: holds counts by call only (strace -c): no files, sizes, order or processes",
                "see them with iodock show summary; for more record the program, or import a log of calls",
            )

    def need_no_profiles(self) -> None:
        """Raises RequestError if the store has profiles (counters by file) instead of calls."""
        if self.manifest.profiles_only:
            raise RequestError(
                f"{self.name}: contains counters by file, and no calls. This command needs calls, so it "
                "can't report on the run's I/O",
                "iodock show summary, files, sizes, processes, overview and profiles, and iodock report "
                f"work with counters; for other analyses {self.manifest.calls_hint}",
            )

    def need_profiles(self) -> None:
        """Raises RequestError if the store has no profiles (counters by file)."""
        if not self.manifest.profiles_only and not self.manifest.is_partly_counted:
            raise RequestError(
                f"{self.name}: contains no profiles, which replace calls in stores of Darshan's logs "
                "and of iodock record --light",
                "iodock show summary and iodock show files show calls",
            )

    @property
    def name(self) -> str:
        """Returns the name of the store's folder."""
        return self.path.resolve().name

    def table(self, sql: str) -> pa.Table:
        """Returns the whole result of a SELECT as an Arrow table."""
        return self.engine.table(sql)

    def reader(self, sql: str) -> pa.RecordBatchReader:
        """Returns the result of a SELECT in batches."""
        return self.engine.reader(sql)

    def json_reader(self, sql: str, names: Sequence[str]) -> pa.RecordBatchReader:
        """Returns the result of a SELECT as one column of text: each row is a JSON object after a comma
        and a line break."""
        return self.engine.json_reader(sql, names)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Returns a small result of a SELECT as one dictionary per row."""
        return self.engine.rows(sql)

    def has_fold(self, name: str) -> bool:
        """Returns whether the store has a complete and undamaged copy of this table, which import computes
        from events (schema.FOLDS)."""
        return self.engine.has_fold(name)

    def keep(self, name: str, sql: str) -> None:
        """Stores the result of a SELECT as a table named NAME, for later SELECTs on this store."""
        self.engine.keep(name, sql)

    def fold(self, name: str, fold: EventFold) -> bool:
        """Computes FOLD over all events and stores the result as a table named NAME, for later SELECTs.
        Returns False if the caller must compute it with SQL."""
        return self.engine.fold(name, fold)

    def hold_small(self, most_rows: int = 200_000) -> None:
        """Loads each small table into memory when a query first names it, except the tables of events,
        samples, page faults and cached pages. Many queries then run faster."""
        for table in TABLES:
            if (
                table.name not in ("events", "samples", "faults", "pages")
                and self.rows_of(table.name) <= most_rows
            ):
                self.engine.hold(table.name)

    def rows_of(self, table: str) -> int:
        """Returns the number of rows of a table."""
        found = self.manifest.rows.get(table)
        if found is None:
            found = (
                int(self.rows(f'SELECT count(*) AS n FROM "{table}"')[0]["n"])
                if self.engine.has(table)
                else 0
            )
        return found

    def close(self) -> None:
        """Frees the engine, and deletes the temporary folder of the tables if there is one."""
        if self._unsafe is not None:
            self._unsafe.close()
            self._unsafe = None
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        if self._shadow is not None:
            self._shadow.cleanup()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_unfinished(folder: Path, manifest: Manifest) -> bool:
    return manifest.state != "complete" and _has_journal(folder)


def _has_journal(folder: Path) -> bool:
    return any((folder / "journal").glob("*.journal"))


def _tables_of(folder: Path, shadow: TemporaryDirectory[str] | None) -> Path:
    if shadow is None:
        return folder
    inside = Path(shadow.name) / _SO_FAR
    return inside if inside.is_dir() else Path(shadow.name)


_SO_FAR = "so-far"
"""Name of the temporary store with the data of a recording in progress."""


def _in_progress(folder: Path) -> TemporaryDirectory[str] | None:
    """Makes a temporary store from the data that a recording in progress has flushed so far. Returns None
    if no recording is in progress."""
    from iodock.program import capture

    shadow = TemporaryDirectory(prefix="iodock-", suffix=".iodock")
    try:
        if capture.read_in_progress(folder, Path(shadow.name) / _SO_FAR):
            return shadow
    except (IodockError, OSError) as error:
        # If the recording has ended since the check above, its journal is gone. The error is then ignored.
        if _native.is_in_progress(folder):
            shadow.cleanup()
            raise StoreError(str(error), getattr(error, "hint", None)) from error
    shadow.cleanup()
    return None


def _finish_somewhere(folder: Path) -> TemporaryDirectory[str] | None:
    """Makes the tables of a store that has only a journal. If the store's own folder can't hold them,
    makes them in a temporary store and returns it."""
    from iodock.program.store.elsewhere import lacks_room, shadow_of

    try:
        finish(folder)
        return None
    except StoreError as error:
        if not lacks_room(folder):
            raise
        hint = "free space, or name a folder with free space: TMPDIR=DIR"
        try:
            shadow = shadow_of(folder)
            finish(Path(shadow.name))
        except OSError:
            raise StoreError(str(error), hint) from error
        return shadow


def finish(folder: Path) -> None:
    """Makes tables from the journal that a recorder left. Raises StoreError."""
    from iodock.program import capture

    try:
        capture.finish(folder)
    except IodockError as error:
        raise StoreError(str(error), error.hint) from error
