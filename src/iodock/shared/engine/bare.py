"""The part of DuckDB that SQL and Python's own values need.

The package `duckdb` consists of an extension (`_duckdb`) and relations written in Python. A command that runs
a few queries needs no relations, and loading them takes longer than its answer. `whole` loads them, for data
that is exchanged as Arrow.
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
    """Loads the rest of DuckDB. Existing connections can use it from then on."""
    import duckdb  # noqa: F401
