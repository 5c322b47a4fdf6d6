"""Losses of agents: data that they could not read or had to drop."""

from __future__ import annotations

import pyarrow as pa

from iodock.centre.store import MonitorTables

MOST = 500


def losses(store: MonitorTables, begin: int, end: int) -> pa.Table:
    """Lists losses, the newest first: ts (of the last one), host, name, source, target, detail, count. Equal
    losses within an hour are combined."""
    sql = f"""
        SELECT max(ts) AS ts, host, name, source, target, max(detail) AS detail, sum(count)::BIGINT AS count
        FROM losses GROUP BY host, name, source, target, ts // 3600000000000
        ORDER BY ts DESC, host, name LIMIT {MOST}
    """
    return store.table(sql, begin=begin, end=end, resolution="fine")
