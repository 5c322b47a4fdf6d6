"""Collects information about a server from other machines and from events: the machine that serves its
targets, clients that lost the connection to it, probes, and arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from iodock.centre.monitor.degraded import degraded
from iodock.centre.monitor.questions import file_systems, servers
from iodock.centre.monitor.questions.events import has_events, latest
from iodock.centre.monitor.questions.spans import DAY, HOUR, SECOND, span
from iodock.centre.store import MonitorTables
from iodock.centre.watch.observation import News

_TOLD_FOR = 900 * SECOND
"""Age after which a lost connection or the beginning of a recovery is ignored, ns."""
_JUST_NOW = 60 * SECOND
_PROBE_STANDS = 120 * SECOND
_PROBES_EVERY = 60 * SECOND
"""If there were no probes, the store is searched for them again after this time, ns."""
_PROBES = ("probe-failed", "probe-no-answer", "probe-slow")
Row = Mapping[str, object]


@dataclass
class Homes:
    """The servers of targets: for each target the one that serves it in normal operation (its home), and the
    servers that do not serve their own targets now."""

    file_system: dict[str, str] = field(default_factory=dict)
    """File system of each host."""
    metadata: set[str] = field(default_factory=set)
    """Hosts of metadata targets."""
    of_target: dict[str, str] = field(default_factory=dict)
    guests: set[str] = field(default_factory=set)
    """Hosts that now serve a target of another host."""
    away: set[str] = field(default_factory=set)
    """Hosts whose targets are all served elsewhere now."""
    asked_probes: int = 0
    """Time of the last check for probes, if there were none."""


def homes(store: MonitorTables, begin: int, end: int) -> Homes:
    """Finds the home of each target, which is the host whose agent read the target most often from BEGIN to
    END. Raises StoreError."""
    found = Homes()
    for row in servers.homes(store, begin, end, "ten_minutes").to_pylist():
        target, host = str(row["target"]), str(row["host"])
        if row["file_system"] is None:
            continue
        found.file_system.setdefault(host, str(row["file_system"]))
        if row["is_metadata"]:
            found.metadata.add(host)
        found.of_target.setdefault(target, host)
    return found


def news(store: MonitorTables, now: int, known: Homes, ahead: int = HOUR) -> dict[str, News]:
    """Returns the reports about each host at NOW. Events dated up to AHEAD ns after NOW count, too, because
    agents' clocks may be wrong. If NOW is in the past, AHEAD is short, because later events were not known at
    that time. Raises StoreError."""
    found: dict[str, News] = {host: News(is_away=True) for host in known.away}
    rows = latest(store, now - _TOLD_FOR, now + ahead, {}).to_pylist() if has_events(store) else []
    for host, lost in _lost(rows, known).items():
        found[host] = replace(found.get(host, News()), lost=lost)
    for host, is_recovering, evictions in _told_itself(rows, now):
        found[host] = replace(found.get(host, News()), is_recovering=is_recovering, evictions=evictions)
    for host, faults, is_checked in _faults(store, now, ahead):
        found[host] = replace(found.get(host, News()), faults=faults, is_checked=is_checked)
    _add_probes(store, now, known, found)
    return found


def place_targets(
    store: MonitorTables, now: int, step: int, known: Homes, ahead: int = HOUR, resolution: str = "fine"
) -> None:
    """Finds the present server of each target, which is the one whose agent read the target last, and updates
    KNOWN. AHEAD has the same meaning as in `news`. Raises StoreError."""
    last: dict[str, tuple[int, str]] = {}
    for row in servers.places(store, now - 3 * step, now + ahead, resolution).to_pylist():
        target, seen = str(row["target"]), (int(row["end_ts"]), str(row["host"]))
        last[target] = max(last.get(target, seen), seen)
    home = known.of_target
    known.guests = {host for target, (_, host) in last.items() if home.get(target, host) != host}
    at_home = {host for target, (_, host) in last.items() if home.get(target) == host}
    moved = {home[target] for target in last if target in home}
    # If no agent reads a target at the moment, its last known server remains.
    known.away = (known.away | moved) - at_home


def _lost(rows: list[Row], known: Homes) -> dict[str, int]:
    """Returns, for each server, the number of machines that lost the connection to it and have not recovered
    it. ROWS is the result of `latest`."""
    ends: dict[tuple[str, str], tuple[int, str]] = {}
    kinds = {"lustre-connection-lost", "lustre-connection-back", "nfs-not-responding", "nfs-responding"}
    for row in rows:
        if row["kind"] in kinds and row["target"]:
            key = (str(row["host"]), str(row["target"]))
            ends[key] = max(ends.get(key, (0, "")), (int(str(row["last_ts"])), str(row["kind"])))
    # A Lustre client has a connection to each target of a server. If it loses several, it counts only once
    # for the server.
    tellers: dict[str, set[str]] = {}
    for (teller, target), (_, kind) in ends.items():
        host = known.of_target.get(target.partition("-osc")[0].partition("-mdc")[0], target)
        if kind in ("lustre-connection-lost", "nfs-not-responding") and host != teller:
            tellers.setdefault(host, set()).add(teller)
    return {host: len(found) for host, found in tellers.items()}


def _told_itself(rows: list[Row], now: int) -> list[tuple[str, bool, int]]:
    """Returns the reports of servers about themselves as tuples: the host, whether a target on it is in
    recovery, and the number of clients that it evicted recently."""
    begun: dict[str, int] = {}
    ended: dict[str, int] = {}
    evicted: dict[str, int] = {}
    for row in rows:
        host, at = str(row["host"]), int(str(row["last_ts"]))
        if row["kind"] == "lustre-recovery":
            begun[host] = max(begun.get(host, 0), at)
        elif row["kind"] == "lustre-recovery-ended":
            ended[host] = max(ended.get(host, 0), at)
        elif row["kind"] == "lustre-evicts" and now - at < _JUST_NOW:
            evicted[host] = evicted.get(host, 0) + int(str(row["count"]))
    recovering = {host for host, at in begun.items() if at > ended.get(host, 0)}
    return [(host, host in recovering, evicted.get(host, 0)) for host in sorted(recovering | set(evicted))]


def _faults(store: MonitorTables, now: int, ahead: int) -> Iterable[tuple[str, tuple[str, ...], bool]]:
    """Faults of each host: host, kinds of present faults, and whether an array is only being checked."""
    by_host: dict[str, list[str]] = {}
    for one in degraded(store, now, ahead):
        if one.kind not in _PROBES:
            by_host.setdefault(one.host, []).append(one.kind)
    checks = (
        _checked(store, now, ahead) if any("rebuild-begun" in kinds for kinds in by_host.values()) else set()
    )
    for host, kinds in by_host.items():
        is_checked = host in checks and "rebuild-begun" in kinds
        faults = tuple(kind for kind in dict.fromkeys(kinds) if not (is_checked and kind == "rebuild-begun"))
        yield host, faults, is_checked


def _checked(store: MonitorTables, now: int, ahead: int) -> set[str]:
    rows = latest(store, now - 30 * DAY, now + ahead, {}).to_pylist()
    begun = [row for row in rows if row["kind"] == "rebuild-begun"]
    return {
        str(row["host"]) for row in begun if str(row["text"] or "").lower().startswith(("check", "repair"))
    }


def _add_probes(store: MonitorTables, now: int, known: Homes, found: dict[str, News]) -> None:
    """Adds results of probes. A probe tests the metadata server of its file system, because it creates, opens
    and removes files."""
    if now - known.asked_probes < _PROBES_EVERY:
        return
    within = span(now - _PROBE_STANDS, now)
    last: dict[str, Row] = {}
    for row in file_systems.probes(store, within).to_pylist():
        if row["file_system"]:
            last[str(row["file_system"])] = row
    known.asked_probes = 0 if last else now
    for host in known.metadata:
        row = last.get(known.file_system.get(host, ""))
        if row is not None:
            took = row["response_us"]
            found[host] = replace(
                found.get(host, News()),
                probe_s=float(str(took)) / 1e6 if took is not None else None,
                has_no_answer=bool(row["failed"]) or bool(row["no_answer"]),
            )
