"""Contains statistical tests that make no assumptions about the distribution of durations. All of them use
ranks or medians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from statistics import median


def ranks(values: Sequence[float]) -> list[float]:
    """Returns the rank of each value, starting with 1. Equal values get the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for place in order[at : end + 1]:
            found[place] = (at + end) / 2 + 1
        at = end + 1
    return found


def normal_tail(z: float) -> float:
    """Returns the probability that the absolute value of a standard normal variable exceeds |Z|."""
    return math.erfc(abs(z) / math.sqrt(2))


def chi_square_tail(value: float, freedom: int) -> float:
    """Returns the probability that a chi-square variable exceeds VALUE (approximation of Wilson and Hilferty,
    1931). FREEDOM is the number of degrees of freedom."""
    spread = 2 / (9 * freedom)
    z = ((value / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 0.5 * math.erfc(z / math.sqrt(2))


def pettitt(values: Sequence[float]) -> tuple[int, float]:
    """Pettitt's test (1979, doi:10.2307/2346729). Returns the index of the first value after the most likely
    change in level, and the probability that values without a change look like this."""
    count = len(values)
    sums = list(accumulate(ranks(values)))[:-1]
    scores = [abs(2 * total - (at + 1) * (count + 1)) for at, total in enumerate(sums)]
    best = max(range(len(scores)), key=scores.__getitem__)
    chance = 2 * math.exp(-6 * scores[best] ** 2 / (count**3 + count**2))
    return best + 1, min(1.0, chance)


def mann_kendall(values: Sequence[float]) -> float:
    """The test of Mann (1945) and Kendall (1975). Returns the probability that values without a trend rise or
    fall this steadily."""
    count = len(values)
    score = sum(
        (values[after] > values[at]) - (values[after] < values[at])
        for at in range(count)
        for after in range(at + 1, count)
    )
    variance = count * (count - 1) * (2 * count + 5) / 18
    return normal_tail((abs(score) - 1) / math.sqrt(variance)) if score else 1.0


def theil_sen(times: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Fits a straight line. Returns its slope and its value at time 0. The slope is the median of the slopes
    between all pairs of points (Sen, 1968)."""
    slopes = [
        (values[after] - values[at]) / (times[after] - times[at])
        for at in range(len(values))
        for after in range(at + 1, len(values))
        if times[after] != times[at]
    ]
    slope = median(slopes)
    return slope, median(value - slope * time for time, value in zip(times, values, strict=True))


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """The test of Mann and Whitney (normal approximation). Returns the probability that two groups from one
    distribution differ this much. Each group needs at least eight values."""
    here, there = len(first), len(second)
    total = sum(ranks([*first, *second])[:here])
    expected = here * (here + there + 1) / 2
    return normal_tail((total - expected) / math.sqrt(here * there * (here + there + 1) / 12))


def friedman(blocks: Sequence[Sequence[float]]) -> float:
    """Friedman's test (1937). Returns the probability that the columns differ this much by chance. Each block
    has one value per column, and only the ranks within a block count, so blocks may have different levels."""
    count, width = len(blocks), len(blocks[0])
    sums = [sum(column) for column in zip(*(ranks(block) for block in blocks), strict=True)]
    score = 12 / (count * width * (width + 1)) * sum(one**2 for one in sums) - 3 * count * (width + 1)
    return chi_square_tail(max(score, 0.0), width - 1)
