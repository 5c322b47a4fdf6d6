"""Sums calls, time and bytes by call, file, process, or any combination of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.analyses.counters import summary as counters
from iodock.program.relations.counted import counted_row, keep_counted, left_out
from iodock.program.relations.grouping import (
    CELLS,
    COSTLIEST,
    GROUPS,
    MEASURES,
    Grouping,
    keep_groups,
    keep_other,
    one_row,
)
from iodock.program.relations.keys import KEYS, find_keys, noun_of
from iodock.program.relations.ordering import order_sql
from iodock.program.store import Store
from iodock.shared.answer import Answer, Totals
from iodock.shared.errors import RequestError
from iodock.shared.language import N_, fill

if TYPE_CHECKING:
    import pyarrow as pa


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per key, the costliest first."""
    if store.manifest.profiles_only:
        return counters.run(store, asked)
    return grouped(store, asked)


def grouped(store: Store, asked: Request, order: tuple[str, ...] = COSTLIEST) -> Answer:
    """Returns an answer with one row per key. ORDER is SQL expressions over the measures by which the rows
    are sorted."""
    keys = find_keys(asked.options["by"])
    if not keys:
        raise RequestError("--by needs at least one key", f"keys: {', '.join(KEYS)}")
    grouping = Grouping(keys)
    order = order_sql(grouping.columns, asked.options, order, "g.")
    selection = None
    if store.manifest.counts_only:
        keep_counted(store, grouping, asked.filters, order)
    else:
        selection = select(store, asked.filters)
        keep_groups(store, grouping, selection, order)
    top = asked.options["top"]
    names = ", ".join(f'"{column.name}"' for column in grouping.columns)
    limit = f" WHERE place <= {top}" if top else ""
    table = store.table(f"SELECT {names} FROM {GROUPS}{limit} ORDER BY place")
    return answer(
        "summary",
        fill(_title(store, asked), {"keys": ", ".join(key.name for key in keys)}),
        store,
        asked,
        table,
        grouping.columns,
        selection,
        _totals(store, grouping, table),
        tuple(key.name for key in keys),
    )


def _title(store: Store, asked: Request) -> str:
    """Returns the answer's title. The title says "on files with a path" only if the answer leaves out all
    calls on other files. They are not left out if the user filters by kind or file, or if the store has only
    counts and therefore no files."""
    filters = asked.filters
    any_call = store.manifest.counts_only or filters.kind or filters.file
    return N_("Calls by {keys}") if any_call else N_("Calls on files with a path by {keys}")


def _totals(store: Store, grouping: Grouping, table: pa.Table) -> Totals:
    groups = int(store.rows(f"SELECT count(*) AS n FROM {GROUPS}")[0]["n"])
    other: dict[str, Any] | None = None
    if store.manifest.counts_only:
        if table.num_rows < groups:
            other = left_out(store, grouping, table.num_rows)
        return Totals(counted_row(store), other, table.num_rows, groups, noun_of(grouping.keys))
    if table.num_rows < groups:
        keep_other(store, grouping, table.num_rows)
        other = one_row(store, "cells_other")
    return Totals(one_row(store, CELLS), other, table.num_rows, groups, noun_of(grouping.keys))


ANALYSIS = Analysis(
    name="summary",
    title="Calls",
    doc="""Calls with their outcome, time and bytes, one row per key, sorted by total time. Without --by, one
row per system call. A call with two ends (rename, sendfile) counts once in each row that it belongs to, and
once in the total. Of counts alone (a table of strace -c) all calls are shown, by call, family or class; what
the table does not tell is empty. Of counters (Darshan's logs) it shows operations in place of calls, by
interface and any key that they tell.""",
    columns=(KEYS["call"].column, *MEASURES),
    run=run,
    counts=True,
    profiles=True,
    orders=True,
    options=(
        Option("by", "keys", ("call",), f"group by these keys: {', '.join(KEYS)}"),
        Option("top", "int", None, "only the N costliest rows, the rest as one row 'other'"),
    ),
    examples=(
        "iodock show summary run.iodock",
        "iodock show summary run.iodock --by file,call --top 20",
        "iodock show summary run.iodock --call openat --failed --by file",
        "iodock show summary run.iodock --by pattern --user-files",
    ),
)
