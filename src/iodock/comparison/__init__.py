"""Compares runs: what changed, in what, by how much, and whether chance explains it."""

from iodock.comparison.compare import compare
from iodock.comparison.data import Comparison

__all__ = ["Comparison", "compare"]
