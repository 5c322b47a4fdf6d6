"""Converts small answers to Arrow without the Python package `duckdb`, because that package would plan each
query twice."""

from __future__ import annotations

import warnings

import pyarrow as pa

from iodock.shared.engine.bare import bare, whole

MOST_ROWS = 2_000
"""If there are more rows, it is faster to avoid Python's values in between."""
_TYPES = {
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
    "INTEGER": pa.int32(),
    "MAP(VARCHAR, BIGINT)": pa.map_(
        pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int64())
    ),
    "SMALLINT": pa.int16(),
    "TINYINT": pa.int8(),
    "UBIGINT": pa.uint64(),
    "UINTEGER": pa.uint32(),
    "USMALLINT": pa.uint16(),
    "UTINYINT": pa.uint8(),
    "VARCHAR": pa.string(),
    "VARCHAR[]": pa.list_(pa.field("l", pa.string())),
}
"""Maps the engine's types to Arrow's."""


# DuckDB warns that another function should be used for Arrow. That function would run the query a second
# time.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", module=__name__)


def arrow_table(connection: bare.DuckDBPyConnection, sql: str) -> pa.Table:
    """Returns all rows of a SELECT. Raises duckdb.Error."""
    answer = connection.execute(sql)
    columns = [(str(column[0]), _TYPES.get(str(column[1]))) for column in answer.description or ()]
    if None in [kind for _, kind in columns]:
        whole()
        return connection.to_arrow_table()
    rows = answer.fetchmany(MOST_ROWS)
    values = zip(*rows, strict=True) if rows else ((),) * len(columns)
    made = [pa.array(of, kind) for of, (_, kind) in zip(values, columns, strict=True)]
    first = pa.Table.from_arrays(made, [name for name, _ in columns])
    if len(rows) < MOST_ROWS:
        return first
    whole()
    rest = connection.to_arrow_table()
    return first if rest is None else pa.concat_tables([first, rest])
