"""Opens a store and asks it SQL. The only room that names an engine."""

from iodock.store.manifest import Manifest, read_manifest
from iodock.store.schema import TABLES, StoreColumn, StoreTable
from iodock.store.seen import VIEWS
from iodock.store.store import Store
from iodock.store.tables import quoted

__all__ = ["TABLES", "VIEWS", "Manifest", "Store", "StoreColumn", "StoreTable", "quoted", "read_manifest"]
