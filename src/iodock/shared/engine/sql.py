"""Quotes texts for SQL."""

from __future__ import annotations


def quoted(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
