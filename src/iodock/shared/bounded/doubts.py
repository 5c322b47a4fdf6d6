"""Defines limits for measured numbers, and counts the numbers that exceed them.

The limits are far above what any machine can reach, so that no real measurement is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_BYTES_PER_S = 1e16
"""The fastest file systems reach 1e14 bytes/s, the memories of all nodes of a large machine 1e16."""
MOST_OPERATIONS_PER_S = 1e12
MOST_SECONDS = 1e9
"""About 32 years. Seconds since 1970 have exceeded this since 2001, so a longer duration is really a date."""
NO_NUMBER = "no number that was measured"
DATE = "a date, no duration"
CUT_ROW = "a truncated or damaged row"
TOO_FAST = "more than any file system reaches"


@dataclass
class Doubts:
    """Counts values that were left out. For each reason it keeps the number of values and a description of
    the first one."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def count(self, why: str, what: str, where: str | None) -> None:
        """Counts a value that was left out. WHY is the reason, WHAT describes the value, and WHERE is its
        position (`FILE:LINE`)."""
        self.counts[why] = self.counts.get(why, 0) + 1
        self.first.setdefault(why, f"{what} in {where}" if where else what)

    def notes(self) -> list[str]:
        """Returns one sentence for each reason."""
        return [
            f"unusable values left out: {count:,} ({why}; the first is {self.first[why]})"
            for why, count in self.counts.items()
        ]
