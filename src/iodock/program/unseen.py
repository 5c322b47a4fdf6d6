"""Counts the calls of a run that were not recorded, and decides whether the recorded calls suffice for a
judgement of its I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from iodock.program.findings import HIDES_CALLS
from iodock.program.store import Store
from iodock.shared.language import N_
from iodock.shared.message import Message

SMALL_SHARE = 0.01
"""If a larger share of the calls is missing, the run is not judged."""
COUNTED_IN_CALLS = frozenset({"dropped-records", "foreign-calls", "too-many-requests", "unseen-calls"})
"""Losses that are counted in calls. Other losses that hide calls are counted in files, programs or
processes."""
CALLS_BEFORE_LOAD = 20
"""Approximate number of calls that the dynamic linker makes for a small program before it loads the recording
library."""
MANY_PROGRAMS = 50

_ANOTHER_WAY = frozenset({"own-system-calls", "stopped-processes", "unreached-programs", "unseen-calls"})
"""Losses that only recording inside the program has. Other back ends do not have them."""
_CALLS = "opens + reads + writes + seeks + stats + syncs"


@dataclass(frozen=True, slots=True)
class Unseen:
    """Describes the calls that are missing from a store, according to its losses."""

    calls: int
    """Number of calls known to be missing."""
    seen: int
    uncounted: bool
    """Whether more calls are missing whose number is not known."""
    largest: str | None
    """Name of the loss that hides most calls."""

    @property
    def total(self) -> int:
        """Returns the number of calls that the run made, as far as it is known."""
        return self.calls + self.seen

    @property
    def judges(self) -> bool:
        """Returns whether enough calls were recorded to conclude that the run's I/O is fine."""
        return not self.uncounted and self.calls <= SMALL_SHARE * self.total

    @property
    def count(self) -> int | None:
        """Returns the number of calls that were not recorded, or None if it is not known."""
        return None if self.uncounted else self.calls


ALL_SEEN = Unseen(0, 0, False, None)


def hides_calls(name: str, count: int | str) -> bool:
    """Returns whether a loss may prevent a judgement of the run's I/O. If so, every result is shown together
    with the cure for this loss."""
    if name == "before-load":
        return isinstance(count, int) and count >= MANY_PROGRAMS
    return name in HIDES_CALLS


def unseen_in(losses: Iterable[tuple[str, int]], seen: int) -> Unseen:
    """Computes the missing calls from LOSSES (name and count) and the number SEEN of recorded calls."""
    found = dict(losses)
    counted = {name: count for name, count in found.items() if name in COUNTED_IN_CALLS and count}
    others = [name for name, count in found.items() if name in HIDES_CALLS and count and name not in counted]
    before_load = found.get("before-load", 0)
    if before_load >= MANY_PROGRAMS and before_load * CALLS_BEFORE_LOAD > seen:
        others.append("before-load")
    by_count = sorted(counted, key=lambda name: -counted[name])
    # Losses without a number may be large or small. If the counted losses alone prevent a judgement, the
    # largest of them is named, because its number tells the user more.
    missing = sum(counted.values())
    names = by_count + others if missing > SMALL_SHARE * (missing + seen) else others + by_count
    return Unseen(missing, seen, bool(others), names[0] if names else None)


def unseen_of(store: Store) -> Unseen:
    """Computes the missing calls of a store."""
    manifest = store.manifest
    losses = ((loss.name, loss.count) for loss in manifest.losses)
    return unseen_in(losses, _counted(store) if manifest.is_light else int(manifest.source.get("calls") or 0))


def _counted(store: Store) -> int:
    """Returns the number of calls that a light recording counted but did not record."""
    (found,) = store.rows(f"SELECT CAST(coalesce(sum({_CALLS}), 0) AS BIGINT) AS n FROM profiles")
    return int(found["n"])


def says(unseen: Unseen) -> Message:
    """Returns the sentence that is shown instead of a judgement."""
    other_way = unseen.largest in _ANOTHER_WAY
    if unseen.calls > SMALL_SHARE * unseen.total:
        values = {"unseen": unseen.calls, "calls": unseen.total}
        if other_way:
            text = N_(
                "{unseen} of about {calls} calls were not recorded, so this recording can't show "
                "whether the I/O is fine: record again with --backend bpf, as root, or with --backend "
                "ptrace."
            )
        else:
            text = N_(
                "{unseen} of about {calls} calls were not recorded, so this recording can't show "
                "whether the I/O is fine. How to record the rest is explained below."
            )
        return Message(text, values)
    if other_way:
        return Message(
            N_(
                "An unknown number of calls was not recorded, so this recording can't show whether "
                "the I/O is fine: record again with --backend bpf, as root, or with --backend "
                "ptrace."
            )
        )
    return Message(
        N_(
            "An unknown number of calls was not recorded, so this recording can't show whether the "
            "I/O is fine. How to record the rest is explained below."
        )
    )
