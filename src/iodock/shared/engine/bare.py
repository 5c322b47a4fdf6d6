"""DuckDB as far as SQL and Python's own values need it.

The package `duckdb` is an extension (`_duckdb`) and relations written in Python. A command that asks a few
questions uses no relations, and they take longer to load than its answer. `whole` loads them, for what goes
in and out as Arrow.
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
    """Loads the rest. Connections that there are can do more from then on."""
    import duckdb  # noqa: F401
