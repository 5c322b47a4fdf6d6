"""The one quantile of iodock; the SQL engine's `quantile_cont` is the same."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(ordered: Sequence[float], share: float) -> float:
    """Linear interpolation between the two nearest of ascending values (type 7 of Hyndman and Fan, 1996)."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
