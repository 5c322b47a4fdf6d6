"""Compares the union of intervals with brute force, for sorted, nearly sorted and unsorted input."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from iodock.program.relations.sweep import unions

Interval = tuple[int, int, bool]


def brute(intervals: list[Interval]) -> int:
    total, reached = 0, 0
    for start, end, _ in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def table(intervals: list[Interval]) -> pa.Table:
    starts, ends, subset = (
        [one[0] for one in intervals],
        [one[1] for one in intervals],
        [one[2] for one in intervals],
    )
    return pa.table(
        {
            "from_ts": pa.array(starts, pa.int64()),
            "to_ts": pa.array(ends, pa.int64()),
            "in_subset": pa.array(subset, pa.bool_()),
        }
    )


@pytest.mark.parametrize("disorder", [0, 1, 5, 40, 2000])
def test_unions_of_intervals_are_exact_in_any_order(disorder: int) -> None:
    for seed in range(60):
        pick = random.Random(seed)
        longest = pick.choice([1, 5, 50, 300])
        intervals = []
        for _ in range(pick.randrange(200)):
            start = pick.randrange(1000)
            intervals.append((start, start + pick.randrange(longest), pick.random() < 0.6))
        intervals.sort(key=lambda one: one[1] + pick.randrange(disorder + 1))
        in_any, in_subset = unions(table(intervals).to_batches(max_chunksize=17))
        assert in_any == brute(intervals)
        assert in_subset == brute([one for one in intervals if one[2]])
