"""Formats numbers for axes and texts in readable units: bytes from B to EiB, times from ns to h, and counts
with k, M and G.

All ticks of an axis have the same unit, which the largest value determines. Ticks are at round numbers of
this unit. Ticks at powers of ten of bytes would get labels such as 976.6 KiB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

Step = tuple[float, str]

_BINARY: tuple[Step, ...] = tuple(
    (1024.0**power, name) for power, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB"))
)
_CLOCK: tuple[Step, ...] = ((1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"), (3.6e12, "h"))
_COUNT: tuple[Step, ...] = (
    (1.0, ""),
    (1e3, "k"),
    (1e6, "M"),
    (1e9, "G"),
    (1e12, "T"),
    (1e15, "P"),
    (1e18, "E"),
)

# Times below this number of ns are formatted in seconds, because 7,200 s can be compared more easily with
# other seconds than 2 h.
_HOURS_FROM_NS = 3.6e13
# Counts below this are written with all digits on axes.
_SHORT_COUNTS_FROM = 10_000


@dataclass(frozen=True, slots=True)
class Unit:
    """One kind of quantity, which determines how values are formatted and how an axis is divided."""

    steps: tuple[Step, ...]
    suffix: str = ""

    def step(self, value: float) -> Step:
        """Returns the largest unit that is not larger than VALUE."""
        chosen = self.steps[0]
        for step in self.steps:
            if self._starts_at(step) <= abs(value):
                chosen = step
        return chosen

    def text(self, value: float | None) -> str:
        """Formats a value with three significant digits. Counts are written with all digits. None becomes
        `not known`."""
        if value is None:
            return "not known"
        if self.steps is _COUNT:
            whole = float(value).is_integer() or abs(value) >= 100
            return f"{value:,.0f}{self.suffix}" if whole else f"{number_text(value)}{self.suffix}"
        size, name = self.step(value)
        scaled = value / size
        digits = f"{scaled:,.0f}" if scaled >= 100 or float(scaled).is_integer() else number_text(scaled)
        return f"{digits} {name}{self.suffix}"

    def ticks(self, maximum: float, wanted: int = 5) -> list[float]:
        """Returns round values for the ticks of an axis, from 0 to at least MAXIMUM. They are in base units,
        such as bytes."""
        if not maximum > 0:
            return [0.0, 1.0]
        size, _ = self._axis_step(maximum)
        top = maximum / size
        stride = _round_up(top / wanted)
        if size == 1.0 and self.suffix == "" and self.steps is not _CLOCK:
            stride = max(1.0, stride)  # Calls and bytes have no fractions.
        steps = max(1, math.ceil(top / stride - 1e-9))
        return [index * stride * size for index in range(steps + 1)]

    def label_expression(self, maximum: float) -> str:
        """Returns a Vega expression that formats the ticks of `ticks(maximum)`. It leaves out the sign,
        because mirrored charts have negative values on one side."""
        size, name = self._axis_step(maximum)
        unit = f"{name}{self.suffix}".strip()
        space = "" if self.steps is _COUNT else " "
        return f"format(abs(datum.value) / {size!r}, ',.6~g') + (datum.value == 0 ? '' : '{space}{unit}')"

    def log_label_expression(self) -> str:
        """Returns a Vega expression that formats the ticks of a logarithmic axis. Each tick has a unit of its
        own."""
        space = "" if self.steps is _COUNT else " "
        parts = [
            f"datum.value >= {self._starts_at(step)!r} ? "
            f"format(datum.value / {step[0]!r}, ',.4~g') + '{space}{step[1]}{self.suffix}'"
            for step in reversed(self.steps)
        ]
        return " : ".join(parts) + f" : format(datum.value, '~g') + '{space}{self.steps[0][1]}{self.suffix}'"

    def _axis_step(self, maximum: float) -> Step:
        # The next larger unit is used already slightly below its start, because a tick of 1,000 MiB or 1,000k
        # is easier to read in that unit.
        return self.step(maximum * (1.024 if self.steps is _BINARY else 1.25))

    def _starts_at(self, step: Step) -> float:
        if step[1] == "h":
            return _HOURS_FROM_NS
        if self.steps is _COUNT and step[1] == "k":
            return _SHORT_COUNTS_FROM
        return step[0]


BYTES = Unit(_BINARY)
BYTES_PER_SECOND = Unit(_BINARY, "/s")
NANOSECONDS = Unit(_CLOCK)
COUNT = Unit(_COUNT)
COUNT_PER_SECOND = Unit(_COUNT, "/s")
PERCENT = Unit(((1.0, ""),), "%")


# Numbers above this have too many digits, and are written with an exponent.
_UNREADABLE = 1e15


def number_text(value: float, digits: int = 3) -> str:
    """Formats a number with DIGITS significant digits. The digits before the decimal point are always
    complete: `1,643`, `16.4`, `0.000012`."""
    if 10 ** (digits - 1) <= abs(value) < _UNREADABLE:
        return f"{value:,.0f}"
    text = f"{value:,.{digits}g}"
    if "e" not in text or not 1 / _UNREADABLE < abs(value) < _UNREADABLE:
        return text
    from decimal import Decimal

    return f"{Decimal(text):f}"


def unit_of(column: str) -> Unit:
    """Returns the unit that the ending of a column's name indicates, such as `total_time_ns` or
    `read_bytes`."""
    if column.endswith("_ns") or column in ("ts", "dur"):
        return NANOSECONDS
    if column == "bytes_per_s":
        return BYTES_PER_SECOND
    if column.endswith("_per_s"):
        return COUNT_PER_SECOND
    return BYTES if column.endswith("bytes") else COUNT


def measured(metric: str, kind: str) -> tuple[Unit, float]:
    """Returns the unit in which a sample of the machine is shown, and the factor by which its value must be
    multiplied. METRIC ends in the unit of the sample. KIND is `rate` (growth per second) or `level`. The
    growth of a time per second is shown as a percentage."""
    if metric.endswith("_bytes"):
        return (BYTES_PER_SECOND if kind == "rate" else BYTES), 1.0
    if metric.endswith("_percent"):
        return PERCENT, 1.0
    if kind == "rate" and metric.endswith(("_us", "_ms", "_ns")):
        return PERCENT, {"us": 1e-4, "ms": 1e-1, "ns": 1e-7}[metric[-2:]]
    return (COUNT_PER_SECOND if kind == "rate" else COUNT), 1.0


def decades(lowest: float, highest: float) -> list[float]:
    """Returns at most nine powers of ten. The first is not above LOWEST, and the last not below HIGHEST. Both
    must be above 0."""
    first = math.floor(math.log10(lowest) + 1e-9)
    last = max(first + 1, math.ceil(math.log10(highest) - 1e-9))
    stride = math.ceil((last - first) / 8)
    last = first + math.ceil((last - first) / stride) * stride
    return [10.0**power for power in range(first, last + 1, stride)]


def _round_up(value: float) -> float:
    """Returns the smallest number of the form 1, 2 or 5 times a power of ten that is not below VALUE."""
    power = 10.0 ** math.floor(math.log10(value))
    for factor in (1.0, 2.0, 5.0):
        if value <= factor * power * (1 + 1e-9):
            return factor * power
    return 10.0 * power


def share_text(share: float) -> str:
    """Formats a share from 0 to 1 as a percentage, such as `37 %`, `4.2 %` or `<0.1 %`."""
    percent = share * 100
    if 0 < percent < 0.1:
        return "<0.1 %"
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.1f} %"
