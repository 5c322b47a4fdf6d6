"""Pushes events and results of probes into a portal."""

from __future__ import annotations

import time

from batches import LEVEL, Entry, Event, Part, frame
from portal_site import SECOND, Server

NOW = time.time_ns()


HOSTILE = "<img src=x onerror=alert(1)>\\x1b"


def events() -> dict[str, list[Event]]:
    """Returns events by machine. oss01 and mds01 serve lfs; r01 serves nothing."""
    return {
        "oss01": [
            Event(NOW - 90 * SECOND, "array-degraded", 2),
            Event(NOW - 80 * SECOND, "rebuild-begun", 1, message="recovery: 12.6 %"),
            Event(NOW - 70 * SECOND, "io-error", 2, "kernel-log", target="sda", count=100_000,
                  message="I/O error, dev sda, sector 5", last=NOW - 20 * SECOND),
        ],
        "mds01": [
            Event(NOW - 60 * SECOND, "path-lost", 1, "multipath", target="mdt0"),
            Event(NOW - 50 * SECOND, "path-back", 0, "multipath", target="mdt0"),
        ],
        "r01": [Event(NOW - 40 * SECOND, "site-own", 1, "system-log", target="", message=HOSTILE)],
    }  # fmt: skip


def push(server: Server, found: dict[str, list[Event]], spool: int = 0) -> None:
    for number, (host, own) in enumerate(found.items()):
        name = bytes([spool + number]) * 16
        server.collector.push(frame(1, [], spool=name, host=host, events=own))
    server.collector.flush()


def probe(server: Server, rounds: int) -> None:
    """Pushes the results of a probe, one per minute, the last one slow."""
    values = {"response_us": 4000, "limit_us": 1_000_000, "failed": 0, "no_answer": 0}
    for number in range(rounds):
        took = 4_000_000 if number == rounds - 1 else 4000
        entry = Entry(
            "",
            {(name, LEVEL): took if name == "response_us" else v for name, v in values.items()},
            evidence=0,
        )
        at = NOW - (rounds - number) * 60 * SECOND
        part = Part(at, [entry], "probe", "lfs", "/lfs/probe", full=number == 0)
        server.collector.push(frame(number + 1, [part], spool=b"P" * 16, host="r01"))
    server.collector.flush()
