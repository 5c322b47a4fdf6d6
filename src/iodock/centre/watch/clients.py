"""Makes observations of NFS, MooseFS and Lustre servers from values that their clients measured."""

from __future__ import annotations

from collections.abc import Mapping

from iodock.centre.watch.observation import SECOND, Observation

Row = Mapping[str, object]


def number(row: Row, name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def of_targets(found: list[Observation]) -> tuple[float | None, float | None]:
    """Returns the mean waiting time in s and the number of waiting requests of a server's clients. FOUND has
    one observation for each target of the server."""
    waited = [(one.wait_s, one.handled or 0.0) for one in found if one.wait_s is not None]
    handled = sum(count for _, count in waited)
    waiting = [one.waiting for one in found if one.waiting is not None]
    mean = sum(wait * count for wait, count in waited) / handled if handled else None
    if mean is None and waited:
        mean = max(wait for wait, _ in waited)
    return mean, sum(waiting) if waiting else None


def by_clients(
    rows: list[Row], mounts: Mapping[tuple[str, str], str], step: int
) -> list[tuple[int, Observation]]:
    """Makes observations that combine the values of all clients of a server. ROWS is the result of
    `servers.clients`. A client that sent a reading without operations counts as well, because it shows that
    the server had no requests from this client."""
    operations: dict[tuple[int, str], float] = {}
    time_us: dict[tuple[int, str], float] = {}
    waiting: dict[tuple[int, str], float] = {}
    ends: dict[tuple[int, str], int] = {}
    of_host: dict[str, list[str]] = {}
    for host, server in mounts:
        of_host.setdefault(host, []).append(server)
    for row in rows:
        host, named = str(row["host"]), row["server"]
        # A row that names a server counts only for it. A row without one says that the client was read, which
        # counts for all servers that the client has mounted.
        is_known = named is not None and (host, str(named)) in mounts
        for server in (str(named),) if is_known else of_host.get(host, ()):
            if is_known or named is None:
                key = (int(str(row["round"])), server)
                ends[key] = max(ends.get(key, 0), int(str(row["end_ts"])))
                operations[key] = operations.get(key, 0.0) + (number(row, "operations") or 0.0)
                time_us[key] = time_us.get(key, 0.0) + (number(row, "time_us") or 0.0)
                if row.get("waiting") is not None:
                    waiting[key] = waiting.get(key, 0.0) + (number(row, "waiting") or 0.0)
    names = {server: name for (_, server), name in sorted(mounts.items(), reverse=True)}
    found = []
    for key, end in sorted(ends.items()):
        wait_s, waited = _waits(operations[key], time_us[key], waiting.get(key), step)
        one = Observation(
            key[1], names[key[1]], "client", end - step, end, operations[key], wait_s=wait_s, waiting=waited
        )
        found.append((key[0], one))
    return found


def _waits(
    operations: float, time_us: float, waiting: float | None, step: int
) -> tuple[float | None, float | None]:
    """Returns the mean waiting time in s and the mean number of waiting requests. Clients measure one of
    them, and Little's law gives the other: NFS and Lustre report the total time until answers, MooseFS the
    number of requests without an answer."""
    if waiting is not None:
        return (waiting * step / SECOND / operations if operations else None), waiting
    if not operations:
        return None, None
    return time_us / operations / 1e6, time_us * 1000 / step
