"""Instants in words, for views."""

from iodock.relations.clock import NS, clock_text

__all__ = ["NS", "clock_text"]
