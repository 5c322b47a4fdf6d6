"""Describes a fault that is written as a log with known times, and its expected finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Log = TypeVar("Log")


@dataclass(frozen=True)
class Case(Generic[Log]):
    """A fault, its expected finding, and the same work done efficiently."""

    rule: str
    fault: Callable[[Log], None]
    count: int
    seconds: float
    """The cost."""
    files: tuple[str, ...]
    """The first files named."""
    clean: Callable[[Log], None]
    name: str = ""
