"""Runs SQL on the tables of a store. Only this package names the engine, DuckDB."""

from __future__ import annotations

import contextlib
import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from iodock import _native
from iodock.program.store import guard
from iodock.program.store.folds import EventFold, Folding, Groups, Places, places_in, places_of
from iodock.program.store.schema import EVENTS, FOLDS, TABLES, StoreTable
from iodock.program.store.seen import VIEWS
from iodock.program.store.tables import AGAIN, StoredTables, first_line, named_in
from iodock.shared.engine.bare import bare, whole
from iodock.shared.engine.connection import MEMORY_LIMIT, connected
from iodock.shared.engine.sql import quoted
from iodock.shared.errors import QueryError, RequestError, StoreError, suggested

if TYPE_CHECKING:
    # The functions that return Arrow tables import it when they run, because importing takes long.
    import pyarrow as pa

KEPT = "kept"
"""Schema of tables that are stored for later queries. Such a table hides the store's own table of the same
name."""
FOLDING = "folding"
"""Schema of intermediate tables that are folded further."""

# These settings make the engine keep the order of rows. Without them, it swaps the sides of joins. It also
# collects a few rows until it has more, so that later rows overtake them.
KEEP_ORDER = """SET disabled_optimizers = 'join_order,build_side_probe_side';
SET enable_caching_operators = false"""
KEPT_FIRST = f"SET search_path = '{KEPT},main'"
FEW_ROWS = 2_000
"""For fewer rows than this, loading Arrow takes longer than exchanging the rows without it."""
FREE_ORDER = "RESET disabled_optimizers; RESET enable_caching_operators"

# Values in tables made at import fulfil these conditions. A row that does not shows that bytes of its table
# changed.
_CREDIBLE = {
    "stored_durations": "count > 0 AND time_ns >= 0 AND duration_bin BETWEEN 0 AND 64 AND direction <= 2 "
    "AND call_id IN (SELECT id FROM calls)",
    "stored_openings": "count > 0 AND utid IN (SELECT utid FROM processes) "
    "AND call_id IN (SELECT id FROM calls) AND flags IS NOT NULL "
    "AND (file_id IS NULL OR file_id IN (SELECT file_id FROM files)) "
    "AND (errno_id IS NULL OR errno_id IN (SELECT id FROM errnos))",
    "stored_slow_calls": "dur > 0 AND direction <= 2 AND call_id IN (SELECT id FROM calls)",
}


_WRONG_QUERY = (
    bare.ParserException,
    bare.SyntaxException,
    bare.BinderException,
    bare.CatalogException,
    bare.InterruptException,
)
_WRONG_VALUE = (bare.ConversionException, bare.OutOfRangeException)

_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def interrupt_all() -> None:
    """Stops all queries that run in this process. It may be called from any thread."""
    for engine in list(_engines):
        engine.interrupt()


class Engine:
    """Runs SQL in a DuckDB database in memory, which has one view per table of the store. Several threads
    may run queries at the same time."""

    def __init__(
        self,
        folder: Path | None,
        rows: Mapping[str, int] = MappingProxyType({}),
        checksums: Mapping[str, str] = MappingProxyType({}),
        unsafe: bool = False,
    ) -> None:
        """FOLDER is the folder of the store, or None for an engine that has only tables passed to it. ROWS
        has the number of rows of each table, and CHECKSUMS the checksum of each file; both come from the
        manifest. If UNSAFE is true, queries of users may do anything, not only read the store."""
        self._own = threading.local()
        self._connections = [connected()]
        self._own.connection = self._connections[0]
        _engines.add(self)
        self._folds: dict[str, bool] = {}
        self._fold_lock = threading.Lock()
        self._rows = rows
        self._bringing = threading.RLock()
        self._running: list[Folding] = []
        self._stored: StoredTables | None = None
        self._is_unsafe = unsafe
        self._given: set[str] = set()
        self._to_hold: set[str] = set()
        self._giving = threading.RLock()
        if folder is not None:
            self._stored = StoredTables(folder, checksums, lambda: self._connection)
        if not unsafe:
            guard.closed(self._connection, self._stored.files() if self._stored is not None else [])
        if self._stored is not None:
            self._stored.check_whole(rows)
        self._connection.execute(f"CREATE SCHEMA {KEPT}; CREATE SCHEMA {FOLDING}; {KEPT_FIRST}")

    @property
    def _connection(self) -> bare.DuckDBPyConnection:
        """Returns the connection of this thread. Each thread needs its own, because a connection can only
        run one query at a time."""
        if not hasattr(self._own, "connection"):
            connection = self._connections[0].cursor()
            connection.execute(KEPT_FIRST)
            self._connections.append(connection)
            self._own.connection = connection
        found: bare.DuckDBPyConnection = self._own.connection
        return found

    def _name_tables(self, tables: Iterable[StoreTable]) -> None:
        """Makes the tables that a query names available to it. Each is registered when a query first names
        it, because this takes a while. Raises StoreError."""
        with self._giving:
            for table in tables:
                if table.name not in self._given:
                    self._make_view(table)
                if table.name in self._to_hold:
                    self._to_hold.discard(table.name)
                    held = f'CREATE OR REPLACE TABLE {KEPT}."{table.name}" AS FROM main."{table.name}"'
                    self._connection.execute(held)

    def _make_view(self, table: StoreTable) -> None:
        self._given.add(table.name)
        select = None if self._stored is None else self._stored.view(table)
        if select is not None:
            self._connection.execute(f'CREATE VIEW main."{table.name}" AS {select}')

    def _name_views(self, sql: str) -> None:
        for view in VIEWS:
            if view.name not in self._given and view.name in sql.lower():
                with self._giving:
                    self._name_tables(named_in(view.select))
                    self._connection.execute(f"CREATE OR REPLACE VIEW main.{view.name} AS {view.select}")
                    self._given.add(view.name)

    def has(self, table: str) -> bool:
        """Returns whether the store has files for this table."""
        return self._stored is not None and self._stored.has(table)

    def has_fold(self, name: str) -> bool:
        """Returns whether the store has a complete and undamaged copy of this table, which import computes
        from events."""
        with self._fold_lock:
            if name not in self._folds:
                self._folds[name] = self._take_fold(name)
            return self._folds[name]

    def _take_fold(self, name: str) -> bool:
        if not self.has(name):
            return False
        try:
            # The table is small, so the query reads all of it, which detects damage.
            self.keep(name, f'FROM main."{name}"')
            credible = f'SELECT bool_and(coalesce({_CREDIBLE[name]}, false)) FROM "{name}"'
            return self._connection.execute(credible).fetchall()[0][0] is not False
        except (QueryError, bare.Error):
            return False

    def check(self) -> None:
        """Raises StoreError if any file of the store differs from what was written."""
        if self._stored is not None:
            self._stored.check(TABLES)

    def _check_named(self, sql: str) -> None:
        """Raises QueryError if a file of a table that the query names differs from what was written."""
        if self._stored is None:
            return
        tables = [*TABLES, *FOLDS] if self._is_unsafe else named_in(sql)
        try:
            self._stored.check(tables)
            self._name_tables(tables)
            self._name_views(sql)
        except StoreError as error:
            raise QueryError(str(error), error.hint) from error
        except bare.Error as error:
            raise self._query_error(error) from error

    def table(self, sql: str) -> pa.Table:
        """Returns the whole result of a SELECT. Raises QueryError."""
        from iodock.shared.engine.arrow import arrow_table

        self._check_named(sql)
        try:
            return arrow_table(self._connection, sql)
        except bare.Error as error:
            raise self._query_error(error) from error

    def reader(self, sql: str, rows: int = 100_000) -> pa.RecordBatchReader:
        """Returns the result of a SELECT in batches, in the order of the rows of the first table that it
        reads. Raises QueryError."""
        import pyarrow as pa

        self._check_named(sql)
        try:
            whole()
            self._connection.execute(KEEP_ORDER)
            reader = self._connection.sql(sql).to_arrow_reader(rows)
        except bare.Error as error:
            raise self._query_error(error) from error
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            yield from reader
        except (OSError, pa.ArrowException) as error:
            # While rows are produced, Arrow passes the engine's errors on as its own exceptions.
            if self._stored is None or self._stored.damaged(TABLES) is None:
                raise
            raise self._query_error(error) from error

    def json_reader(self, sql: str, names: Sequence[str], rows: int = 20_000) -> pa.RecordBatchReader:
        """Returns the result of a SELECT as one column of text: each row is a JSON object after a comma
        and a line break. DuckDB builds this text ten times as fast as Python could from objects. Raises
        QueryError."""
        fields = ", ".join(f'{quoted(name)}: "{name}"' for name in names)
        return self.reader(f"SELECT concat(',', chr(10), to_json({{{fields}}})) AS text FROM ({sql}) r", rows)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Returns a small result as one dictionary per row."""
        self._check_named(sql)
        try:
            # Arrow is not used here, because the engine plans a query twice if its result is fetched as
            # Arrow.
            answer = self._connection.execute(sql)
            names = [column[0] for column in answer.description]
            return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
        except bare.Error as error:
            raise self._query_error(error) from error

    def keep(self, name: str, sql: str) -> None:
        """Stores the result of a SELECT as a table named NAME, for later queries."""
        self._check_named(sql)
        try:
            self._connection.execute(f'CREATE OR REPLACE TABLE {KEPT}."{name}" AS {sql}')
        except bare.Error as error:
            raise self._query_error(error) from error

    def fold(self, name: str, fold: EventFold) -> bool:
        """Computes FOLD over all events and stores the result as a table named NAME. Returns False if this
        is not possible, because events are damaged or in another form than iodock writes (types, nulls,
        impossible numbers, another compression). The caller then uses SQL, which reports errors if there
        are any. Raises QueryError."""
        if self._stored is None:
            return False
        self._check_named(EVENTS.name)
        places = None if fold.places is None else self._places(fold.places)
        try:
            folding = Folding(self._stored.viewed(EVENTS), fold.name, places)
        except _native.NativeError:
            return False
        if self._rows.get("events", folding.rows) != folding.rows:
            return False
        # Only one thread runs this at a time, because all threads use the same name for the intermediate
        # table.
        with self._bringing:
            return self._run(name, fold, folding)

    def _places(self, sql: str) -> Places:
        if self._rows.get("files", FEW_ROWS) >= FEW_ROWS:
            return places_in(self.table(sql))
        return places_of((row["file_id"], row["place"]) for row in self.rows(sql))

    def _run(self, name: str, fold: EventFold, folding: Folding) -> bool:
        self._running.append(folding)
        try:
            parts = 0
            for groups in folding.tables():
                self._take(groups, parts == 0)
                parts += 1
            if parts:
                self.keep(name, fold.groups)
            return parts > 0
        except _native.NativeError as error:
            if folding.stopped:
                raise QueryError("stopped", "repeat the request") from error
            return False
        finally:
            self._running.remove(folding)
            with contextlib.suppress(bare.Error):
                self._connection.execute(f"DROP TABLE IF EXISTS {FOLDING}.groups")

    def _take(self, groups: Groups, is_first: bool) -> None:
        into = f"{'CREATE OR REPLACE TABLE' if is_first else 'INSERT INTO'} {FOLDING}.groups"
        into += " AS" if is_first else ""
        if groups.rows > FEW_ROWS:
            self._bring(into, groups.arrow)
            return
        try:
            self._connection.execute(f"{into} {groups.select}", groups.values)
        except bare.Error as error:
            raise self._query_error(error) from error

    def bring(self, name: str, rows: pa.Table) -> None:
        """Stores rows from outside of this store as a table named NAME. Raises QueryError."""
        with self._bringing:
            self._bring(f'CREATE OR REPLACE TABLE {KEPT}."{name}" AS', rows)

    def _bring(self, into: str, rows: pa.Table) -> None:
        whole()
        try:
            self._connection.register("brought", rows)
            self._connection.execute(f"{into} FROM brought")
        except bare.Error as error:
            raise self._query_error(error) from error
        finally:
            with contextlib.suppress(bare.Error):
                self._connection.unregister("brought")

    def hold(self, table: str) -> None:
        """Loads one of the store's tables into memory when the next query names it."""
        self._to_hold.add(table)

    def user_query(self, sql: str) -> pa.Table:
        """Runs a query of a user, which may be anything that returns rows. Raises QueryError and
        RequestError."""
        import pyarrow as pa

        try:
            statements = len(self._connection.extract_statements(sql))
            if not statements:
                raise RequestError("the query is empty", f"write one query, for example {guard.EXAMPLE}")
            if statements > 1:
                raise RequestError(
                    "there are several statements", "give one query at a time, without a ; between"
                )
            if not self._is_unsafe:
                guard.check(self._connection, sql)
            self._check_named(sql)
            self._name_tables((*TABLES, *FOLDS))
            self._name_views(" ".join(view.name for view in VIEWS))
            self._connection.execute(FREE_ORDER)
            whole()
            relation = self._connection.sql(sql)
            return pa.table({}) if relation is None else relation.to_arrow_table()
        except bare.Error as error:
            raise self._query_error(error, asked=True) from error

    def interrupt(self) -> None:
        """Stops the running queries. It may be called from any thread."""
        for folding in list(self._running):
            folding.stop()
        # A closing engine may have no connection any more, so the list may be empty.
        for connection in list(self._connections):
            with contextlib.suppress(bare.Error):
                connection.interrupt()

    def close(self) -> None:
        """Frees the engine's memory and closes the store's files."""
        for connection in reversed(self._connections):
            connection.close()
        if self._stored is not None:
            self._stored.close()

    def _query_error(self, error: Exception, asked: bool = False) -> QueryError:
        """Makes an error from an exception of the engine. ASKED is true if a user wrote the query. The
        query itself may then be wrong."""
        if isinstance(error, bare.OutOfMemoryException):
            return QueryError(f"the query needs more memory than {MEMORY_LIMIT}", "query fewer rows or keys")
        if asked and (refused := guard.refusal(error, self._named(error))):
            return refused
        if self._stored is not None and not isinstance(error, _WRONG_QUERY + _WRONG_VALUE * asked):
            # If a page of a file can't be decompressed, the engine's message does not say that the file is
            # damaged, so the files are checked here.
            where = self._stored.damaged(TABLES)
            if where is None and isinstance(error, _WRONG_VALUE):
                where = self._stored.folder
            if where is not None:
                return QueryError(f"{where}: is damaged: {self._named(error)}", AGAIN)
        return QueryError(self._named(error), _hint(error))

    def _named(self, error: Exception) -> str:
        said = first_line(error)
        return said if self._stored is None else self._stored.named(said)


_NEAR = re.compile(r'^(?:Candidate bindings|Did you mean)[: ]*("[^"]*"(?:, "[^"]*")*)', re.MULTILINE)


def _hint(error: Exception) -> str:
    """Returns a hint: the table that the engine suggests, or the list of tables if it suggests none."""
    near = _NEAR.search(str(error))
    if near is not None:
        return suggested(near[1].replace('"', "").split(", "))
    return f"tables: {', '.join(one.name for one in (*TABLES, *VIEWS))}"
