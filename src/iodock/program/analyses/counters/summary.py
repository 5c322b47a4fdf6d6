"""Sums operations, their bytes and their time, by any keys that counters have."""

from __future__ import annotations

from typing import Any

from iodock.program.analyses.base import Request, answered
from iodock.program.relations.grouping import COSTLIEST, FILE_COUNT, MEASURES
from iodock.program.relations.ordering import order_sql
from iodock.program.relations.profiled import operations
from iodock.program.relations.profiled.chosen import GROUND, choose
from iodock.program.relations.profiled.keys import NO_FILE, found_keys, key_columns, noun, sql_of
from iodock.program.store import Store
from iodock.shared.answer import Answer, Totals

_GROUPS = "profiled_groups"
_GROUND = ", ".join(f"'{one}'" for one in GROUND)
_USUAL = ("call",)
_TOTALS = "totals are of posix and stdio alone, because the bytes of other interfaces pass through these"


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per key and interface, the costliest first."""
    by = asked.options["by"]
    keys = found_keys(("interface", "family") if by == _USUAL else by, store)
    notes = choose(store, asked.filters)
    operations.keep_operations(store)
    counts_files = any(key not in NO_FILE for key in keys)
    columns = (*key_columns(keys), *((FILE_COUNT,) if counts_files else ()), *MEASURES)
    _keep_groups(store, keys, counts_files, order_sql(columns, asked.options, COSTLIEST, "g."))
    top = asked.options["top"]
    limit = f"WHERE place <= {top}" if top else ""
    table = store.table(f"SELECT * EXCLUDE (place) FROM {_GROUPS} {limit} ORDER BY place")
    title = f"Operations by {', '.join(keys)}"
    totals = _totals(store, keys, table.num_rows)
    return answered("summary", title, store, asked, table, columns, (*notes, _TOTALS), totals, keys)


def _keep_groups(store: Store, keys: tuple[str, ...], counts_files: bool, order: tuple[str, ...]) -> None:
    grouped = ", ".join(f'{sql_of(key)} AS "{key}"' for key in keys)
    numbers = ", ".join(str(at + 1) for at in range(len(keys)))
    files = f"{operations.FILE_COUNT} AS file_count, " if counts_files else ""
    names = ", ".join((*order, *(f'"{key}" NULLS LAST' for key in keys)))
    store.keep(
        _GROUPS,
        f"""WITH g AS (SELECT {grouped}, {files}{operations.MEASURES_SQL}
  FROM {operations.OPERATIONS} o GROUP BY {numbers})
SELECT *, row_number() OVER (ORDER BY {names}) AS place FROM g""",
    )


def _totals(store: Store, keys: tuple[str, ...], shown: int) -> Totals:
    (found,) = store.rows(f"SELECT count(*) AS n FROM {_GROUPS}")
    every, other = int(found["n"]), None
    if shown < every:
        same = " AND ".join(f'g."{key}" IS NOT DISTINCT FROM {sql_of(key)}' for key in keys)
        other = _ground(store, f"EXISTS (SELECT 1 FROM {_GROUPS} g WHERE g.place > {shown} AND {same})")
    return Totals(_ground(store, "true"), other, shown, every, noun(keys))


def _ground(store: Store, where: str) -> dict[str, Any]:
    (row,) = store.rows(
        f"""SELECT {operations.MEASURES_SQL} FROM {operations.OPERATIONS} o
WHERE o.interface IN ({_GROUND}) AND {where}"""
    )
    return row
