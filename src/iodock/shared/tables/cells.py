"""Protects cells of CSV files against being taken for formulas by a spreadsheet. A file's name, for example,
may be `=HYPERLINK(...)`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

STARTS = "=+-@\t\r\n＝＋－＠"  # noqa: RUF001 (spreadsheets take full-width signs for the others)
"""A text that begins with one of these characters gets an apostrophe before it. Source: OWASP, CSV
Injection."""


def guarded(value: Any) -> Any:
    """Returns the value of a cell. A text that begins like a formula gets an apostrophe in front. Other
    values remain unchanged."""
    return f"'{value}" if isinstance(value, str) and value[:1] and value[0] in STARTS else value


def guarded_row(values: Iterable[Any]) -> list[Any]:
    """Returns the values of a row, each protected by `guarded`."""
    return [guarded(value) for value in values]


def guarded_column(column: pa.Array) -> pa.Array:
    """Returns an Arrow column whose texts are protected in the same way as by `guarded`. Columns of other
    types remain unchanged."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    is_formula = pc.match_substring_regex(column, f"^[{STARTS.replace('-', '')}-]")
    apostrophe = pa.scalar("'", column.type)
    return pc.if_else(
        is_formula, pc.binary_join_element_wise(apostrophe, column, pa.scalar("", column.type)), column
    )
