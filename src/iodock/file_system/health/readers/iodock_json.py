"""Reads iodock's own measurements, which `iodock health run` writes as JSON."""

from __future__ import annotations

from iodock.file_system.health import measurements_json
from iodock.file_system.health.measurements import SCHEMA, Measurements
from iodock.file_system.health.readers.base import Reader, Source
from iodock.shared.bounded.documents import DocumentError, from_json


def sniff(source: Source) -> float:
    """Returns a high certainty if the file contains the name of the schema, and a lower one if it contains
    the members `protocol` and `cells`."""
    start = source.start
    if f'"{SCHEMA}"' in start:
        return 0.95
    return 0.7 if start.lstrip().startswith("{") and '"protocol"' in start and '"cells"' in start else 0.0


def read(source: Source) -> Measurements:
    """Reads the measurements in the file. Raises MeasurementError."""
    try:
        content = from_json(source.text)
    except DocumentError as error:
        raise source.wrong(error.line or 1, str(error), "write it again with --format json") from error
    return measurements_json.from_json(content, str(source.path))


READER = Reader("iodock", "measurements of iodock: JSON", sniff, read)
