"""Quotes texts for SQL."""

from __future__ import annotations


def quoted(text: str) -> str:
    """Quotes a text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
