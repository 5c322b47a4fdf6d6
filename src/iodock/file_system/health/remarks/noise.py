"""Estimates how large differences by chance are: the common spread of a group of cells, and tail
probabilities of the t and F distributions.

Values are compared as logarithms, because rates differ by factors. Formulas: Abramowitz and Stegun, Handbook
of Mathematical Functions, 26.5.8 (incomplete beta function), 26.6.2, 26.7.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from iodock.file_system.health.measurements import Cell

_SMALL = 1e-300
_MEDIAN_ERROR, _UNKNOWN_ERROR = 1.2, 1.1
"""Error of a median of a few values, relative to the error of their mean. The second factor is used if it is
unknown whether a value is a median or a mean."""


def _fraction(a: float, b: float, x: float) -> float:
    """Computes the continued fraction of the incomplete beta function by Lentz's method."""
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-12:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _SMALL else _SMALL


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Computes I_x(a, b), the regularised incomplete beta function, for a, b > 0 and x in 0..1."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logarithm + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


def t_tails(t: float, degrees: float) -> float:
    """Returns the probability that the absolute value of Student's t, with DEGREES degrees of freedom, is at
    least |T|."""
    return incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))


def f_tail(f: float, upper: float, lower: float) -> float:
    """Returns the probability that a value of the F distribution is at least F. UPPER and LOWER are the
    degrees of freedom of the numerator and the denominator."""
    return incomplete_beta(lower / 2.0, upper / 2.0, lower / (lower + upper * f)) if f > 0 else 1.0


@lru_cache(maxsize=1024)
def t_limit(alpha: float, degrees: float) -> float:
    """Returns the value of |t| that is exceeded with probability ALPHA. It is found by bisection."""
    low, high = 0.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if t_tails(middle, degrees) > alpha else (low, middle)
    return high


def log_spread(cell: Cell) -> float | None:
    """Estimates the standard deviation of the logarithm of one repeat. Returns None if the cell's spread is
    not known."""
    return None if cell.spread is None else math.sqrt(math.log1p(cell.spread**2))


@dataclass(frozen=True)
class Noise:
    """The common spread of the cells of one test and operation."""

    sigma: float
    """Standard deviation of the logarithm of one repeat."""
    degrees: float
    """Degrees of freedom of the spread `sigma`."""
    unstable: frozenset[int]
    """The `id` of cells whose own spread is far above that of the others."""

    def error(self, cell: Cell) -> float:
        """Returns the standard error of the logarithm of a cell's value."""
        own = log_spread(cell)
        variance = self.sigma**2
        if own is not None:
            # A few repeats give a poor estimate of the spread, so the cell's own spread counts only a
            # quarter, and the common spread three quarters. For an unstable cell its own spread is used if it
            # is larger.
            variance = max(own**2, variance) if id(cell) in self.unstable else (3.0 * variance + own**2) / 4.0
        factor = _MEDIAN_ERROR if len(cell.values) > 2 else _UNKNOWN_ERROR
        return factor * math.sqrt(max(variance, 1e-8) / (cell.repeats or 1))


def noise_of(cells: Sequence[Cell], alpha: float) -> Noise | None:
    """Estimates the common spread of CELLS. Unstable cells are left out. Returns None if there are fewer than
    three degrees of freedom."""
    measured = [
        (cell, spread, (cell.repeats or 1) - 1)
        for cell in cells
        if (spread := log_spread(cell)) is not None and (cell.repeats or 1) > 1
    ]
    unstable: set[int] = set()
    for _ in range(3):
        kept = [one for one in measured if id(one[0]) not in unstable]
        whole = _pooled(kept)
        found = {id(one[0]) for one in kept if _stands_out(one, whole, alpha)}
        if not found:
            break
        unstable |= found
    variance, degrees = _pooled([one for one in measured if id(one[0]) not in unstable])
    return Noise(math.sqrt(variance), degrees, frozenset(unstable)) if degrees >= 3 else None


def _pooled(measured: Sequence[tuple[Cell, float, int]]) -> tuple[float, float]:
    degrees = sum(one[2] for one in measured)
    return (sum(one[1] ** 2 * one[2] for one in measured) / degrees if degrees else 0.0), float(degrees)


def _stands_out(one: tuple[Cell, float, int], whole: tuple[float, float], alpha: float) -> bool:
    """Returns whether a cell's spread is far above that of the others. WHOLE contains the variance and
    degrees of freedom of all cells together, including this one."""
    _, spread, degrees = one
    lower = whole[1] - degrees
    if lower < 3:
        return False
    others = max((whole[0] * whole[1] - spread**2 * degrees) / lower, 1e-8)
    return f_tail(spread**2 / others, degrees, lower) < alpha
