"""Shows bytes over time from Darshan's heatmaps, in the bins of the heatmaps."""

from __future__ import annotations

from iodock.program.analyses.base import Request, answered
from iodock.program.relations.profiled.keys import key_columns
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column
from iodock.shared.errors import RequestError
from iodock.shared.units import NANOSECONDS

_SUMS = ("read_bytes", "written_bytes", "spread_read_bytes", "spread_written_bytes")
_MOST_ROWS = 2_000_000
_END = Column("end_ts", "int", "ns", "time", "end of the interval")
_TYPES = {"int": "BIGINT", "str": "VARCHAR"}


def run(store: Store, asked: Request, of_calls: tuple[Column, ...]) -> Answer:
    """Returns an answer with one row per interface and bin, from the first to the last bin that has bytes.
    Raises RequestError if the store has no heatmaps, or if their bins can't be aligned."""
    rows = _heatmaps(store, asked)
    found = store.rows(
        f"""SELECT interface, min(end_ts - ts) AS least, max(end_ts - ts) AS most, min(ts) AS first,
  max(end_ts) AS last
FROM ({rows}) h GROUP BY 1 ORDER BY 1"""
    )
    if not found:
        otherwise = "record the program, or run it with Darshan 3.4.0 or later"
        hint = store.manifest.calls_hint if store.manifest.is_light else otherwise
        raise RequestError(_why_none(store, asked), hint)
    _check(found, asked.options["every"])
    width = asked.options["every"] or found[0]["most"]
    intervals = sum((row["last"] - row["first"]) // width + 1 for row in found)
    if intervals > _MOST_ROWS:
        raise RequestError(f"{intervals:,} intervals are more than {_MOST_ROWS:,}", "give a longer --every")
    columns = (of_calls[0], _END, *key_columns(("interface",)), *of_calls[1:])
    table = store.table(_filled_sql(rows, width, columns))
    bins = NANOSECONDS.text(found[0]["most"])
    note = (
        f"bytes are sums of the source's bins of {bins}; the source has no single calls within a "
        "bin, and the same bytes are counted in each interface that they pass"
    )
    return answered("timeline", "Over time", store, asked, table, columns, (note,), keys=("interface",))


def _heatmaps(store: Store, asked: Request) -> str:
    for name in asked.filters.given():
        if name != "rank":
            hint = (
                "heatmaps are available per rank and interface; filter: --rank. For more "
                f"{store.manifest.calls_hint}"
            )
            raise RequestError(f"heatmaps can't be filtered by {name}", hint)
    ranks = ", ".join(map(str, asked.filters.rank))
    return f"SELECT * FROM heatmaps {f'WHERE rank IN ({ranks})' if ranks else ''}"


def _why_none(store: Store, asked: Request) -> str:
    if store.rows("SELECT 1 FROM heatmaps LIMIT 1"):
        ranks = ", ".join(map(str, asked.filters.rank))
        return f"{store.name}: the heatmaps show no byte of rank {ranks}"
    if store.rows("SELECT 1 FROM profile_accesses LIMIT 1"):
        return (
            f"{store.name}: contains counters and no heatmap, so it does not show when bytes were "
            "transferred; iodock show accesses and iodock show offsets show the single accesses that it has"
        )
    return f"{store.name}: contains counters and no heatmap, so it does not show when bytes were transferred"


def _check(found: list[dict[str, int]], every: int | None) -> None:
    """Raises RequestError if the heatmaps' bins differ in length, or if EVERY is not a multiple of this
    length."""
    widths = sorted({row[end] for row in found for end in ("least", "most")})
    if widths[-1] - widths[0] > 2:
        listed = ", ".join(map(NANOSECONDS.text, widths))
        hint = "ask for the bins as they are: iodock query STORE 'SELECT * FROM heatmaps'"
        raise RequestError(f"the heatmaps' bins have several lengths: {listed}", hint)
    if every is not None and (every < widths[-1] or every % widths[-1]):
        bins = NANOSECONDS.text(widths[-1])
        raise RequestError(
            f"--every must be a multiple of the heatmaps' bins, which are {bins} ({widths[-1]} ns) long",
            "leave the filter out to get the bins themselves",
        )


def _filled_sql(rows: str, width: int, columns: tuple[Column, ...]) -> str:
    """Returns the SQL that adds rows with 0 bytes for bins in which no process moved bytes. The store has no
    rows for such bins."""
    known = {
        **{name: f"CAST(coalesce(g.{name.removeprefix('spread_')}, 0) AS BIGINT)" for name in _SUMS},
        "ts": f"s.first + s.slot * {width}",
        "end_ts": f"s.first + (s.slot + 1) * {width}",
        "interface": "s.interface",
    }
    listed = ", ".join(
        f'{known.get(one.name, f"NULL::{_TYPES[one.type]}")} AS "{one.name}"' for one in columns
    )
    return f"""WITH h AS ({rows}), o AS (SELECT min(ts) AS first FROM h),
g AS (SELECT interface, CAST(round((ts - o.first) / {width}.0 - 0.01) AS BIGINT) AS slot,
    sum(read_bytes) AS read_bytes, sum(written_bytes) AS written_bytes FROM h, o GROUP BY 1, 2),
e AS (SELECT interface, min(slot) AS low, max(slot) AS high FROM g GROUP BY 1),
s AS (SELECT e.interface, unnest(range(e.low, e.high + 1)) AS slot, o.first FROM e, o)
SELECT {listed} FROM s LEFT JOIN g ON g.interface = s.interface AND g.slot = s.slot
ORDER BY s.interface, s.slot"""
