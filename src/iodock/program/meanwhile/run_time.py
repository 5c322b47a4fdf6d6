"""Time and place of a stored run, for a query to the monitor."""

from __future__ import annotations

from typing import Any

from iodock.program.store import Store
from iodock.shared.errors import QueryError, StoreError
from iodock.shared.meanwhile import CounterSeries, MountedAs, RunTime
from iodock.shared.settings import Settings

_COUNTERS = (
    "(source = 'diskstats' AND metric IN ('read_bytes', 'written_bytes')) OR "
    "(source = 'mountstats' AND metric IN ('server_read_bytes', 'server_written_bytes'))"
)
_MOST_POINTS = 20_000
"""Largest number of samples of a counter. It covers hours of a recording, and is more than enough to compare
clocks."""
_LEAST_NS = 1


def run_time(store: Store, settings: Settings) -> RunTime | None:
    """Returns the time range and the place of the run; None if its times have no date, or if it has no times.
    Raises StoreError, QueryError."""
    manifest = store.manifest
    if manifest.clock != "epoch" or manifest.first_ts is None or manifest.last_ts is None:
        return None
    hosts = _hosts(manifest.raw)
    end = max(manifest.last_ts, manifest.first_ts + (manifest.wall_ns or _LEAST_NS))
    job = manifest.raw.get("job")
    return RunTime(
        hosts, manifest.first_ts, end, _mounts(store, settings), _counters(store, hosts),
        str(job["id"]) if isinstance(job, dict) and job.get("id") else None,
    )  # fmt: skip


def _hosts(raw: Any) -> tuple[str, ...]:
    """Returns the hosts of the run. The clock of the first one is used."""
    own = (raw.get("host") or {}).get("name")
    others = [one.get("name") for one in raw.get("hosts") or () if isinstance(one, dict)]
    return tuple(dict.fromkeys(str(name) for name in (own, *others) if name))


def _mounts(store: Store, settings: Settings) -> tuple[MountedAs, ...]:
    """Returns the file systems of the files that were used. A log may not contain them; then they are found
    with the mount points in the settings."""
    named = {
        mount: one.monitored_as
        for mount, one in settings.file_systems.items()
        if one.monitored_as is not None
    }
    rows = store.rows("""SELECT f.mount_point,
  coalesce(any_value(f.fs_type), any_value(m.fs_type)) AS fs_type, any_value(m.source) AS source
FROM files f LEFT JOIN mounts m ON m.mount_point = f.mount_point
WHERE f.mount_point IS NOT NULL GROUP BY 1 ORDER BY 1""")
    if rows:
        return tuple(
            MountedAs(row["mount_point"], row["fs_type"], row["source"], named.get(row["mount_point"]))
            for row in rows
        )
    return tuple(
        MountedAs(mount, None, None, name) for mount, name in named.items() if _is_used(store, mount)
    )


def _is_used(store: Store, mount: str) -> bool:
    below = mount.rstrip("/").replace("'", "''") + "/"
    return bool(store.rows(f"SELECT 1 FROM files WHERE starts_with(name, '{below}') LIMIT 1"))


def _counters(store: Store, hosts: tuple[str, ...]) -> tuple[CounterSeries, ...]:
    """Returns kernel counters that agents read, too."""
    try:
        rows = store.rows(f"""SELECT source, coalesce(target, '') AS target, metric,
  list(ts ORDER BY ts) AS at, list(value ORDER BY ts) AS value FROM (
    SELECT *, row_number() OVER (PARTITION BY source, target, metric ORDER BY ts) AS n FROM samples
    WHERE ({_COUNTERS}) AND value IS NOT NULL AND ts IS NOT NULL
      AND (host IS NULL OR host = '{hosts[0].replace("'", "''") if hosts else ""}'))
WHERE n <= {_MOST_POINTS} GROUP BY 1, 2, 3 HAVING max(value) > min(value) ORDER BY 1, 2, 3""")
    except (QueryError, StoreError):
        # Without samples of the machine, the recording can be joined only if the site guarantees the clocks.
        return ()
    return tuple(
        CounterSeries(
            row["source"], row["target"], row["metric"],
            tuple((int(at), float(value)) for at, value in zip(row["at"], row["value"], strict=True)),
        )
        for row in rows
    )  # fmt: skip
