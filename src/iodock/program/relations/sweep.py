"""Computes the time in which at least one thread was in a call, which is the union of the calls' intervals,
from Arrow columns.

SQL would need to sort all calls by their start. The events of a store are sorted by the end of calls, except
that the times of different threads may be out of order by some µs. The algorithm here needs no other order.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc


def unions(batches: Iterable[pa.RecordBatch]) -> tuple[int, int]:
    """Returns the length in ns of the union of all intervals (columns from_ts, to_ts, in_subset), and of the
    union of the intervals in the subset. The intervals may be in any order. The function is faster if this
    order is close to the order of their ends.

    The intervals are processed by descending end. The intervals processed so far cover all time from the
    earliest of their starts to the end of the current interval. So the current interval adds only its part
    before that earliest start.
    """
    kept = [batch for batch in batches if batch.num_rows]
    every, subset = _Backwards(), _Backwards()
    for ready in _by_falling_end(kept):
        starts, ends, wanted = (ready.column(name) for name in ("from_ts", "to_ts", "in_subset"))
        every.add(starts, ends)
        subset.add(starts.filter(wanted), ends.filter(wanted))
    return every.total_ns, subset.total_ns


def _by_falling_end(batches: list[pa.RecordBatch]) -> Iterable[pa.Table]:
    """Yields the rows by descending `to_ts`, in several tables. No interval in a table ends later than one in
    a table that was yielded before."""
    reached: list[int | None] = [None]
    for batch in batches:
        latest = pc.max(batch["to_ts"]).as_py()
        before = reached[-1]
        reached.append(latest if before is None or latest > before else before)
    waiting: pa.Table | None = None
    for at in range(len(batches) - 1, -1, -1):
        batch, bound = batches[at], reached[at]
        if waiting is None and _in_order(batch["to_ts"], bound):
            yield pa.Table.from_batches([batch.take(pa.arange(batch.num_rows - 1, -1, -1))])
            continue
        pool = pa.Table.from_batches([batch])
        pool = pool if waiting is None else pa.concat_tables([pool, waiting])
        if bound is None:
            yield _sorted(pool)
            return
        is_ready = pc.greater_equal(pool.column("to_ts"), bound)
        held = pool.filter(pc.invert(is_ready))
        waiting = held if held.num_rows else None
        yield _sorted(pool.filter(is_ready))


def _in_order(ends: pa.Array, bound: int | None) -> bool:
    if bound is not None and ends[0].as_py() < bound:
        return False
    return bool(pc.all(pc.less_equal(ends[:-1], ends[1:]), min_count=0).as_py())


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("to_ts", "descending")]).combine_chunks()


class _Backwards:
    """Adds up the union of intervals that arrive by descending end. It keeps the earliest start of the
    intervals so far."""

    def __init__(self) -> None:
        self.total_ns = 0
        self.earliest: int | None = None

    def add(self, starts: pa.ChunkedArray, ends: pa.ChunkedArray) -> None:
        """Adds intervals, which must be sorted by descending end and end no later than those added before."""
        for start, end in zip(starts.chunks, ends.chunks, strict=True):
            if len(start):
                self._add(start, end)

    def _add(self, starts: pa.Array, ends: pa.Array) -> None:
        before = self.earliest if self.earliest is not None else ends[0].as_py()
        running = pc.cumulative_min(starts, start=pa.scalar(before, pa.int64()))
        reached = pa.concat_arrays([pa.array([before], pa.int64()), running[:-1]])
        added = pc.subtract(pc.min_element_wise(ends, reached), starts)
        self.total_ns += pc.sum(pc.max_element_wise(added, 0)).as_py()
        self.earliest = running[-1].as_py()
