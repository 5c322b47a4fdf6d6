"""Finds degraded file systems and the reasons: arrays with missing members, rebuilds, lost paths, failing
probes. A reason is current if the last events of its target contain its beginning but not its end."""

from __future__ import annotations

from dataclasses import dataclass

from iodock.centre.monitor.event_kinds import OVER
from iodock.centre.monitor.questions import file_systems
from iodock.centre.monitor.questions.events import has_events, latest
from iodock.centre.monitor.questions.spans import DAY, HOUR
from iodock.centre.store import MonitorTables

LOOKED_BACK = 30 * DAY
"""A condition whose last event is older than this, in ns, is considered over."""
_PROBED = 3 * HOUR
"""If a probe's last round is older than this time, in ns, its result no longer counts."""
_STATES = ("md", "multipath", "probe")
"""Sources of events that also report the end of a condition. Events from logs are not used here, because a
log may never say that a condition ended."""
_GONE = "target-gone"


@dataclass(frozen=True)
class Degraded:
    """One reason why a file system is degraded."""

    file_system: str
    host: str
    kind: str
    """Kind of the event."""
    target: str
    since: int
    """ns since the epoch."""


def degraded(store: MonitorTables, now: int, ahead: int = HOUR) -> list[Degraded]:
    """Returns the current reasons, newest first. It leaves out machines that sent no data for an hour. NOW is
    in ns since the epoch. Events dated up to AHEAD ns after NOW count, too, because machines' clocks differ.
    Raises StoreError."""
    if not has_events(store):
        return []
    served = {
        str(row["host"]): str(row["file_system"]) for row in file_systems.served(store, now).to_pylist()
    }
    heard = {str(row["host"]) for row in file_systems.heard(store, now - HOUR, now).to_pylist()}
    rows = latest(store, now - LOOKED_BACK, now + ahead, served).to_pylist()
    probed = {
        (row["host"], row["target"]) for row in file_systems.probed(store, now - _PROBED, now).to_pylist()
    }
    ended: dict[tuple[object, ...], int] = {}
    for row in rows:
        for over in [*OVER.values()] if row["kind"] == _GONE else [row["kind"]]:
            key = (*_place(row), over)
            ended[key] = max(ended.get(key, 0), int(row["last_ts"]))
    found = [
        Degraded(row["file_system"], row["host"], row["kind"], row["target"] or "", int(row["ts"]))
        for row in rows
        if row["kind"] in OVER and row["source"] in _STATES and row["file_system"] and row["host"] in heard
        and (row["source"] != "probe" or (row["host"], row["target"]) in probed)
        and int(row["last_ts"]) > ended.get((*_place(row), OVER[row["kind"]]), 0)
    ]  # fmt: skip
    return sorted(_worst(found), key=lambda one: -one.since)


def _place(row: dict[str, object]) -> tuple[object, ...]:
    return row["host"], row["source"], row["file_system"], row["target"]


def _worst(found: list[Degraded]) -> list[Degraded]:
    """Keeps only the latest of several conditions of one target that end with the same kind of event. For
    example, if one path was lost and then all paths, only the second condition is kept."""
    last: dict[tuple[str, ...], Degraded] = {}
    for one in sorted(found, key=lambda one: one.since):
        last[one.file_system, one.host, one.target, OVER[one.kind]] = one
    return list(last.values())
