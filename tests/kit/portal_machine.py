"""Pushes the readings of a machine's disks into a portal."""

from __future__ import annotations

import time

from batches import BYTES, COUNT, LEVEL, Entry, Part, frame
from iodock.centre.monitor.collector import Collector
from portal_site import EVERY_S, SECOND, STEPS, TIME

READ, WRITTEN, BUSY_US = 4_000_000, 1_000_000, 2_500_000


def run_machine(collector: Collector, host: str, spool: bytes) -> int:
    """Pushes STEPS readings of a busy and an idle disk, as HOST's agent. Returns the time of the first
    reading."""
    begin = time.time_ns() - (STEPS * EVERY_S + 30) * SECOND
    for step in range(STEPS + 1):
        at = begin + step * EVERY_S * SECOND
        disk = {
            ("read", BYTES): step * READ, ("read", COUNT): step * 40, ("write", BYTES): step * WRITTEN,
            ("write", COUNT): step * 10, ("busy", TIME): step * BUSY_US,
        }  # fmt: skip
        waited = {("some", TIME): step * 5_000_000, ("full", TIME): step * 1_000_000}
        load = {("load1_percent", LEVEL): 150, ("runnable", LEVEL): 2}
        read = [
            ("diskstats", "sda", disk), ("diskstats", "sdb", {("read", BYTES): 7}),
            ("pressure", "io", waited), ("load", "load", load),
        ]  # fmt: skip
        parts = [
            Part(at, [Entry("", values, evidence=0)], source, "", target, full=True)
            for source, target, values in read
        ]
        collector.push(frame(step + 1, parts, spool=spool, host=host))
    return begin
