"""Lists single reads and writes, which some sources record in addition to counters."""

from __future__ import annotations

from iodock.program.analyses.base import Request
from iodock.program.relations.profiled.keys import key_columns
from iodock.program.relations.profiled.traced import TRACED, keep_traced
from iodock.program.store import Store
from iodock.shared.answer import Column

_KEYS = ("interface", "rank", "host")
_KNOWN = {
    "ts": "e.ts",
    "dur": "e.dur",
    "tid": "e.thread",
    "call": "CASE e.direction WHEN 1 THEN 'read' ELSE 'write' END",
    "file": "n.name",
    "offset_bytes": "e.offset_bytes",
    "bytes": "e.bytes",
    "direction": "CASE e.direction WHEN 1 THEN 'read' ELSE 'write' END",
    "end_ts": "e.end_ts",
    **{name: f"e.{name}" for name in _KEYS},
}
_TYPES = {"int": "BIGINT", "str": "VARCHAR"}


def columns(of_calls: tuple[Column, ...]) -> tuple[Column, ...]:
    """Returns the columns of the analysis of calls, and the columns that distinguish ranks and interfaces.
    Some columns of calls are empty in a store of counters."""
    return (*of_calls[:3], *key_columns(_KEYS), *of_calls[3:])


def rows_sql(store: Store, asked: Request, of_calls: tuple[Column, ...]) -> tuple[str, tuple[str, ...]]:
    """Returns the SQL for one row per access, and the notes for the answer."""
    notes = keep_traced(store, asked.filters)
    known = ((one, _KNOWN.get(one.name, f"NULL::{_TYPES[one.type]}")) for one in columns(of_calls))
    listed = ", ".join(f'{sql} AS "{one.name}"' for one, sql in known)
    return f"SELECT {listed} FROM {TRACED} e LEFT JOIN files n ON n.file_id = e.file_id", notes
