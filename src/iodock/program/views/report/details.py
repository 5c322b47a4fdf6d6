"""Computes the details of single files for the page (calls, sizes, timeline, offsets). Each query covers
many files."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from iodock.program.store import Store
from iodock.program.views.report.ask import Names, PageTable, ask, page_table, rows_of, without_empty_columns
from iodock.program.views.report.times import TIMELINE_ASKED, Axis, series
from iodock.shared.answer import Answer

CALLS = (
    "call", "count", "failed", "total_time_ns", "mean_time_ns", "min_time_ns", "max_time_ns",
    "sys_cpu_time_ns", "read_bytes", "written_bytes", "calls_per_s", "bytes_per_s",
)  # fmt: skip
SIZES = ("direction", "upper_bytes", "count", "total_time_ns")
CELLS = ("time_bin", "offset_bin", "read_count", "write_count", "start_ns", "offset_bytes", "size_bytes")
TIME_BINS, OFFSET_BINS = 120, 60
MOST_POINTS = 400
"""Up to this number accesses are drawn one by one, if each has a cell of its own."""


def file_details(store: Store, names: Names, chosen: list[int], axis: Axis) -> dict[int, dict[str, Any]]:
    """Returns details by file number. If the bytes or times of a file are not known, its details have
    fewer entries."""
    if not chosen:
        return {}
    files = [names.listed[number] for number in chosen]
    calls = _by_file(ask(store, "summary", by=("file", "call"), file=files), CALLS)
    sizes = _by_file(ask(store, "file_sizes", file=files), SIZES)
    times = _timelines(store, files, axis)
    offsets = _offsets(store, files, axis)
    optional = (
        "sys_cpu_time_ns",
        "total_time_ns",
        "mean_time_ns",
        "min_time_ns",
        "max_time_ns",
        "calls_per_s",
        "bytes_per_s",
    )
    return {
        number: {
            "calls": without_empty_columns(page_table(CALLS, calls[name]), optional),
            "sizes": page_table(SIZES, sizes[name]),
            "timeline": times.get(name),
            "offsets": offsets.get(name),
        }
        for number, name in zip(chosen, files, strict=True)
    }


def _by_file(answer: Answer, names: tuple[str, ...]) -> defaultdict[str, list[list[Any]]]:
    grouped: defaultdict[str, list[list[Any]]] = defaultdict(list)
    for file, *row in rows_of(answer, ("file", *names)):
        grouped[file].append(row)
    return grouped


def _timelines(store: Store, files: list[str], axis: Axis) -> dict[str, PageTable]:
    if axis.start is None:
        return {}
    answer = ask(store, "file_timeline", file=files, every=f"{axis.every_ns}ns")
    return {file: series(rows, axis) for file, rows in _by_file(answer, TIMELINE_ASKED).items()}


def _offsets(store: Store, files: list[str], axis: Axis) -> dict[str, dict[str, Any]]:
    if axis.start is None:
        return {}
    answer = ask(store, "file_offsets", file=files, time_bins=TIME_BINS, offset_bins=OFFSET_BINS)
    grouped = _by_file(answer, ("low_bytes", "high_bytes", *CELLS))
    return {file: _placed(rows, axis) for file, rows in grouped.items()}


def _placed(rows: list[list[Any]], axis: Axis) -> dict[str, Any]:
    low, high = rows[0][0], rows[0][1]
    drawn: dict[str, Any] = {"span_ns": axis.span_ns, "low_bytes": low, "high_bytes": high}
    cells = [row[2:] for row in rows]
    if len(cells) <= MOST_POINTS and all(cell[4] is not None for cell in cells):
        points = sorted([start, offset, size, bool(writes)] for _, _, _, writes, start, offset, size in cells)
        return drawn | {"points": points}
    return drawn | {"time_bins": TIME_BINS, "offset_bins": OFFSET_BINS, "cells": [cell[:4] for cell in cells]}
