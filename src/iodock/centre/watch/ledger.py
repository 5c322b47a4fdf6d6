"""Implements the ledger, a small database of episodes, actions and notices. With it a restarted collector
neither sends a notice nor takes an action a second time. Related changes are made in one transaction."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from iodock.shared.errors import StoreError

Row = sqlite3.Row
_VERSION = 1
_SCHEMA = """
CREATE TABLE episodes (
    number INTEGER PRIMARY KEY, file_system TEXT NOT NULL, server TEXT NOT NULL, kind TEXT NOT NULL,
    begin_ns INTEGER NOT NULL, end_ns INTEGER, state TEXT NOT NULL, worst TEXT NOT NULL,
    seen_ns INTEGER NOT NULL, confidence REAL NOT NULL, samples INTEGER NOT NULL, suspects TEXT NOT NULL,
    told INTEGER
) STRICT;
CREATE UNIQUE INDEX one_open ON episodes (file_system, server, kind) WHERE end_ns IS NULL;
CREATE TABLE actions (
    number INTEGER PRIMARY KEY, episode INTEGER NOT NULL, job TEXT NOT NULL, owner TEXT, kind TEXT NOT NULL,
    status TEXT NOT NULL, by TEXT NOT NULL, made_ns INTEGER NOT NULL, did_ns INTEGER, mark TEXT,
    why TEXT NOT NULL, tries INTEGER NOT NULL, next_ns INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX one_of_a_job ON actions (episode, job);
CREATE TABLE outbox (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, channel TEXT NOT NULL, recipient TEXT NOT NULL,
    message TEXT NOT NULL, status TEXT NOT NULL, tries INTEGER NOT NULL, made_ns INTEGER NOT NULL,
    next_ns INTEGER NOT NULL
) STRICT;
CREATE TABLE counts (name TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT;
"""


class Readable(Protocol):
    """The interface of a ledger that can be queried."""

    def read(self, sql: str, *values: object) -> list[Row]:
        """Runs a query. Raises StoreError."""


class Ledger:
    """The ledger of one process. Its methods may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        """Opens the ledger, and creates its folder if it is missing. Raises StoreError if the ledger is in
        use, damaged or of a later version, or if its file system fails."""
        self._path = folder / "response.db"
        self._using = threading.RLock()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{folder}: {error.strerror}", "give another folder") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise StoreError(
                f"{folder}: in use by another collector", "give each one a separate folder"
            ) from None
        try:
            self._connection = self._connected()
        except BaseException:
            os.close(self._lock)
            raise

    def _connected(self) -> sqlite3.Connection:
        with self._as_store_error():
            is_new = not self._path.exists()
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            made = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=10)
            made.row_factory = sqlite3.Row
            # SQLite overwrites deleted data with zeros, because data such as names of users must not remain
            # in the file.
            made.execute("PRAGMA secure_delete = ON")
            version = made.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and not made.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                made.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT")
                version = _VERSION
            if version != _VERSION:
                raise StoreError(
                    f"{self._path}: of version {version}; the known version is {_VERSION}", "update iodock"
                )
            if not is_new and made.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise self._damaged()
            return made

    def _damaged(self) -> StoreError:
        return StoreError(
            f"{self._path}: is damaged", "move the file away, and look at jobs in the audit log"
        )

    @contextmanager
    def _as_store_error(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "") in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
                raise self._damaged() from error
            raise StoreError(f"{self._path}: {error}") from error
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}") from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Opens a transaction: at its end, either all changes are on the disk or none. Raises StoreError."""
        with self._using, self._as_store_error():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def read(self, sql: str, *values: object) -> list[Row]:
        """Runs a query. Raises StoreError."""
        with self._using, self._as_store_error():
            return self._connection.execute(sql, values).fetchall()

    def close(self) -> None:
        """Releases the folder for other processes."""
        with self._using:
            self._connection.close()
            os.close(self._lock)


class LedgerBeside:
    """The ledger of a collector that may be running. It is only read."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "response.db"

    @property
    def is_there(self) -> bool:
        """Returns whether the ledger exists; False also if the folder is not readable."""
        return os.access(self._path, os.R_OK)

    def read(self, sql: str, *values: object) -> list[Row]:
        """Runs a query. Raises StoreError."""
        try:
            made = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=1)
            with closing(made):
                made.row_factory = sqlite3.Row
                version = made.execute("PRAGMA user_version").fetchone()[0]
                if version != _VERSION:
                    raise StoreError(
                        f"{self._path}: of version {version}; the known version is {_VERSION}",
                        "update iodock",
                    )
                return made.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"{self._path}: {error}") from error


def count(connection: sqlite3.Connection, name: str, more: int = 1) -> None:
    """Counts an occurrence that a site should know about, such as lost notices."""
    connection.execute(
        "INSERT INTO counts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count",
        (name, more),
    )


def counts(ledger: Ledger) -> dict[str, int]:
    """Counts since the ledger was created, by name. Raises StoreError."""
    return {row["name"]: row["count"] for row in ledger.read("SELECT name, count FROM counts ORDER BY name")}
