"""Measurements as CSV: one row per cell, with plain numbers in base units. An empty field means not known."""

from __future__ import annotations

import csv
import io
import json

from iodock.file_system.health.measurements import Measurements
from iodock.file_system.health.measurements_json import cell_out
from iodock.shared.tables.cells import guarded_row

_LATENCY = ("p50", "p99", "p99_9", "max", "min", "mean", "count")


def render(measurements: Measurements) -> str:
    """Formats the whole table. Latencies are columns of their own; lists and maps are JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for at, cell in enumerate(measurements.cells):
        row = cell_out(cell)
        latency = row.pop("latency_ns")
        times = latency if isinstance(latency, dict) else {}
        flat = {
            **{
                name: json.dumps(value) if isinstance(value, (list, dict)) else value
                for name, value in row.items()
            },
            **{f"latency_{name}{'' if name == 'count' else '_ns'}": times.get(name) for name in _LATENCY},
        }
        if at == 0:
            writer.writerow(flat)
        writer.writerow(guarded_row(flat.values()))
    return out.getvalue()
