"""Implements one MDT or OST with the entries of its `job_stats` and their lifetime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from iodock.simulation.counters import SECOND_NS, Tallies, add_all
from iodock.simulation.flow import Entry, Stream

CLEANUP_INTERVAL_S = 600
"""Default of Lustre for `job_cleanup_interval`, s."""
Kind = Literal["mdt", "obdfilter"]


class Target:
    """A target with its entries. They expire as in lprocfs_job_cleanup() of Lustre's obdclass: whenever an id
    appears that has no entry, and at most every half interval, entries that were idle for more than the
    interval are removed. With an interval of 0 all are kept."""

    def __init__(self, name: str, kind: Kind, now_ns: int, cleanup_s: int = CLEANUP_INTERVAL_S) -> None:
        self.name, self.kind = name, kind
        self.cleanup_s = cleanup_s
        self.speed = 1.0
        """Speed of the target. 1: as usual; 0: no request is answered."""
        self.entries: dict[str, Entry] = {}
        self.live: dict[str, Stream] = {}
        """Streams, by job id, that are active or would be active if the target answered."""
        self.mounted_ns = now_ns
        self.expired = 0
        """Number of entries that were removed because they were idle."""
        self.changes = 0
        """Number of changes. It is incremented whenever an entry appears, disappears or is settled."""
        self._swept_ns = now_ns
        self._retired: Tallies = {}
        self._lost: list[Stream] = []
        self._totals: tuple[int, int, Tallies] | None = None
        """Result of the last request for totals: its time, the number of changes at that time, and the
        tallies."""

    def readings(self, now_ns: int, since_ns: int | None = None) -> Iterator[tuple[Entry, dict[str, int]]]:
        """Yields every entry and its counters, in the order in which the ids appeared. SINCE_NS: only entries
        that may have been used after it."""
        for entry in self.entries.values():
            if since_ns is None or entry.is_used_after(since_ns):
                yield entry, entry.counters(now_ns)

    def appear(self, stream: Stream, start_ns: int, now_ns: int) -> Entry:
        """Makes a new entry. Lustre cleans up when this happens."""
        self.sweep(now_ns)
        entry = Entry(stream, start_ns)
        self.entries[stream.job_id] = entry
        self.changes += 1
        return entry

    def sweep(self, now_ns: int) -> None:
        """Removes idle entries. It is also called after `job_stats` was read and closed, if that matters,
        because Lustre cleans up then, too."""
        interval_ns = self.cleanup_s * SECOND_NS
        if interval_ns == 0 or now_ns < self._swept_ns + interval_ns // 2:
            return
        self._swept_ns = now_ns
        oldest = now_ns - interval_ns
        gone = [entry for entry in self.entries.values() if entry.updated_ns(now_ns) < oldest]
        for entry in gone:
            self._remove(entry, now_ns)
        self.expired += len(gone)

    def clear(self, now_ns: int) -> None:
        """Removes all entries, as the administrator's `job_stats=clear` does."""
        for entry in list(self.entries.values()):
            self._remove(entry, now_ns)

    def remount(self, now_ns: int) -> None:
        """Mounts the target after a reboot or on another server: all counters restart, with the active
        ids."""
        self.clear(now_ns)
        self._retired, self._totals = {}, None
        self.mounted_ns = self._swept_ns = now_ns
        self._lost.clear()
        self._restart(now_ns)

    def set_speed(self, speed: float, now_ns: int) -> None:
        """Changes the speed of the target. Operations during a slow time are lost and not repeated later: the
        job continues with the phase that it has reached by then."""
        if speed == self.speed:
            return
        self.speed = speed
        self._restart(now_ns)

    def _restart(self, now_ns: int) -> None:
        for stream in list(self.live.values()):
            stream.change(stream.wanted, now_ns)

    def bring_back(self, now_ns: int) -> None:
        """Makes new entries for ids whose entry was removed while they were active, and which have continued
        since."""
        lost, self._lost = self._lost, []
        for stream in lost:
            if stream.rates and stream.entry is None:
                stream.settle(now_ns)
                if stream.entry is None:
                    self._lost.append(stream)

    def totals(self, now_ns: int) -> Tallies:
        """Returns the operations of all ids since the target was mounted."""
        if self._totals is None or self._totals[:2] != (now_ns, self.changes):
            totals: Tallies = {}
            add_all(totals, self._retired)
            for entry in self.entries.values():
                add_all(totals, entry.tallies_at(now_ns))
            self._totals = now_ns, self.changes, totals
        return self._totals[2]

    def _remove(self, entry: Entry, now_ns: int) -> None:
        entry.stream.settle(now_ns)
        add_all(self._retired, entry.tallies)
        del self.entries[entry.job_id]
        entry.stream.entry = None
        if entry.stream.rates:
            self._lost.append(entry.stream)
        self.changes += 1
