"""Formats measurements as CSV, with one row per cell. Numbers are plain and in base units. An empty field
means that a value is not known."""

from __future__ import annotations

import csv
import io
import json

from iodock.file_system.health.measurements import Measurements
from iodock.file_system.health.measurements_json import cell_out
from iodock.shared.tables.cells import guarded_row

_LATENCY = ("p50", "p99", "p99_9", "max", "min", "mean", "count")


def render(measurements: Measurements) -> str:
    """Formats the whole table. Each latency has a column of its own. Lists and mappings are written as
    JSON."""
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
