"""Implements the counter of one operation on a server and its growth. All numbers are integers, so that sums
are exact."""

from __future__ import annotations

SECOND_NS = 1_000_000_000


class Tally:
    """The counter of one operation as in Lustre: number of samples, and the smallest and largest amount, the
    sum and the sum of squares. The amount is in bytes for `..._bytes`, else in microseconds."""

    __slots__ = ("by_size", "largest", "samples", "smallest", "sum", "sum_of_squares")

    def __init__(self) -> None:
        self.samples = self.smallest = self.largest = self.sum = self.sum_of_squares = 0
        self.by_size: dict[int, int] = {}
        """Number of samples by amount."""

    def add(self, samples: int, amount: int) -> None:
        """Adds SAMPLES samples that have the same amount."""
        if samples <= 0:
            return
        self.smallest = min(self.smallest, amount) if self.samples else amount
        self.largest = max(self.largest, amount)
        self.samples += samples
        self.sum += samples * amount
        self.sum_of_squares += samples * amount * amount
        self.by_size[amount] = self.by_size.get(amount, 0) + samples

    def merge(self, other: Tally) -> None:
        for amount, samples in other.by_size.items():
            self.add(samples, amount)

    def copy(self) -> Tally:
        copied = Tally()
        copied.merge(self)
        return copied


class Rate:
    """An operation that occurs at a fixed rate, with the same amount each time."""

    __slots__ = ("amount", "count_name", "operation", "period_ns", "sum_name")

    def __init__(self, operation: str, period_ns: int, amount: int) -> None:
        self.operation, self.period_ns, self.amount = operation, max(1, period_ns), amount
        self.count_name, self.sum_name = counter_names(operation)

    @classmethod
    def per_second(cls, operation: str, per_s: float, amount: int) -> Rate:
        return cls(operation, int(SECOND_NS / per_s), amount)

    def slowed(self, speed: float) -> Rate:
        """Returns the same rate multiplied by SPEED (more than 0; 1: unchanged)."""
        return self if speed == 1 else Rate(self.operation, int(self.period_ns / speed), self.amount)


def counter_names(operation: str) -> tuple[str, str]:
    """Returns the names of the number and of the sum, as in `iodock-agent`: `read_bytes_count` and
    `read_bytes`, `open` and `open_time`."""
    if operation.endswith("_bytes"):
        return f"{operation}_count", operation
    return operation, f"{operation}_time"


Tallies = dict[str, Tally]
"""The tally of each operation."""


def add_all(into: Tallies, tallies: Tallies) -> None:
    for operation, tally in tallies.items():
        into.setdefault(operation, Tally()).merge(tally)
