"""Decides whether the difference between runs before and after is larger than the spread of the runs. It uses
an exact test, because approximations need more runs than there usually are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from iodock.program.comparison.data import Change, Sureness

ENOUGH_RUNS = 4
"""With fewer runs even the clearest difference arises by chance in more than 5 % of all cases (3 and 3 runs:
10 %, 4 and 4: 2.9 %)."""
CHANCE = 0.05


def change(before: Sequence[float | None], after: Sequence[float | None]) -> Change:
    """Returns the change of one quantity, with its significance."""
    first, second = ([value for value in side if value is not None] for side in (before, after))
    chance = p_value(first, second) if min(len(first), len(second)) >= ENOUGH_RUNS else None
    return Change(tuple(before), tuple(after), _sureness(first, second, chance), chance)


def _sureness(before: Sequence[float], after: Sequence[float], chance: float | None) -> Sureness:
    if not before or not after:
        return Sureness.UNKNOWN
    if len({*before, *after}) == 1:
        return Sureness.SAME
    if len(before) == len(after) == 1:
        return Sureness.SINGLE
    if chance is not None:
        return Sureness.CLEAR if chance < CHANCE else Sureness.NOISE
    apart = max(before) < min(after) or max(after) < min(before)
    return Sureness.FEW if apart else Sureness.NOISE


def p_value(before: Sequence[float], after: Sequence[float]) -> float:
    """Returns the p-value of the exact two-sided Mann-Whitney test (Mann and Whitney 1947,
    doi:10.1214/aoms/1177730491). Equal values share their mean rank. The p-value is the probability that a
    random division of the values into two sides gives a rank sum that is at least as far from its expected
    value."""
    ranks = _doubled_ranks([*before, *after])
    return _exact(tuple(sorted(ranks)), len(before), sum(ranks[: len(before)]))


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Returns twice the rank of each value. Values that are equal share a rank, which may end in .5, so its
    double is an integer."""
    return [sum(2 * (one < value) + (one == value) for one in values) + 1 for value in values]


@cache
def _exact(ranks: tuple[int, ...], size: int, found: int) -> float:
    # `ways[SIZE]` has, for each sum, the number of ways to choose SIZE ranks with this sum. All these numbers
    # are packed into one long integer, with WIDTH bits for each sum.
    width = len(ranks) + 1
    ways = [1] + [0] * size
    for rank in ranks:
        for chosen in range(size, 0, -1):
            ways[chosen] += ways[chosen - 1] << (width * rank)
    counts = _digits(ways[size], width)
    # The expected sum is sum(ranks) * size / len(ranks). Both sides of the comparison are multiplied by
    # len(ranks), so that all values are integers and exact.
    expected = sum(ranks) * size
    distance = abs(found * len(ranks) - expected)
    extreme = sum(count for at, count in counts if abs(at * len(ranks) - expected) >= distance)
    return extreme / sum(count for _, count in counts)


def _digits(number: int, width: int) -> list[tuple[int, int]]:
    size = width * (number.bit_length() // width + 1)
    bits = f"{number:0{size}b}"
    total = len(bits) // width
    digits = ((total - 1 - at, int(bits[at * width : (at + 1) * width], 2)) for at in range(total))
    return [(at, count) for at, count in digits if count]
