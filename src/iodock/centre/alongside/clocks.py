"""Measures the difference between the clock of a recording and the clock of an agent on the same machine.
Both read the same kernel counters, so the right difference is the one at which the counters grow equally in
both."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from iodock.centre.monitor.questions.spans import SECOND
from iodock.shared.meanwhile import ClockOffset, CounterSeries, NotJoined

FARTHEST_S = 600
"""Largest difference between the two clocks that is searched for, s."""
MOST_WITHIN_S = 5.0
"""The difference must be known to this precision, or to a tenth of the agent's interval if that is longer."""
_LEAST_ROWS = 3
"""Number of agent intervals that must lie within the recording, at any start."""
_MOST_ROWS = 40
"""Number of intervals of a recording that are compared."""
_MOST_SERIES = 6
_GOOD = 0.1
"""Share of the growth that may lie in another interval. If it is larger at the best offset, no offset
fits."""
_AS_GOOD = 0.05
"""Offsets whose error exceeds the smallest by no more than this are equally good."""
_ALIKE = 0.001
_STEP_S = 1.0

Key = tuple[str, str, str]
"""Identifies a counter by source, target and metric, as agents name them."""
Row = tuple[int, int, float]
"""Begin and end of an interval, and the counter's growth in it."""
AGENT_METRICS: Mapping[tuple[str, str], str] = {
    ("diskstats", "read_bytes"): "read_bytes",
    ("diskstats", "written_bytes"): "write_bytes",
    ("mountstats", "server_read_bytes"): "server_read_bytes",
    ("mountstats", "server_written_bytes"): "server_write_bytes",
}
"""Maps a recording's source and metric to the name that agents use for the metric."""


def key_of(series: CounterSeries) -> Key | None:
    """Returns the key under which agents report a recorded counter, or None if this counter is not
    compared."""
    metric = AGENT_METRICS.get((series.source, series.metric))
    return None if metric is None else (series.source, series.target, metric)


def compared(
    counters: Sequence[CounterSeries], rows: Mapping[Key, Sequence[Row]], host: str
) -> ClockOffset | NotJoined:
    """Compares the counters of a recording with ROWS, which the agent on HOST sent. Returns the offset of the
    agent's clock, or the reason why it is unknown."""
    pairs = [
        _Pair.of(one, rows[key]) for one in counters if (key := key_of(one)) in rows and key and one.points
    ]
    pairs = sorted(pairs, key=lambda pair: pair.values[0] - pair.values[-1])[:_MOST_SERIES]
    if not any(pair.is_long for pair in pairs):
        return "too-few"
    pairs = [pair for pair in pairs if pair.is_long]
    steps = int(FARTHEST_S / _STEP_S)
    errors = {at: found for at in range(-steps, steps + 1) if (found := _error(pairs, at)) is not None}
    # The offset 0 can't be judged because too few intervals are covered. Another offset could then fit by
    # chance, so none is returned.
    if 0 not in errors:
        return "too-few"
    least = min(errors.values())
    if least > _GOOD:
        return "no-match"
    good = [at for at, error in errors.items() if error <= least + _AS_GOOD]
    alike = [at for at in good if errors[at] <= least + _ALIKE]
    # If several offsets fit equally well, 0 is preferred, and else their median.
    best = 0 if 0 in alike else int(median(alike))
    within = (max(best - min(good), max(good) - best) + 1) * _STEP_S
    if within > max(MOST_WITHIN_S, min(pair.length for pair in pairs) / 10 / SECOND):
        return "too-vague"
    return ClockOffset(int(best * _STEP_S * SECOND), int(within * SECOND), True, host)


def _error(pairs: Sequence[_Pair], at: int) -> float | None:
    """Returns the mean error of all counters if the offset is AT steps of _STEP_S, or None if too few
    intervals are covered. The error is the share of the growth that the two programs read in different
    intervals."""
    found = [pair.error(int(at * _STEP_S * SECOND)) for pair in pairs]
    told = [one for one in found if one is not None]
    return sum(told) / len(told) if told else None


@dataclass(frozen=True)
class _Pair:
    """The samples of one counter from the recording and from the agent."""

    times: list[int]
    values: list[float]
    """Samples of the recording."""
    rows: list[Row]
    """Samples of the agent, in order."""
    ends: list[int]
    length: int
    """Length of an interval, ns."""
    least: int
    """Intervals that must be covered to judge an offset."""

    @classmethod
    def of(cls, series: CounterSeries, rows: Sequence[Row]) -> _Pair:
        ordered = sorted(rows)
        length = int(median(end - begin for begin, end, _ in ordered)) or 1
        points = _busiest(series.points, _MOST_ROWS * length)
        span = points[-1][0] - points[0][0]
        # Intervals shorter than half the usual length are left out. They were cut off, and counting them
        # would give some offsets more intervals than others.
        whole = [row for row in ordered if row[1] - row[0] >= length // 2]
        return cls(
            [at for at, _ in points],
            [value for _, value in points],
            whole,
            [end for _, end, _ in whole],
            length,
            max(_LEAST_ROWS, span // length // 2),
        )

    @property
    def is_long(self) -> bool:
        """Returns whether the recording is so long that it covers at least _LEAST_ROWS intervals of the agent
        at any offset."""
        return self.times[-1] - self.times[0] >= (_LEAST_ROWS + 1) * self.length

    def error(self, offset: int) -> float | None:
        """Returns the relative difference between the growths in the recording and in the agent's intervals
        if the agent's clock is OFFSET ns ahead. Returns None if too few intervals are covered or nothing
        grew."""
        wrong = grown = 0.0
        covered = 0
        first, last = self.times[0] + offset, self.times[-1] + offset
        for begin, end, growth in self.rows[bisect_left(self.ends, first) : bisect_right(self.ends, last)]:
            if begin < first:
                continue
            covered += 1
            least, most = self._growth(begin - offset, end - offset)
            wrong += max(least - growth, growth - most, 0.0)
            grown += max(growth, least)
        return wrong / grown if covered >= self.least and grown > 0 else None

    def _growth(self, begin: int, end: int) -> tuple[float, float]:
        """Returns the lowest and highest possible growth of the recorded counter from BEGIN to END. The
        counter is known only at samples. If BEGIN or END is between two samples, the growth between these
        samples may be before or after it."""
        first, last = bisect_right(self.times, begin), bisect_left(self.times, end)
        most = self.values[min(last, len(self.values) - 1)] - self.values[first - 1]
        return max(0.0, self.values[last - 1] - self.values[min(first, len(self.values) - 1)]), most


def _busiest(points: Sequence[tuple[int, float]], length: int) -> Sequence[tuple[int, float]]:
    """Returns the samples of the period of LENGTH ns in which the counter grew most. Only this period is
    compared, because comparing a whole long recording would take too long."""
    best, begin = (0.0, 0, len(points)), 0
    if points[-1][0] - points[0][0] <= length:
        return points
    for end, (at, value) in enumerate(points):
        while at - points[begin][0] > length:
            begin += 1
        best = max(best, (value - points[begin][1], begin, end + 1))
    return points[best[1] : best[2]]
