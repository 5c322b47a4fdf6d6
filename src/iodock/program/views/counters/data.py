"""Collects the data for the page of counters: answers of analyses, and the cells of the heatmap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iodock.program.analyses import find
from iodock.program.analyses.base import request
from iodock.program.analyses.counters.sizes import unsized
from iodock.program.store import Store
from iodock.shared.answer import Answer

Row = dict[str, Any]
MOST_FILES = 30
MOST_RANKS = 10
_TIME_CELLS, _RANK_CELLS = 120, 64


@dataclass(frozen=True, slots=True)
class Heat:
    """Holds the bytes of ranks over time, in as many cells as fit on a page."""

    interface: str
    ranks: int
    ranks_per_row: int
    start_ns: int
    end_ns: int
    cell_ns: int
    cells: Sequence[tuple[int, int, int, int]]
    """Cells that are not empty: row, column, bytes read, bytes written."""
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Counters:
    """Holds all data that one page shows."""

    store: Store
    totals: Mapping[str, Any]
    interfaces: Sequence[Row]
    sizes: Sequence[Row]
    files: Sequence[Row]
    files_of: int
    ranks: Sequence[Row]
    """Rows of the slowest ranks, then of the fastest ones; empty if fewer than two are known."""
    ranks_of: int
    shared: Sequence[Row]
    """Files that all ranks share. Those with the largest differences between ranks come first."""
    heat: Heat | None
    unsized: Sequence[str]
    """Interfaces that moved bytes but whose request sizes are not known."""


def counters_of(store: Store) -> Counters:
    """Queries the store for the data of its page."""
    overview = _ask(store, "overview")
    files = _ask(store, "files", top=MOST_FILES)
    ranks = _ask(store, "summary", by=("rank",)).table.to_pylist()
    timed = [row for row in ranks if row["rank"] is not None and row["total_time_ns"] is not None]
    longest = sorted(timed, key=lambda row: -row["total_time_ns"])
    sizes = _ask(store, "sizes").table.to_pylist()
    return Counters(
        store=store,
        totals=overview.totals.total if overview.totals else {},
        interfaces=_ask(store, "summary", by=("interface",)).table.to_pylist(),
        sizes=sizes,
        files=files.table.to_pylist(),
        files_of=files.totals.of if files.totals else files.table.num_rows,
        ranks=_ends(longest) if len({row["rank"] for row in timed}) > 1 else [],
        ranks_of=len(longest),
        shared=_shared(store),
        heat=heat_of(store),
        unsized=unsized(store),
    )


def _ask(store: Store, name: str, **options: Any) -> Answer:
    analysis = find(name)
    return analysis.run(store, request(analysis, options))


def _ends(longest: list[Row]) -> list[Row]:
    if len(longest) <= 2 * MOST_RANKS:
        return longest
    return [*longest[:MOST_RANKS], *longest[-MOST_RANKS:]]


def _shared(store: Store) -> list[Row]:
    return store.rows(
        f"""SELECT f.name AS file, p.interface, p.ranks, p.fastest_rank, p.fastest_time_ns, p.fastest_bytes,
  p.slowest_rank, p.slowest_time_ns, p.slowest_bytes, p.variance_time_s2
FROM profiles p LEFT JOIN files f ON f.file_id = p.file_id
WHERE p.rank IS NULL AND p.ranks > 1 AND p.slowest_time_ns > 0
ORDER BY p.slowest_time_ns - coalesce(p.fastest_time_ns, 0) DESC, 1, 2 LIMIT {MOST_RANKS}"""
    )


def heat_of(store: Store) -> Heat | None:
    """Returns the heatmap of POSIX calls, or if there is none, that of the interface with most bytes; None
    if the store has no heatmap."""
    known = store.rows(
        """SELECT interface, min(ts) AS first, max(end_ts) AS last, max(rank) + 1 AS ranks,
  max(end_ts - ts) AS bin
FROM heatmaps GROUP BY 1 ORDER BY interface <> 'posix', sum(read_bytes + written_bytes) DESC LIMIT 1"""
    )
    if not known:
        return None
    (of,) = known
    bins = -(-(of["last"] - of["first"]) // of["bin"])
    cell = of["bin"] * max(1, -(-bins // _TIME_CELLS))
    every = max(1, -(-of["ranks"] // _RANK_CELLS))
    # The time bins of different ranks may begin a few ns apart, so the middle of a bin determines its cell.
    cells = store.rows(
        f"""SELECT CAST(rank // {every} AS INTEGER) AS row,
  CAST(((ts + end_ts) // 2 - {of["first"]}) // {cell} AS INTEGER) AS place,
  CAST(sum(read_bytes) AS BIGINT) AS read, CAST(sum(written_bytes) AS BIGINT) AS written
FROM heatmaps WHERE interface = '{of["interface"]}' GROUP BY 1, 2 ORDER BY 1, 2"""
    )
    return Heat(
        interface=of["interface"],
        ranks=of["ranks"],
        ranks_per_row=every,
        start_ns=of["first"],
        end_ns=of["last"],
        cell_ns=cell,
        cells=[(one["row"], one["place"], one["read"], one["written"]) for one in cells],
        rows=-(-of["ranks"] // every),
        columns=max(one["place"] for one in cells) + 1,
    )
