"""Remembers which rounds of which servers were processed, so that each round is judged once even if clocks
are wrong."""

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
        """Returns whether a round is later than the processed ones, or much earlier because the host's clock
        was set back."""
        last = self.seen.get(host)
        return last is None or at > last or last - at > STRAGGLES or host in self._marks

    def fresh(
        self, found: Sequence[tuple[int, Observation]], now: int, step: int, is_set_back: bool
    ) -> list[Observation]:
        """Selects the rounds that are new, in order. NOW: this machine's clock, ns. IS_SET_BACK: this clock
        was set back, so all rounds of the time are seen again."""
        fresh: list[Observation] = []
        marks, self._marks = self._marks, {}
        ahead = {one.host for _, one in found if one.end_ns > now + step}
        for at, one in sorted(found, key=lambda pair: pair[0]):
            known, mark = marks.get(one.host, {}), _mark(one)
            last = self.seen.get(one.host)
            # If the host's clock is ahead, it is unknown whether a round is complete, so it is used as it is.
            is_over = at * step + step // LATE <= now or one.end_ns > now
            is_late = last is not None and 0 <= last - at <= STRAGGLES
            is_old = last is not None and at <= last and (is_late or is_set_back)
            if is_over and not is_old and known.get(at) != mark:
                self.seen[one.host] = at
                fresh.append(one)
            elif not is_old and at not in known:
                continue
            if is_set_back or one.host in marks or one.host in ahead:
                # Data that arrives late belongs to the same round, so the round's mark is kept.
                self._marks.setdefault(one.host, {})[at] = mark
        return fresh


def _mark(one: Observation) -> Mark:
    """Returns what one agent read in that round. Other counts are left out: those that did not grow become
    known later."""
    return one.end_ns, one.cpu, one.load, one.uptime_s
