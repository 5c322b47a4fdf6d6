"""Counts reads and writes by size."""

from __future__ import annotations

from dataclasses import replace

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.analyses.counters import sizes as counters
from iodock.program.relations.selection import Selection
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

COLUMNS = (
    Column("direction", "str", None, "key", "read or write"),
    Column(
        "upper_bytes",
        "int",
        "bytes",
        "key",
        "upper limit of the bin: 0, 1, 2, 4, 8, ...; the bin begins above half of it",
    ),
    Column("count", "int", "calls", "measure", "number of transfers with these sizes", importance="first"),
    Column(
        "total_time_ns",
        "int",
        "ns",
        "measure",
        "time inside these calls, added up over all threads",
        importance="first",
    ),
    Column("bytes", "int", "bytes", "measure", "sum of the bytes of these transfers", importance="first"),
)
LARGEST_BIN = 1 << 62
"""Largest size with a bin of its own. The next power of two, which coreutils' copy_file_range requests, does
not fit into int64 and needs uint64."""

LARGEST_SUM = (1 << 63) - 1
_CAPPED = (
    f"bytes of {LARGEST_SUM} stand for that and more: programs may ask for any size, as often as they like"
)


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per direction and size, where a size is a bin or, on request, an exact
    number of bytes."""
    if store.manifest.profiles_only:
        return counters.run(store, asked, COLUMNS)
    selection = select(store, asked.filters)
    store.keep("exact_sizes", exact_sql(selection, bool(asked.options["requested"])))
    size = "size" if asked.options["exact"] else BIN
    table = store.table(
        f"""SELECT CASE direction WHEN 1 THEN 'read' ELSE 'write' END AS direction, {size} AS upper_bytes,
  CAST(sum(count) AS BIGINT) AS count, CAST(sum(time) AS BIGINT) AS total_time_ns,
  CAST(least(sum(CAST(size AS DECIMAL(38, 0)) * count), {LARGEST_SUM}) AS BIGINT) AS bytes
FROM exact_sizes GROUP BY 1, 2 ORDER BY 1, 2"""
    )
    title = "Requested sizes" if asked.options["requested"] else "Sizes of reads and writes"
    shown = answer("sizes", title, store, asked, table, COLUMNS, selection, keys=("direction", "upper_bytes"))
    capped = table["bytes"].to_pylist().count(LARGEST_SUM)
    return replace(shown, notes=(*shown.notes, _CAPPED)) if capped else shown


def exact_sql(selection: Selection, requested: bool) -> str:
    """Returns the SQL for transfers by direction and exact size. A call that reads one file and writes
    another (such as sendfile) counts as two transfers."""
    size = "e.requested_bytes" if requested else "e.bytes"
    where = selection.and_where("e.direction IN (1, 2)", "e.bytes IS NOT NULL", f"{size} >= 0")
    return (
        f"SELECT e.direction, {size} AS size, count(*) AS count, sum(e.dur) AS time "
        f"FROM events e {selection.joins} {where} GROUP BY 1, 2"
    )


_GUESS = "CAST(power(2, ceil(log2(size))) AS BIGINT)"
# The logarithm is a float, so the computed bin may be the one before or after the right one for a size near a
# large power of two. The comparisons correct this.
BIN = f"""CAST(CASE WHEN size <= 1 THEN size WHEN size > {LARGEST_BIN} THEN {LARGEST_BIN << 1}
  WHEN size > {_GUESS} THEN {_GUESS} * 2 WHEN size <= {_GUESS} // 2 THEN {_GUESS} // 2 ELSE {_GUESS} END
  AS UBIGINT)"""

ANALYSIS = Analysis(
    name="sizes",
    title="Sizes of reads and writes",
    doc="""A histogram of transfers by size: bins are powers of two, 2^n+1 to 2^(n+1), with separate bins for
    0 and 1 byte. A transfer of 0 bytes is the end of a file. Calls with two ends (sendfile) count at both.
    For counters (Darshan's logs) these are the bins of their own histograms, from `lower_bytes` to
    `upper_bytes`, for each interface.""",
    columns=COLUMNS,
    run=run,
    profiles=True,
    options=(
        Option("exact", "flag", False, "each size separately instead of bins"),
        Option(
            "requested",
            "flag",
            False,
            "the requested sizes of these transfers instead of the transferred ones",
        ),
    ),
    examples=(
        "iodock show sizes run.iodock",
        "iodock show sizes run.iodock --file '/scratch/**' --exact --format csv",
    ),
)
