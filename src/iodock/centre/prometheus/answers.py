"""Converts responses of Prometheus (JSON) to tables in SQL. Samples are not processed in Python, because they
are many."""

from __future__ import annotations

import json

import pyarrow as pa

_FORM = json.dumps(
    {
        "status": "VARCHAR",
        "isPartial": "BOOLEAN",
        "warnings": ["VARCHAR"],
        "data": {"resultType": "VARCHAR", "result": [{"metric": "JSON", "values": [["DOUBLE"]]}]},
    }
)
_MOST = 1 << 62
OPENED = f"CREATE OR REPLACE TEMP TABLE opened AS SELECT from_json(?::JSON, '{_FORM}') AS it"
HEAD = """
    SELECT it.status, it.data.resultType, coalesce(it.isPartial, false), it.warnings[1] FROM opened
"""
SPLIT = """
    CREATE OR REPLACE TEMP TABLE answer AS
    SELECT row_number() OVER () AS number, one.metric AS labels, one."values" AS samples
    FROM (SELECT unnest(it.data.result) AS one FROM opened);
    DROP TABLE opened
"""
SIZE = """
    SELECT coalesce(sum(len(samples)), 0)::BIGINT, count(*) FILTER (
        coalesce(json_type(labels), '') <> 'OBJECT'
        OR len(list_filter(samples, lambda s: NOT coalesce(isfinite(s[1] + s[2]), false))) > 0
    ) FROM answer
"""
"""SQL for the number of samples, and the number of invalid series."""
NUMBERED = pa.schema(
    [pa.field("number", pa.int64()), pa.field("series", pa.int64()), pa.field("part", pa.string())]
)
"""For each row of `answer`: its series and the meaning of its number: a `value`, a `time` in seconds, its
beginning (`start`), or the number of owners of a place that are not listed (`others`)."""
TABLES = """
    CREATE TEMP TABLE every_sample (series BIGINT, ts BIGINT, value BIGINT);
    CREATE TEMP TABLE every_reading (place BIGINT, ts BIGINT, others BIGINT);
    CREATE TEMP TABLE starts (series BIGINT, ts BIGINT, start BIGINT);
    CREATE TEMP TABLE levels (name TEXT, labels JSON, ts BIGINT, value DOUBLE);
    -- Pieces of an answer may have a sample twice, where they meet.
    CREATE TEMP VIEW samples AS SELECT DISTINCT * FROM every_sample;
    CREATE TEMP VIEW readings AS SELECT DISTINCT * FROM every_reading;
"""
# The last step is incomplete and would end after the present time, so its time is set to the present time.
_EACH = """
    SELECT series, part, sample[2] AS value,
        least(round(sample[1] * 1000)::BIGINT * 1000000, {{latest}}) AS ts
    FROM (
        SELECT series, part, unnest(samples) AS sample FROM answer JOIN numbered USING (number) WHERE {parts}
    )
"""
_VALUE = f"least(round(value * CASE part WHEN 'time' THEN 1e6 ELSE 1 END), {_MOST})::BIGINT"
_SORTED = f"""
    INSERT INTO every_sample SELECT series, ts, {_VALUE}
    FROM ({_EACH.format(parts="part IN ('value', 'time')")});
    INSERT INTO every_reading SELECT series, ts, value::BIGINT FROM ({_EACH.format(parts="part = 'others'")});
    -- It seldom changes: only where it does.
    INSERT INTO starts SELECT series, ts, round(value * 1e9)::BIGINT FROM (
        SELECT *, lag(value) OVER (PARTITION BY series ORDER BY ts) AS last
        FROM ({_EACH.format(parts="part = 'start'")})
    ) WHERE value IS DISTINCT FROM last
"""


def sorted_until(latest: int = _MOST) -> str:
    """Returns SQL that loads `answer` into the tables. Times later than LATEST (ns since the epoch) are set
    to LATEST."""
    return _SORTED.format(latest=latest)


LEVELS = """
    INSERT INTO levels SELECT $1, labels, least(round(sample[1] * 1000)::BIGINT * 1000000, $2), sample[2]
    FROM (SELECT labels, unnest(samples) AS sample FROM answer)
"""
SEEN = """
    SELECT ts AS begin_ts, ts AS end_ts, host, source, file_system, target
    FROM readings JOIN places USING (place)
"""
"""SQL for readings as rows of `job_io`, without counts."""
HOSTS = "SELECT ts AS begin_ts, ts AS end_ts, labels->>'host' AS host, 'agent' AS source FROM levels"
"""SQL for readings of machines as rows of `targets`."""
LOSSES = """
    SELECT ts, host, name, source, target, count, '' AS detail FROM (
        SELECT ts, name, labels->>'host' AS host, coalesce(labels->>'target', '') AS target,
            coalesce(labels->>'source', regexp_extract(labels->>'__name__', '^iodock_(.*)_[a-z]+_lines$', 1))
                AS source,
            (CASE name WHEN 'no-answer' THEN 1 - value ELSE value END)::BIGINT AS count
        FROM levels
    ) WHERE count > 0
"""
"""SQL for rows of `losses`."""
