"""Computes the usual values of a server, which are medians over the server's own last hours."""

from __future__ import annotations

from array import array
from statistics import median

from iodock.centre.watch.observation import News, Observation

LEAST = 12
"""With fewer samples there is no usual value."""
_FEW = 16
_MOST = 240
"""Largest number of samples that are kept. Beyond it, first every second one is dropped, then the oldest."""
MIB = 1 << 20


def amounts(one: Observation, news: News) -> dict[str, float]:
    """Returns the quantities that are compared with their usual values, by name: rates per second, levels,
    and times in s. A quantity that was not read is left out."""
    found = {
        "handled": _rate(one.handled, one), "opens": _rate(one.opens, one), "closes": _rate(one.closes, one),
        "creates": _rate(one.creates, one), "object-creates": _rate(one.object_creates, one),
        "moved": _rate(one.moved_bytes, one), "waiting": one.waiting, "wait": one.wait_s,
        "operation": one.operation_s, "operation-mib": _per_mib(one), "threads": one.threads, "cpu": one.cpu,
        "pressure": one.pressure, "load": one.load, "probe": news.probe_s, "answer": news.client_wait_s,
        "backlog": news.backlog,
    }  # fmt: skip
    return {name: value for name, value in found.items() if value is not None}


def _rate(count: float | None, one: Observation) -> float | None:
    return None if count is None else count / one.seconds


def _per_mib(one: Observation) -> float | None:
    """Returns the mean time of an operation in s, divided by the MiB that it moved plus 0.1. This quotient
    shows whether an operation is slow because it moved many bytes."""
    if one.operation_s is None or not one.moved_bytes or not one.handled:
        return None
    return one.operation_s / (0.1 + one.moved_bytes / one.handled / MIB)


class Usual:
    """The usual values of one server for the quantities in `_KEPT`."""

    _KEPT = (
        *("handled", "moved", "waiting", "wait", "operation", "operation-mib", "threads", "load", "probe"),
        *("answer", "backlog", "opens", "closes", "creates", "object-creates", "cpu"),
    )

    def __init__(self, hours: float) -> None:
        self._longest_s = hours * 3600 / _MOST
        """Largest interval between two samples that are kept."""
        self._every_s = self._passed_s = 0.0
        self._values: dict[str, array[float]] = {}
        self._medians: dict[str, float] = {}

    def of(self, name: str) -> float | None:
        return self._medians.get(name)

    @property
    def known(self) -> frozenset[str]:
        """Returns the names of the quantities that have a usual value."""
        return frozenset(self._medians)

    @property
    def is_known(self) -> bool:
        return "handled" in self._medians

    def add(self, found: dict[str, float], seconds: float) -> None:
        """Adds a sample of a time in which the server had no problems. SECONDS is the length of the sample.
        If samples are frequent, only one in each interval is kept."""
        self._passed_s += seconds
        if self._passed_s < self._every_s:
            return
        self._passed_s = 0.0
        for name in self._KEPT:
            value = found.get(name)
            if value is not None:
                kept = self._values.setdefault(name, array("d"))
                kept.append(value)
                # Up to _FEW samples, the median is computed after each one. Later it is computed after every
                # _FEW samples, because a single one hardly changes it.
                if LEAST <= len(kept) <= _FEW or len(kept) % _FEW == 0:
                    self._medians[name] = median(kept)
        if len(self._values.get("handled", ())) > _MOST:
            self._thin(seconds)

    def _thin(self, seconds: float) -> None:
        if self._every_s < self._longest_s:
            self._every_s = min(max(self._every_s, seconds) * 2, self._longest_s)
            self._values = {name: kept[::2] for name, kept in self._values.items()}
        else:
            self._values = {name: kept[1:] for name, kept in self._values.items()}
