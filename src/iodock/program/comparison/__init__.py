"""Compares runs. Reports what changed and by how much, and whether chance explains the difference."""

from iodock.program.comparison.compare import compare
from iodock.program.comparison.data import Comparison

__all__ = ["Comparison", "compare"]
