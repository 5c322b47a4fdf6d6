"""Queries the losses of agents, which are data that they could not read or had to drop."""

from __future__ import annotations

import pyarrow as pa

from iodock.centre.store import MonitorTables

MOST = 500


def losses(store: MonitorTables, begin: int, end: int) -> pa.Table:
    """Returns losses, the newest first, in the columns ts (time of the last loss), host, name, source,
    target, detail and count. Losses with the same host, name, source and target in one hour are one row."""
    sql = f"""
        SELECT max(ts) AS ts, host, name, source, target, max(detail) AS detail, sum(count)::BIGINT AS count
        FROM losses GROUP BY host, name, source, target, ts // 3600000000000
        ORDER BY ts DESC, host, name LIMIT {MOST}
    """
    return store.table(sql, begin=begin, end=end, resolution="fine")
