"""Compares the Arrow results that iodock obtains without the package `duckdb` with those of that package."""

from __future__ import annotations

import duckdb
import pytest

from iodock.program.store.folds import Groups
from iodock.shared.engine.arrow import MOST_ROWS, arrow_table
from iodock.shared.engine.connection import connected

KNOWN = """SELECT range::{kind} AS a, nullif(range, 3)::VARCHAR AS b, [range::VARCHAR, NULL] AS c,
  range % 2 = 0 AS d, range / 7 AS e,
  map([range::VARCHAR, 'a'], [range, NULL]) AS f FROM range({rows}) ORDER BY a DESC"""
UNKNOWN = """SELECT range::{kind} AS a, sum(range) AS wide, {{'k': range}} AS s
  FROM range({rows}) GROUP BY ALL ORDER BY 1"""


@pytest.mark.parametrize("sql", [KNOWN, UNKNOWN])
@pytest.mark.parametrize("kind", ["TINYINT", "USMALLINT", "UINTEGER", "BIGINT", "DOUBLE"])
@pytest.mark.parametrize("rows", [0, 1, 100, MOST_ROWS - 1, MOST_ROWS, MOST_ROWS + 1, 3 * MOST_ROWS])
def test_types_and_values_equal_those_of_the_engine(sql: str, kind: str, rows: int) -> None:
    asked = sql.format(kind=kind, rows=min(rows, 100) if kind == "TINYINT" else rows)
    with connected() as connection:
        found = arrow_table(connection, asked)
        expected = connection.sql(asked).to_arrow_table()
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.equals(expected)


def test_errors_of_the_engine_are_raised() -> None:
    with connected() as connection, pytest.raises(duckdb.ParserException):
        arrow_table(connection, "SELECT 1 FRM nowhere")


def test_aggregated_rows_are_the_same_with_and_without_arrow() -> None:
    numbers = (-5).to_bytes(8, "little", signed=True) + (2**62).to_bytes(8, "little") + bytes(8)
    folded = Groups(
        3,
        [
            ("a", "int64", numbers, bytes([0b101])),
            ("b", "uint16", bytes([255, 255, 1, 0, 0, 2]), None),
            ("c", "int8", bytes([255, 0, 127]), bytes([0b110])),
            ("d", "double", bytes(24), None),
        ],
    )
    with connected() as connection:
        connection.execute(f"CREATE TABLE few AS {folded.select}", folded.values)
        found = connection.sql("FROM few").to_arrow_table()
    assert found.equals(folded.arrow)
    assert found["a"].to_pylist() == [-5, None, 0]
    assert found["b"].to_pylist() == [65535, 1, 512]
