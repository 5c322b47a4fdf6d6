"""Imports only the part of DuckDB that executes SQL and returns Python values.

The package `duckdb` consists of an extension module (`_duckdb`) and of relations that are written in Python.
A command that runs only a few queries does not need relations, and importing them takes longer than the
queries. `whole` imports them for answers in Arrow's format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb as bare
else:
    try:
        import _duckdb as bare
    except ImportError:
        import duckdb as bare

__all__ = ["bare", "whole"]


def whole() -> None:
    """Imports the rest of DuckDB. Connections that are already open can use it as well."""
    import duckdb  # noqa: F401
