"""Converts small tables to rows, and computes means from rows."""

from __future__ import annotations

import pyarrow as pa


def as_rows(table: pa.Table) -> list[dict[str, object]]:
    """Converts a small table to a list of rows, each with its values by the names of columns."""
    rows: list[dict[str, object]] = table.to_pylist()
    return rows


def means(rows: list[dict[str, object]]) -> tuple[float | None, float | None]:
    """Returns the mean length of the queue and the mean waiting time in s, over rows of
    `file_systems.waiting`."""
    samples, queued = (sum(_number(row, name) for row in rows) for name in ("samples", "queued"))
    handled, waited = (sum(_number(row, name) for row in rows) for name in ("handled", "waited_us"))
    return (queued / samples if samples else None), (waited / handled / 1e6 if handled else None)


def _number(row: dict[str, object], name: str) -> float:
    value = row[name]
    return float(value) if isinstance(value, (int, float)) else 0.0
