"""Writes a file for speedscope, with one profile for each weight.

The format is described in https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from iodock import __version__
from iodock.program.relations.flames import Frame
from iodock.program.relations.paths import Paths

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"time": "nanoseconds", "bytes": "bytes", "calls": "none"}


def write_speedscope(paths: Paths, out: BinaryIO) -> None:
    """Writes a file with one profile for each weight. speedscope shows the profile of the chosen weight
    first."""
    places = {number: place for place, number in enumerate(paths.frames)}
    profiles = []
    for weight in paths.weights:
        samples, weights = [], []
        for path in paths:
            if path.weight(weight):
                samples.append([places[number] for number in path.frames])
                weights.append(path.weight(weight))
        profiles.append(
            {
                "type": "sampled",
                "name": f"{paths.store.name}: {weight}",
                "unit": _UNITS[weight],
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        )
    written = {
        "$schema": _SCHEMA,
        "name": paths.store.name,
        "exporter": f"iodock {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(one) for one in paths.frames.values()]},
        "profiles": profiles,
    }
    out.write(
        json.dumps(written, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    )


def _frame(frame: Frame) -> dict[str, Any]:
    known = {"name": frame.title, "file": frame.file, "line": frame.line}
    return {name: value for name, value in known.items() if value is not None}
