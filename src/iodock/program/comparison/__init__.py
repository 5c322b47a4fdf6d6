"""Compares runs: reports what changed and by how much, and whether chance explains it."""

from iodock.program.comparison.compare import compare
from iodock.program.comparison.data import Comparison

__all__ = ["Comparison", "compare"]
