"""Computes the growth of counters between readings in SQL. It applies the rules of
crates/iodock-samples/src/growth.rs and crates/iodock-monitor/src/falling.rs to data of Prometheus.

Prometheus does not store when a counter last changed, so this is derived from the previous readings. An agent
lists only the owners with most I/O and reports the sum of all others. An owner that was not listed before may
be new, or may have been part of this sum.

The queries read the tables `readings` (place, ts, others: number of owners that are not listed), `entries`,
`counters` and `falling` (see series.py), `samples` (series, ts, value) and `starts` (series, ts from which
the start applies, start). Times are in ns, and values in the units of the store."""

from __future__ import annotations

from iodock.centre.prometheus.selection import QUANTITIES, counted

IDLE = 300 * 1_000_000_000
"""A server removes an entry only if it was idle for at least this time, ns (`Expiry` in growth.rs)."""
_MOST = 1 << 62
"""Values are cut at this limit, so that a damaged counter does not abort the query."""

_READINGS = """
    SELECT place, ts, others, lag(ts) OVER w AS before_ts, lag(others) OVER w AS before_others,
        lead(ts) OVER w AS after_ts, lead(others) OVER w AS after_others,
        min(ts) OVER (PARTITION BY place) AS first_ts
    FROM readings WINDOW w AS (PARTITION BY place ORDER BY ts)
"""
_VALUES = """
    SELECT s.series, c.entry, e.place, e.source, e.known_by IS NULL AS is_nobodys, e.is_others, c.operation,
        c.quantity, c.bucket, s.ts, s.value, b.start, e.source IN (FROM falling) AS falls,
        r.before_ts, r.before_others, r.after_ts, r.after_others, r.first_ts,
        lag(s.ts) OVER w AS last_ts, lag(s.value) OVER w AS last_value
    FROM samples s JOIN counters c USING (series) JOIN entries e USING (entry)
        JOIN reading r ON r.place = e.place AND r.ts = s.ts
        ASOF LEFT JOIN starts b ON b.series = s.series AND b.ts <= s.ts
    WHERE c.quantity <> 'level'
    WINDOW w AS (PARTITION BY s.series ORDER BY s.ts)
"""
# This query has one row for each reading of an entry, with the times of the readings before and after it and
# the last times at which a counter of the entry changed.
_PRESENT = """
    SELECT *, lag(ts) OVER w AS last_present, lag(start) OVER w AS last_start,
        lead(ts) OVER w AS next_present,
        max(CASE WHEN is_changed THEN ts END) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            AS last_change,
        max(CASE WHEN is_changed THEN ts END) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
            AS change
    FROM (
        SELECT entry, place, ts, before_ts, after_ts, after_others, first_ts, max(start) AS start,
            bool_or(before_ts IS NOT NULL AND (last_ts IS DISTINCT FROM before_ts OR value <> last_value))
                AS is_changed
        FROM valued WHERE NOT is_others AND NOT falls GROUP BY ALL
    )
    WINDOW w AS (PARTITION BY entry ORDER BY ts)
"""
_COMPARED = f"""
    SELECT v.*, p.start AS entry_start, p.last_start,
        p.last_present IS NOT DISTINCT FROM v.before_ts AS was_there,
        CASE WHEN v.last_ts = v.before_ts THEN v.last_value ELSE 0 END AS old,
        v.ts - p.last_change < {IDLE} IS TRUE AS is_busy,
        -- Nobody knows what was before the first reading.
        p.start - coalesce(p.last_change, v.first_ts) < {IDLE} AS was_busy,
        -- It may have come from among the others, unless it began since.
        v.before_others > 0 AND NOT v.is_nobodys AND NOT coalesce(p.start > v.before_ts, false)
            AS may_be_old
    FROM valued v JOIN present p ON p.entry = v.entry AND p.ts = v.ts WHERE v.before_ts IS NOT NULL
"""


def _grown(step: int) -> str:
    """Returns SQL for the growth of counters between readings. Its columns are entry, begin_ts, end_ts,
    operation, quantity, bucket, growth, exact and moved (the part of the growth that was in the sum of the
    others before). STEP is the largest age of a reading at its time in ns."""
    same, other = (
        "entry_start = last_start",
        "entry_start <> last_start",
    )
    return f"""
        SELECT entry, place, source, before_ts AS begin_ts, ts AS end_ts, operation, quantity, bucket,
            CASE WHEN NOT was_there AND may_be_old THEN 0
                WHEN NOT was_there THEN value
                WHEN {same} THEN greatest(value - old, 0)
                WHEN {other} OR value < old THEN value
                ELSE value - old END AS growth,
            CASE WHEN NOT was_there AND may_be_old THEN false
                WHEN NOT was_there THEN coalesce(entry_start, ts) - before_ts < {IDLE}
                WHEN {same} THEN value >= old
                WHEN {other} THEN before_ts - {step} >= entry_start - {IDLE} AND NOT was_busy
                WHEN value < old THEN false
                ELSE is_busy END AS exact,
            CASE WHEN NOT was_there AND may_be_old THEN value ELSE 0 END AS moved
        FROM compared
    """


# This query has the entries that are missing in the next reading. Either the server removed them, or the
# agent now counts them in the sum of the others.
_ENDED = """
    SELECT entry, place, ts, after_ts, coalesce(after_others, 0) > 0 AS is_among_others, change
    FROM present WHERE after_ts IS NOT NULL AND next_present IS DISTINCT FROM after_ts
"""
# This query computes the growth of the sum of all owners that are not listed. It is the difference of two
# sums, plus the values of owners that left the sum, minus the values of owners that joined it. Values of
# owners that the server removed are not known, so the result is a lower bound.
_OF_OTHERS = """
    SELECT e.entry, d.* EXCLUDE (place, source) FROM (
        SELECT place, source, begin_ts, end_ts, operation, quantity, NULL::BIGINT AS bucket,
            greatest(sum(amount), 0)::BIGINT AS growth, false AS exact
        FROM (
            SELECT place, source, before_ts AS begin_ts, ts AS end_ts, operation, quantity, value AS amount
            FROM valued WHERE is_others AND NOT falls AND before_ts IS NOT NULL
            UNION ALL SELECT place, source, ts, after_ts, operation, quantity, -value
            FROM valued WHERE is_others AND NOT falls AND after_ts IS NOT NULL
            UNION ALL SELECT place, source, begin_ts, end_ts, operation, quantity, moved
            FROM grown WHERE moved > 0
            UNION ALL SELECT v.place, v.source, v.ts, v.after_ts, v.operation, v.quantity, -v.value
            FROM valued v JOIN ended x ON x.entry = v.entry AND x.ts = v.ts WHERE x.is_among_others
        ) GROUP BY ALL
    ) d JOIN entries e ON e.place = d.place AND e.is_others
"""
# In some sources the counters of an owner can decrease, because a process that waits for a child takes over
# the child's counts. The decreases of some owners are therefore subtracted from the increases of the others.
_FALLING = """
    SELECT entry, begin_ts, end_ts, operation, quantity, NULL::BIGINT AS bucket,
        (gain * greatest(gained - lost, 0) / gained)::BIGINT AS growth, false AS exact
    FROM (
        SELECT *, greatest(delta, 0)::DOUBLE AS gain, sum(greatest(delta, 0)) OVER w AS gained,
            sum(greatest(-delta, 0)) OVER w AS lost
        FROM (
            SELECT entry, place, begin_ts, end_ts, operation, quantity, sum(amount) AS delta
            FROM (
                SELECT entry, place, before_ts AS begin_ts, ts AS end_ts, operation, quantity, value AS amount
                FROM valued WHERE falls AND before_ts IS NOT NULL
                UNION ALL SELECT entry, place, ts, after_ts, operation, quantity, -value
                FROM valued WHERE falls AND after_ts IS NOT NULL
            ) GROUP BY ALL
        ) WINDOW w AS (PARTITION BY place, operation, quantity, end_ts)
    ) WHERE gain > 0 AND gained > lost
"""


def _growths(step: int) -> str:
    """Returns an SQL clause WITH that defines the queries of this module. A SELECT must follow it."""
    return f"""
        WITH reading AS MATERIALIZED ({_READINGS}), valued AS MATERIALIZED ({_VALUES}),
            present AS MATERIALIZED ({_PRESENT}), compared AS ({_COMPARED}),
            grown AS MATERIALIZED ({_grown(step)}), ended AS ({_ENDED})
    """


def _begun(step: int) -> str:
    """Returns SQL for a row of each entry in the first reading. It is not known whether the entry moved
    anything in the step before, so its growth is 0 and not exact. If STEP is 0, there are no such rows,
    because no period ends at the first scraped reading."""
    where = "before_ts IS NULL AND NOT is_nobodys" if step else "false"
    return f"SELECT DISTINCT entry, ts - {step}, ts, '', '', 0, false FROM valued WHERE {where}"


def job_io(step: int, columns: tuple[str, ...]) -> str:
    """Returns SQL for the rows of `job_io`, which docs/explanation/monitor-store.md describes. Only the
    columns COLUMNS are computed; the others are 0."""
    sums = ", ".join(f'{_column(name)} AS "{name}"' for name in columns)
    return f"""
        {_growths(step)}, parts AS (
            SELECT entry, begin_ts, end_ts, operation, quantity, growth, exact FROM grown
            UNION ALL SELECT entry, begin_ts, end_ts, operation, quantity, growth, exact
            FROM ({_OF_OTHERS}) WHERE growth > 0
            UNION ALL SELECT entry, begin_ts, end_ts, operation, quantity, growth, exact FROM ({_FALLING})
            UNION ALL SELECT entry, ts, after_ts, '', '', 0, false FROM ended
            WHERE NOT is_among_others AND (after_ts - ts >= {IDLE} OR after_ts - change < {IDLE})
            UNION ALL {_begun(step)}
        ), rows AS (
            SELECT entry, begin_ts, end_ts, bool_and(exact) AS exact, sum(growth) > 0 AS is_any, {sums}
            FROM parts GROUP BY entry, begin_ts, end_ts
        )
        SELECT begin_ts, end_ts, host, source, file_system, target, job, "user", session, command, known_by,
            rows.* EXCLUDE (entry, begin_ts, end_ts, is_any)
        FROM rows JOIN entries USING (entry)
        WHERE (is_any OR NOT exact) AND known_by IS NOT NULL
    """


def _column(name: str) -> str:
    """Returns the SQL expression for a column. It takes the first of the column's operations that grew,
    because a server may count the same operation under two names."""
    columns, within_others = counted()
    if name == "time_us":
        return _bounded("sum(growth) FILTER (quantity = 'time_seconds')")
    if name == "other":
        known = [operation for sources in columns.values() for operation, kind in sources
                 if kind == "operations"]  # fmt: skip
        listed = ", ".join(f"'{operation}'" for operation in (*known, *within_others))
        return _bounded(f"sum(growth) FILTER (quantity = 'operations' AND operation NOT IN ({listed}))")
    found = (
        f"max(growth) FILTER (operation = '{operation}' AND quantity = '{kind}' AND growth > 0)"
        for operation, kind in columns[name]
    )
    return _bounded(f"coalesce({', '.join(found)}, 0)")


def _bounded(value: str) -> str:
    return f"least(coalesce({value}, 0), {_MOST})::BIGINT"


def targets(step: int) -> str:
    """Returns SQL for the rows of `targets`."""
    endings = " ".join(f"WHEN '{kind}' THEN {_ending(kind)}" for kind in QUANTITIES)
    units = " ".join(f"WHEN '{kind}' THEN '{unit}'" for kind, (unit, _) in QUANTITIES.items() if unit)
    metric, unit = f"operation || CASE quantity {endings} ELSE '' END", f"CASE quantity {units} END"
    place = "e.host, e.source, e.file_system, e.target"
    return f"""
        {_growths(step)}, levels AS (
            SELECT e.entry, s.ts, c.operation, s.value FROM samples s JOIN counters c USING (series)
            JOIN entries e USING (entry) WHERE c.quantity = 'level'
        )
        SELECT g.begin_ts, g.end_ts, {place}, {metric} AS metric, {unit} AS unit, bucket, false AS is_level,
            growth AS value, NULL::BIGINT AS greatest, exact
        FROM grown g JOIN entries e USING (entry) WHERE growth > 0 AND e.known_by IS NULL
        UNION ALL SELECT ts, ts, {place}, operation, NULL, NULL, true, value, value, true
        FROM levels JOIN entries e USING (entry) WHERE e.known_by IS NULL
    """


def _ending(quantity: str) -> str:
    """Returns SQL for the ending that is added to an operation to form the name of its metric, as by
    `Quantity::metric_name` in crates/iodock-samples."""
    ending = QUANTITIES[quantity][1]
    if quantity == "operations":
        return "CASE WHEN operation LIKE '%\\_bytes' ESCAPE '\\' THEN '_count' ELSE '' END"
    if quantity == "bytes":
        return f"CASE WHEN operation LIKE '%\\_bytes' ESCAPE '\\' THEN '' ELSE '{ending}' END"
    return f"'{ending}'"
