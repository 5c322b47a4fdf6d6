"""The only definition of a quantile in iodock. The SQL engine's `quantile_cont` gives the same."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(ordered: Sequence[float], share: float) -> float:
    """Interpolates between the two nearest of the ascending values (type 7 of Hyndman and Fan, 1996)."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
