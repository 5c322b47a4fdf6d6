"""Groups the counts of a store that has no calls (from strace -c) into the same table as the calls of other
stores."""

from __future__ import annotations

from iodock.program.relations.filters import Filters
from iodock.program.relations.grouping import GROUPS, Grouping
from iodock.program.relations.keys import Key
from iodock.program.store import Store
from iodock.shared.errors import RequestError

_ORIGIN = "call"
_INTERFACE = "interface"


def keep_counted(store: Store, grouping: Grouping, filters: Filters, ordered: tuple[str, ...]) -> None:
    """Creates the table `call_groups` as `keep_groups` does. Raises RequestError for keys and filters other
    than those on calls, because the store only has one count per call."""
    others = [key.name for key in grouping.keys if key.origin != _ORIGIN and key.name != _INTERFACE]
    filtered = {**filters.given(), "kind": ()} != {"kind": ()} or filters.kind not in ((), ("all",))
    if others or filtered:
        message = (
            f"{store.name}: contains counts by call only, so it can't be divided by {others[0]}"
            if others
            else f"{store.name}: contains counts by call only, so it can't be divided by a filter"
        )
        raise RequestError(
            message,
            "keys: call, family, class; for others record the program, or import a log with its calls",
        )
    keys = ", ".join(f'{_expression(key)} AS "{key.name}"' for key in grouping.keys)
    numbers = ", ".join(str(at + 1) for at in range(len(grouping.keys)))
    names = [f'"{key.name}" NULLS LAST' for key in grouping.keys]
    store.keep(
        GROUPS,
        f"""WITH g AS (SELECT {keys}, {_MEASURES} FROM {_NAMED} GROUP BY {numbers})
SELECT *, row_number() OVER (ORDER BY {", ".join([*ordered, *names])}) AS place FROM g""",
    )


def counted_row(store: Store, where: str = "true") -> dict[str, object]:
    """Returns the measures over all calls as one row. WHERE is an SQL condition on calls `c`."""
    (row,) = store.rows(f"SELECT {_MEASURES} FROM {_NAMED} WHERE {where}")
    return row


def left_out(store: Store, grouping: Grouping, shown: int) -> dict[str, object]:
    """Returns the measures of the rows that the answer leaves out, which are those after the first SHOWN."""
    same = " AND ".join(f'g."{key.name}" IS NOT DISTINCT FROM {_expression(key)}' for key in grouping.keys)
    return counted_row(store, f"EXISTS (SELECT 1 FROM {GROUPS} g WHERE g.place > {shown} AND {same})")


def _expression(key: Key) -> str:
    """Returns the SQL for a key. The interface is always POSIX, because strace -c counts only system
    calls."""
    return "'POSIX'" if key.name == _INTERFACE else key.of("f")


def _all_or_none(function: str, column: str) -> str:
    """Returns the SQL for a sum, minimum or maximum that is NULL if one of its values is NULL."""
    return f"CASE WHEN count(n.{column}) = count(*) THEN CAST({function}(n.{column}) AS BIGINT) END"


_NAMED = "call_totals n LEFT JOIN calls c ON c.id = n.call_id"
_CALLS, _ERRORS, _TIME = (_all_or_none("sum", name) for name in ("calls", "errors", "time_ns"))
# This SQL computes the measures, in the order of grouping.MEASURES.
_MEASURES = f"""{_CALLS} AS count, {_CALLS} - {_ERRORS} AS success, {_ERRORS} AS failed,
  NULL::BIGINT AS no_result, NULL::MAP(VARCHAR, BIGINT) AS errnos,
  {_TIME} AS total_time_ns, CAST({_TIME} AS DOUBLE) / nullif({_CALLS}, 0) AS mean_time_ns,
  {_all_or_none("min", "min_time_ns")} AS min_time_ns, {_all_or_none("max", "max_time_ns")} AS max_time_ns,
  {_all_or_none("sum", "sys_cpu_ns")} AS sys_cpu_time_ns,
  CAST({_CALLS} AS DOUBLE) * 1000000000 / nullif({_TIME}, 0) AS calls_per_s, NULL::DOUBLE AS bytes_per_s,
  NULL::BIGINT AS read_bytes, NULL::BIGINT AS written_bytes, NULL::BIGINT AS io_count,
  NULL::DOUBLE AS mean_size_bytes, NULL::BIGINT AS min_size_bytes, NULL::BIGINT AS max_size_bytes"""
