"""iodock's own measurements, as `iodock health run` writes them."""

from __future__ import annotations

import json

from iodock.health import measurements_json
from iodock.health.measurements import SCHEMA, Measurements
from iodock.health.readers.base import Reader, Source


def sniff(source: Source) -> float:
    """Sure of the schema's name, half sure of cells with a protocol."""
    start = source.start
    if f'"{SCHEMA}"' in start:
        return 0.95
    return 0.7 if start.lstrip().startswith("{") and '"protocol"' in start and '"cells"' in start else 0.0


def read(source: Source) -> Measurements:
    """Raises MeasurementError."""
    try:
        content = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise source.wrong(line, f"is no JSON: {error}", "write it again with --format json") from error
    return measurements_json.from_json(content, str(source.path))


READER = Reader("iodock", "measurements of iodock: JSON", sniff, read)
