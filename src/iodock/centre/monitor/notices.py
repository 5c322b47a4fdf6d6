"""When a file system is overloaded, and how it is known: from what its metadata servers' services say.

`overloaded`: on the mean of the last minutes, more requests wait than `queue`, or each waits longer than
`wait_s`. `stalled`: requests waited, and then none was handled for `silent_s`, though the server's agent
goes on reading."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from iodock.centre.monitor.questions import file_systems
from iodock.centre.monitor.questions.spans import SECOND, Span, span
from iodock.centre.store import MonitorTables
from iodock.shared.settings import Overload


@dataclass(frozen=True)
class Notice:
    """One file system that is not well."""

    file_system: str
    kind: str
    """overloaded or stalled."""
    server: str
    queue: float | None
    """Waiting requests."""
    wait_s: float | None


def notices(store: MonitorTables, now: int, limits: Overload) -> list[Notice]:
    """As of now, the worst of each file system. NOW: ns since the epoch. Raises StoreError."""
    # Further back than the limit, as a stall is seen by what was before.
    within = span(now - int((limits.looked_back_s + 900) * SECOND), now)
    hosts = file_systems.servers(store, within).to_pylist()
    of_host = {row["host"]: row for row in hosts if row["file_system"]}
    rows = file_systems.waiting(store, within).to_pylist()
    found: dict[str, Notice] = {}
    for host, target in sorted({(row["host"], row["target"]) for row in rows}):
        server = of_host.get(host)
        if server is None:
            continue
        service = [row for row in rows if (row["host"], row["target"]) == (host, target)]
        notice = _judged(service, server, within, limits)
        if notice and (notice.file_system not in found or notice.kind == "stalled"):
            found[notice.file_system] = notice
    return [found[name] for name in sorted(found)]


def _judged(
    service: list[dict[str, object]], server: dict[str, object], within: Span, limits: Overload
) -> Notice | None:
    """SERVICE: rows of `waiting`, of one."""
    name, host, read = str(server["file_system"]), str(server["host"]), int(str(server["read_ts"]))
    handled = [row for row in service if _number(row, "handled") > 0]
    if not handled:
        return None
    last = max(int(_number(row, "bucket")) for row in handled)
    last_end = min(within.begin + (last + 1) * within.step, read)
    since = last - int(limits.looked_back_s * SECOND) // within.step
    queue, wait = means([row for row in handled if _number(row, "bucket") > since])
    if read - last_end > limits.silent_s * SECOND and queue is not None and queue >= 2:
        return Notice(name, "stalled", host, queue, wait)
    fresh = within.end - last_end <= (limits.looked_back_s + limits.silent_s) * SECOND
    is_over = (queue or 0) > limits.queue or (wait or 0) > limits.wait_s
    return Notice(name, "overloaded", host, queue, wait) if fresh and is_over else None


def means(rows: list[dict[str, object]]) -> tuple[float | None, float | None]:
    """Mean length of the queue and seconds of waiting, over rows of `waiting`."""
    samples, queued = (sum(_number(row, name) for row in rows) for name in ("samples", "queued"))
    handled, waited = (sum(_number(row, name) for row in rows) for name in ("handled", "waited_us"))
    return (queued / samples if samples else None), (waited / handled / 1e6 if handled else None)


def _number(row: dict[str, object], name: str) -> float:
    value = row[name]
    return float(value) if isinstance(value, (int, float)) else 0.0


def as_rows(table: pa.Table) -> list[dict[str, object]]:
    """A small table's rows."""
    rows: list[dict[str, object]] = table.to_pylist()
    return rows
