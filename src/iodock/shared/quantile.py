"""Defines how iodock computes quantiles. The SQL function `quantile_cont` gives the same results."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(ordered: Sequence[float], share: float) -> float:
    """Returns the quantile of ascending values, interpolated between the two nearest ones (type 7 of Hyndman
    and Fan, 1996)."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
