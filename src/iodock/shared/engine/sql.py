"""Contains the function that quotes texts for SQL."""

from __future__ import annotations


def quoted(text: str) -> str:
    """Returns TEXT as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
