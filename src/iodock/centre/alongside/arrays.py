"""Makes curves of storage arrays from counters that a site imported with `iodock monitor import-counters`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from iodock.centre.monitor.questions.spans import SECOND
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need
from iodock.shared.meanwhile import ServerCurve

_SOURCE = "array"
_METRICS: Mapping[tuple[str, str], tuple[str, float]] = {
    ("read_bytes", "bytes"): ("read_bytes_per_s", 1.0),
    ("write_bytes", "bytes"): ("written_bytes_per_s", 1.0),
    ("moved_bytes", "bytes"): ("moved_bytes_per_s", 1.0),
    ("read", "1"): ("reads_per_s", 1.0),
    ("write", "1"): ("writes_per_s", 1.0),
    ("operations", "1"): ("operations_per_s", 1.0),
    ("busy_time", "us"): ("busy_share", 1e-6),
    ("waiting", ""): ("waiting", 1.0),
    ("response_us", ""): ("response_s", 1e-6),
}
"""Maps metric and unit of the store to those of the curve, with a conversion factor."""
Series = tuple[str, str, str, str, bool]
"""Identifies one series: host, target, metric, unit, and whether the value is a level."""


def systems(store: MonitorTables, begin: int, end: int, resolution: str) -> frozenset[str]:
    """Returns the file systems for which the store has samples of arrays in this time. Raises StoreError,
    QueryError."""
    sql = f"SELECT DISTINCT target FROM targets WHERE source = '{_SOURCE}' AND target IS NOT NULL"
    table = store.table(
        sql, begin=begin, end=end, resolution=resolution, need=Need((_SOURCE,), is_presence=True)
    )
    return frozenset(_parted(str(name))[0] for name in table.column("target").to_pylist())


def curves(
    store: MonitorTables, wanted: Sequence[str], begin: int, end: int, resolution: str, offset: int
) -> Iterator[ServerCurve]:
    """Yields the curves of the arrays of the file systems WANTED. OFFSET (ns) is subtracted from all times.
    Raises StoreError, QueryError."""
    sql = f"""
        SELECT host, target, metric, coalesce(unit, '') AS unit, is_level, begin_ts, end_ts, value
        FROM targets WHERE source = '{_SOURCE}' AND target IS NOT NULL AND bucket IS NULL
            AND end_ts > {begin} AND begin_ts < {end} ORDER BY ALL
    """
    table = store.table(sql, begin=begin, end=end, resolution=resolution, need=Need((_SOURCE,)))
    series: dict[Series, dict[tuple[int, int], float]] = {}
    rounds: dict[str, set[tuple[int, int]]] = {}
    for row in table.to_pylist():
        key = (row["host"], row["target"], row["metric"], row["unit"], bool(row["is_level"]))
        place = (row["begin_ts"], row["end_ts"])
        series.setdefault(key, {})[place] = float(row["value"])
        if row["end_ts"] > row["begin_ts"]:
            rounds.setdefault(row["host"], set()).add(place)
    for key, values in sorted(series.items()):
        yield from _curve(key, values, rounds.get(key[0], set()), wanted, offset)


def _curve(
    key: Series, values: Mapping[tuple[int, int], float], rounds: set[tuple[int, int]],
    wanted: Sequence[str], offset: int,
) -> Iterator[ServerCurve]:  # fmt: skip
    host, target, metric, unit, is_level = key
    system, name = _parted(target)
    if system not in wanted or (metric, unit) not in _METRICS:
        return
    called, factor = _METRICS[metric, unit]
    if is_level:
        points = [(end - offset, value * factor) for (_, end), value in sorted(values.items())]
    else:
        # A counter that did not grow in an interval has no row in the store. If another counter of the host
        # has a row for the interval, the growth is 0.
        points = [
            (end - offset, values.get((begin, end), 0.0) * factor * SECOND / (end - begin))
            for begin, end in sorted(rounds)
        ]
    if points:
        yield ServerCurve(system, f"{host} {name}", called, tuple(points))


def _parted(target: str) -> tuple[str, str]:
    """Splits the target of an imported counter into file system and target, which `import-counters` joins as
    FILE_SYSTEM/TARGET."""
    system, _, name = target.rpartition("/")
    return system, name
