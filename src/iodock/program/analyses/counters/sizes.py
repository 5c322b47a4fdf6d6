"""Counts reads and writes by size, in the bins of the program that counted them (such as Darshan)."""

from __future__ import annotations

from iodock.program.analyses.base import Request, answered
from iodock.program.relations.profiled.chosen import CHOSEN, choose
from iodock.program.relations.profiled.keys import key_columns
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column
from iodock.shared.errors import RequestError

LOWER = Column("lower_bytes", "int", "bytes", "key", "smallest size of the bin")
_COMMON = "these are only the most frequent sizes of each file, of reads and writes together"


def run(store: Store, asked: Request, of_calls: tuple[Column, ...]) -> Answer:
    """Returns an answer with one row per interface, direction and bin. Raises RequestError if the sizes that
    calls requested are asked for, because counters contain only the transferred sizes."""
    if asked.options["requested"]:
        hint = f"see the transferred sizes, without --requested; for more {store.manifest.calls_hint}"
        raise RequestError("counters do not contain the requested sizes", hint)
    exact = bool(asked.options["exact"])
    notes = [*choose(store, asked.filters), *map(_said, unsized(store)), *((_COMMON,) if exact else ())]
    quantity = (
        "h.quantity = 'common-read-or-write-size'" if exact else "h.quantity IN ('read-size', 'write-size')"
    )
    table = store.table(
        f"""SELECT c.interface,
  CASE h.quantity WHEN 'read-size' THEN 'read' WHEN 'write-size' THEN 'write' END AS direction,
  h.low AS lower_bytes, h.high AS upper_bytes, CAST(sum(h.count) AS BIGINT) AS count,
  NULL::BIGINT AS total_time_ns, CASE WHEN h.low = h.high THEN CAST(sum(h.count) * h.low AS BIGINT)
    WHEN count(h.bytes) = count(*) THEN CAST(sum(h.bytes) AS BIGINT) END AS bytes
FROM histograms h JOIN {CHOSEN} c ON c.profile_id = h.profile_id WHERE {quantity} AND h.count > 0
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3"""
    )
    keys = (*key_columns(("interface",)), of_calls[0], LOWER)
    columns = (*keys, *of_calls[1:])
    names = tuple(one.name for one in columns[:4])
    return answered("sizes", "Sizes of reads and writes", store, asked, table, columns, notes, keys=names)


def _said(interface: str) -> str:
    return (
        f"the sizes of {interface} are unknown: it transferred bytes, but its source does not "
        "count their sizes"
    )


def unsized(store: Store) -> list[str]:
    """Returns the interfaces of the chosen profiles that moved bytes but have no histogram of sizes."""
    rows = store.rows(
        f"""SELECT DISTINCT c.interface FROM {CHOSEN} c WHERE (c.reads > 0 OR c.writes > 0)
  AND c.interface NOT IN (SELECT p.interface FROM histograms h JOIN profiles p ON p.profile_id = h.profile_id
    WHERE h.quantity IN ('read-size', 'write-size')) ORDER BY 1"""
    )
    return [row["interface"] for row in rows]
