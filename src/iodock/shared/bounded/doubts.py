"""Numbers that nothing can have measured: what their limits are, and how they are counted.

The limits are far beyond any machine, so that nothing that was measured is taken for a fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_BYTES_PER_S = 1e16
"""The fastest file systems reach 1e14, the memories of all nodes of a large machine 1e16."""
MOST_OPERATIONS_PER_S = 1e12
MOST_SECONDS = 1e9
"""32 years. Seconds since 1970 have been more since 2001: a duration that is larger is a date."""
NO_NUMBER = "no number that can be measured"
DATE = "a date, no duration"
CUT_ROW = "a row that was cut or damaged"
TOO_FAST = "more than any file system reaches"


@dataclass
class Doubts:
    """What was left out: how many of each reason, and the first of them."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def count(self, why: str, what: str, where: str | None) -> None:
        """One more of WHAT at WHERE (`FILE:LINE`) left out because WHY."""
        self.counts[why] = self.counts.get(why, 0) + 1
        self.first.setdefault(why, f"{what} in {where}" if where else what)

    def notes(self) -> list[str]:
        """One sentence a reason."""
        return [
            f"values left out as not known: {count:,} ({why}; the first is {self.first[why]})"
            for why, count in self.counts.items()
        ]
