"""Queries events about arrays, paths, links, probes and messages in logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from iodock.centre.monitor.questions.counted import text
from iodock.centre.store import MonitorTables

SEVERITIES = ("note", "warning", "error")
"""Severities from the lowest to the highest."""
MOST = 1000


@dataclass(frozen=True)
class WantedEvents:
    """Filter for events. Empty fields match everything."""

    host: str = ""
    kind: str = ""
    severity: str = ""
    """Lowest severity of the wanted events."""
    file_system: str = ""
    words: str = ""
    """Text that must occur in the target or in the event's text."""
    with_file_system: bool = False
    """Whether only events of a file system are wanted."""


def has_events(store: MonitorTables) -> bool:
    """Returns whether the store may have any events. Raises StoreError."""
    catalogue = store.catalogue
    return catalogue is not None and bool(catalogue.of("events", "fine"))


def events(
    store: MonitorTables,
    begin: int,
    end: int,
    served: Mapping[str, str],
    wanted: WantedEvents | None = None,
    most: int = MOST,
) -> pa.Table:
    """Returns at most MOST events, the newest first, with the columns ts, last_ts, host, file_system, kind,
    severity, source, target, count and text. SERVED maps each file server to its file system. An event
    without a file system gets the file system of its machine. Raises StoreError."""
    sql = f"""
        SELECT * FROM ({_named(served)}) WHERE {_condition(wanted or WantedEvents())}
        ORDER BY last_ts DESC, host, kind, target LIMIT {int(most)}
    """
    return store.table(sql, begin=begin, end=end, resolution="fine")


def latest(store: MonitorTables, begin: int, end: int, served: Mapping[str, str]) -> pa.Table:
    """Returns the last event of each kind for each machine, source, file system and target, with the columns
    of `events`. Raises StoreError."""
    sql = f"""
        SELECT * FROM ({_named(served)}) QUALIFY row_number() OVER (
            PARTITION BY host, source, file_system, target, kind ORDER BY last_ts DESC, ts DESC) = 1
        ORDER BY last_ts, ts LIMIT 10000
    """
    return store.table(sql, begin=begin, end=end, resolution="fine")


def _named(served: Mapping[str, str]) -> str:
    cases = " ".join(f"WHEN {text(host)} THEN {text(name)}" for host, name in sorted(served.items()))
    known = f"coalesce(file_system, CASE host {cases} END)" if cases else "file_system"
    return (
        f"SELECT ts, last_ts, host, {known} AS file_system, kind, severity, source, target, "
        "count, text FROM events"
    )


def _condition(wanted: WantedEvents) -> str:
    conditions = [
        f"{column} = {text(value)}"
        for column, value in (
            ("host", wanted.host), ("kind", wanted.kind), ("file_system", wanted.file_system),
        )
        if value
    ]  # fmt: skip
    if wanted.severity:
        worse = SEVERITIES[SEVERITIES.index(wanted.severity) :]
        conditions.append("severity IN (" + ", ".join(text(one) for one in worse) + ")")
    if wanted.words:
        conditions.append(f"contains(lower(concat_ws(' ', target, text)), lower({text(wanted.words)}))")
    if wanted.with_file_system:
        conditions.append("file_system IS NOT NULL")
    return " AND ".join(conditions) or "true"
