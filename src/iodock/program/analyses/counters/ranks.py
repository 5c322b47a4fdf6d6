"""Sums the I/O of MPI ranks whose calls were counted instead of recorded (`iodock record --ranks` and
`--light`)."""

from __future__ import annotations

from iodock.program.relations.filters import Filters
from iodock.program.relations.io_time import WAITED_FOR
from iodock.program.relations.profiled.chosen import CHOSEN, choose
from iodock.program.store import Store
from iodock.shared.errors import RequestError

COUNTED_RANKS = "counted_ranks"
MEASURES = (
    "io_time_ns",
    "read_time_ns",
    "write_time_ns",
    "metadata_time_ns",
    "sync_time_ns",
    "waiting_time_ns",
    "collective_time_ns",
    "count",
    "reads",
    "writes",
    "read_bytes",
    "written_bytes",
)
_SYNCS = "the write time of counted ranks includes the time of their syncs"


def keep_counted(store: Store, filters: Filters) -> tuple[str, ...]:
    """Creates the table `counted_ranks` with a row for each rank that was only counted, and returns notes.
    Counters do not contain closes, waiting calls and the time of syncs in writes, so these columns are
    empty."""
    manifest, ranks = store.manifest, counted_ranks_sql(store)
    notes: tuple[str, ...] = ()
    sums = ", ".join(f"NULL::BIGINT AS {name}" for name in MEASURES)
    if "light" in manifest.source:
        try:
            notes = choose(store, filters)
            sums = f"{_sums()} FROM ranks r LEFT JOIN {CHOSEN} c ON c.rank = r.rank GROUP BY r.rank"
        except RequestError as error:
            if manifest.is_light:
                raise
            notes = (f"counted ranks are not shown: {error}",)
    if " FROM " not in sums:
        sums += " FROM ranks r"
    store.keep(COUNTED_RANKS, f"WITH ranks AS ({ranks}) SELECT r.rank, {sums}")
    if store.rows(
        f"SELECT 1 FROM {COUNTED_RANKS} WHERE count IS NULL AND sync_time_ns IS NULL AND writes > 0"
    ):
        notes = (*notes, _SYNCS)
    return notes


def counted_ranks_sql(store: Store) -> str:
    """Returns the SQL for the ranks that were counted and not recorded."""
    which = "true" if store.manifest.is_light else _in_ranges(store.manifest.counted_ranks)
    return f"SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL AND ({which})"


def _in_ranges(ranges: str) -> str:
    """Returns the SQL condition that the rank is in RANGES, such as `1-6,8`."""
    pairs = (one.partition("-") for one in ranges.split(",") if one)
    return " OR ".join(f"rank BETWEEN {low} AND {high or low}" for low, _, high in pairs) or "false"


def _sums() -> str:
    """Returns the SQL for the sums of a rank. Waiting for pipes and sockets does not count as I/O, just as in
    recordings of calls."""
    reads = f"FILTER (coalesce(c.kind NOT IN ({WAITED_FOR}, 'standard'), true))"
    writes = f"FILTER (coalesce(c.kind NOT IN ({WAITED_FOR}), true))"
    reading, writing = f"sum(c.read_time_ns) {reads}", f"sum(c.write_time_ns) {writes}"
    each = {
        "io_time_ns": f"coalesce({reading}, 0) + coalesce({writing}, 0) + coalesce(sum(c.meta_time_ns), 0)",
        "read_time_ns": f"coalesce({reading}, 0)",
        "write_time_ns": f"coalesce({writing}, 0)",
        "metadata_time_ns": "coalesce(sum(c.meta_time_ns), 0)",
        "sync_time_ns": "CASE WHEN coalesce(sum(c.syncs), 0) = 0 THEN 0 END",
        "reads": f"coalesce(sum(c.reads) {reads}, 0)",
        "writes": f"coalesce(sum(c.writes) {writes}, 0)",
        "read_bytes": f"coalesce(sum(c.read_bytes) {reads}, 0)",
        "written_bytes": f"coalesce(sum(c.written_bytes) {writes}, 0)",
    }
    return ", ".join(f"CAST({each.get(name, 'NULL')} AS BIGINT) AS {name}" for name in MEASURES)
