"""Opens a store and runs SQL on it. Of the packages that work on a program's I/O, only this one names the
SQL engine."""

from iodock.program.store.manifest import Manifest, read_manifest
from iodock.program.store.schema import TABLES, StoreColumn, StoreTable
from iodock.program.store.seen import VIEWS
from iodock.program.store.store import Store

__all__ = ["TABLES", "VIEWS", "Manifest", "Store", "StoreColumn", "StoreTable", "read_manifest"]
