"""How much of a run was not seen, and whether what was seen can say anything of its I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from iodock.program.findings import HIDES_CALLS
from iodock.program.store import Store
from iodock.shared.language import N_
from iodock.shared.message import Message

SMALL_SHARE = 0.01
"""Up to this share of the calls may be missing from a judgement."""
COUNTED_IN_CALLS = frozenset({"dropped-records", "foreign-calls", "too-many-requests", "unseen-calls"})
"""Losses counted in calls; others that hide calls are counted in files, programs or processes."""
CALLS_BEFORE_LOAD = 20
"""About what the dynamic linker makes for a small program, before a library is loaded that records."""
MANY_PROGRAMS = 50

_ANOTHER_WAY = frozenset({"own-system-calls", "stopped-processes", "unreached-programs", "unseen-calls"})
"""Losses of recording from inside, which other back ends don't have."""
_CALLS = "opens + reads + writes + seeks + stats + syncs"


@dataclass(frozen=True, slots=True)
class Unseen:
    """What the losses of a store say of calls that are not in it."""

    calls: int
    """Known to be missing."""
    seen: int
    uncounted: bool
    """There are more, it is not known how many."""
    largest: str | None
    """The loss behind which there is most."""

    @property
    def total(self) -> int:
        """Calls of the run, as far as is known."""
        return self.calls + self.seen

    @property
    def judges(self) -> bool:
        """Whether what was seen can say that the run's I/O is fine."""
        return not self.uncounted and self.calls <= SMALL_SHARE * self.total

    @property
    def count(self) -> int | None:
        """Calls that were not seen, where that is known."""
        return None if self.uncounted else self.calls


ALL_SEEN = Unseen(0, 0, False, None)


def hides_calls(name: str, count: int | str) -> bool:
    """Whether a loss may keep a run's I/O from being judged: it says what to do with every result."""
    if name == "before-load":
        return isinstance(count, int) and count >= MANY_PROGRAMS
    return name in HIDES_CALLS


def unseen_in(losses: Iterable[tuple[str, int]], seen: int) -> Unseen:
    """Of losses by name and count, in a store with SEEN calls."""
    found = dict(losses)
    counted = {name: count for name, count in found.items() if name in COUNTED_IN_CALLS and count}
    others = [name for name, count in found.items() if name in HIDES_CALLS and count and name not in counted]
    before_load = found.get("before-load", 0)
    if before_load >= MANY_PROGRAMS and before_load * CALLS_BEFORE_LOAD > seen:
        others.append("before-load")
    by_count = sorted(counted, key=lambda name: -counted[name])
    # What has no number may be any number; but a number says more.
    missing = sum(counted.values())
    names = by_count + others if missing > SMALL_SHARE * (missing + seen) else others + by_count
    return Unseen(missing, seen, bool(others), names[0] if names else None)


def unseen_of(store: Store) -> Unseen:
    """The same of a store."""
    manifest = store.manifest
    losses = ((loss.name, loss.count) for loss in manifest.losses)
    return unseen_in(losses, _counted(store) if manifest.is_light else int(manifest.source.get("calls") or 0))


def _counted(store: Store) -> int:
    """Calls that a light recording has counted: it says of none that it was recorded."""
    (found,) = store.rows(f"SELECT CAST(coalesce(sum({_CALLS}), 0) AS BIGINT) AS n FROM profiles")
    return int(found["n"])


def says(unseen: Unseen) -> Message:
    """The sentence in the place of a judgement."""
    other_way = unseen.largest in _ANOTHER_WAY
    if unseen.calls > SMALL_SHARE * unseen.total:
        values = {"unseen": unseen.calls, "calls": unseen.total}
        if other_way:
            text = N_(
                "{unseen} of about {calls} calls were not seen; this recording can't say whether the I/O is "
                "fine: record again with --backend bpf, as root, or with --backend ptrace."
            )
        else:
            text = N_(
                "{unseen} of about {calls} calls were not seen; this recording can't say whether the I/O is "
                "fine. How to see the rest is said below."
            )
        return Message(text, values)
    if other_way:
        return Message(
            N_(
                "Not all calls were seen, it is not known how many; this recording can't say whether the "
                "I/O is fine: record again with --backend bpf, as root, or with --backend ptrace."
            )
        )
    return Message(
        N_(
            "Not all calls were seen, it is not known how many; this recording can't say whether the I/O "
            "is fine. How to see the rest is said below."
        )
    )
