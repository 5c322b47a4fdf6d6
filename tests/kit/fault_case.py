"""A fault written as a log with known times, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Log = TypeVar("Log")


@dataclass(frozen=True)
class Case(Generic[Log]):
    """A fault, what is to be said of it, and the same work done well."""

    rule: str
    fault: Callable[[Log], None]
    count: int
    seconds: float
    """Cost."""
    files: tuple[str, ...]
    """The first files named."""
    clean: Callable[[Log], None]
    name: str = ""
