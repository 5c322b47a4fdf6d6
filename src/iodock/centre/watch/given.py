"""Remembers the rounds of each server that were processed, so that each round is judged only once even if
clocks are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from iodock.centre.monitor.questions.servers import LATE
from iodock.centre.watch.observation import Observation

STRAGGLES = 8
"""A round is late if it is at most this number of rounds before the last one. An earlier round comes from a
clock that was set back."""
Mark = tuple[object, ...]
"""Distinguishes two rounds with the same number, which occur if a clock was set."""


@dataclass
class Given:
    seen: dict[str, int] = field(default_factory=dict)
    """For each host, the last round that was processed."""
    _marks: dict[str, dict[int, Mark]] = field(default_factory=dict)
    """For each host, rounds that may be seen again because the host's clock is ahead or ours was set back."""

    def may_be_new(self, host: str, at: int) -> bool:
        """Returns whether a round of a host may be new: it is later than the last processed round, or so much
        earlier that the host's clock was probably set back, or the host's clock is under observation."""
        last = self.seen.get(host)
        return last is None or at > last or last - at > STRAGGLES or host in self._marks

    def fresh(
        self, found: Sequence[tuple[int, Observation]], now: int, step: int, is_set_back: bool
    ) -> list[Observation]:
        """Returns the observations of new rounds in the order of time, and marks them as processed. NOW is
        the time of this machine's clock in ns since the epoch. IS_SET_BACK says that this clock was set back,
        so rounds that were already processed appear again."""
        fresh: list[Observation] = []
        marks, self._marks = self._marks, {}
        ahead = {one.host for _, one in found if one.end_ns > now + step}
        for at, one in sorted(found, key=lambda pair: pair[0]):
            known, mark = marks.get(one.host, {}), _mark(one)
            last = self.seen.get(one.host)
            # A round is used when it is complete. If the host's clock is ahead, this is not known, and the
            # round is used at once.
            is_over = at * step + step // LATE <= now or one.end_ns > now
            is_late = last is not None and 0 <= last - at <= STRAGGLES
            is_old = last is not None and at <= last and (is_late or is_set_back)
            if is_over and not is_old and known.get(at) != mark:
                self.seen[one.host] = at
                fresh.append(one)
            elif not is_old and at not in known:
                continue
            if is_set_back or one.host in marks or one.host in ahead:
                # The mark of the round is kept. If the round appears again with the same mark, it was already
                # processed.
                self._marks.setdefault(one.host, {})[at] = mark
        return fresh


def _mark(one: Observation) -> Mark:
    """Returns values that identify a round of an agent. Counts are not used, because they may still change
    when late rows of the round arrive."""
    return one.end_ns, one.cpu, one.load, one.uptime_s
