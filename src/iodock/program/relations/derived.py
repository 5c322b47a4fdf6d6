"""What a derived table is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from iodock.program.store import Store
from iodock.program.store.folds import EventFold


@dataclass(frozen=True, slots=True)
class Derived:
    """One derived table: its SQL, the tables it is made from, and what its columns mean."""

    doc: str
    columns: Mapping[str, str]
    """Name -> meaning with unit."""
    sql: Callable[[Store], str]
    after: tuple[str, ...] = ()
    fold: EventFold | None = None
    """How it is made faster than by SQL, where events are as iodock stores them."""
