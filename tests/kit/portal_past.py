"""Pushes past runs of jobs into a portal."""

from __future__ import annotations

import time

from batches import BYTES, COUNT, Entry, Part, frame
from iodock.centre.monitor.collector import Collector
from portal_site import OWN_USER, SECOND

EVIL = "\"><script>alert(1)</script>\n' OR 1=1 -- \x1b[2J=cmd"


HOUR, DAY = 3600 * SECOND, 86_400 * SECOND
GB = 10**9


class Past:
    """Past runs, pushed as a server and a node report them."""

    def __init__(self, collector: Collector) -> None:
        self._collector, self.now = collector, time.time_ns()
        self.runs: list[tuple[int, str, str, str, float, int]] = []

    def run(
        self, job: str, name: str, ago_h: float, seconds: float, moved: int = GB, user: str = OWN_USER
    ) -> None:
        """Adds a run that began AGO_H hours ago."""
        self.runs.append((self.now - int(ago_h * HOUR), job, name, user, seconds, moved))

    def push(self) -> None:
        """Pushes all runs. Each is reported by its own server, because later readings of a server without a
        job end that job's run."""
        ids = {OWN_USER: "0"}
        for begin, job, name, user, seconds, moved in sorted(self.runs):
            end = begin + int(seconds * SECOND)
            # Servers report the jobs 60x with ids that contain no user.
            owner = job if job.startswith("60") else f"{job}:{ids.get(user, user)}:r01"
            values = {("read_bytes", BYTES): moved, ("read_bytes", COUNT): 1}
            entry = Entry(owner, values, start=begin, updated=end)
            told = [(job, user, name)] if name else None
            spool = f"{job}{name[:5]}{begin // SECOND % 10**6}".encode().ljust(16, b"-")[:16]
            self._collector.push(frame(1, [Part(begin, [], full=True)], spool=spool))
            done = frame(2, [Part(end, [entry], full=True)], spool=spool, names=told, named_at=end)
            self._collector.push(done)
        self._collector.flush()
