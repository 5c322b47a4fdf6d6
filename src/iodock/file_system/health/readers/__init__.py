"""Lists the readers for results of other benchmarks, and chooses the reader for a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from iodock.file_system.health.measurements import MeasurementError, Measurements
from iodock.file_system.health.readers import (
    elbencho,
    fio,
    h5bench,
    io500,
    iodock_json,
    ior,
    iozone,
    md_workbench,
    mdtest,
)
from iodock.file_system.health.readers.base import Reader, Source
from iodock.file_system.health.readers.credible import credible_cells
from iodock.shared.errors import RequestError, meant

READERS: tuple[Reader, ...] = (
    ior.READER,
    mdtest.READER,
    io500.READER,
    fio.READER,
    elbencho.READER,
    iozone.READER,
    md_workbench.READER,
    h5bench.READER,
    iodock_json.READER,
)
_LEAST = 0.3
"""If no reader is at least this certain, the format is not known."""
_TIE = 0.04
_NOTHING_LEFT = (
    "check the lines named: copy the whole output again, or correct the benchmark and run it again"
)


def names() -> tuple[str, ...]:
    """Returns the names of the readers, which are the values of the option `--from`."""
    return tuple(reader.name for reader in READERS)


def read(path: Path, name: str | None = None) -> Measurements:
    """Reads a file or a result folder. NAME selects the reader; without NAME, the reader that recognises the
    file is used. Raises MeasurementError if the file can't be read, and RequestError for an unknown name."""
    source = Source(path)
    reader = recognise(source) if name is None else next((one for one in READERS if one.name == name), None)
    if reader is None:
        hint = meant(name or "", names(), f"benchmarks: {', '.join(names())}")
        raise RequestError(f"no such benchmark: {name}", hint)
    try:
        return _credible(reader.read(source), source)
    except MeasurementError as error:
        if not source.doubts.counts:
            raise
        # The reader found values but left all of them out as invalid. The message lists the invalid values,
        # because it helps more than the statement that there is no result.
        raise MeasurementError(f"{source.path}: {'; '.join(source.doubts.notes())}", _NOTHING_LEFT) from error


def _credible(measured: Measurements, source: Source) -> Measurements:
    """Removes impossible values from MEASURED and describes them in the notes of its protocol. Raises
    MeasurementError if no value remains."""
    cells = credible_cells(measured.cells, source.doubts)
    if measured.cells and not cells:
        raise MeasurementError(f"{source.path}: none of its values can have been measured", _NOTHING_LEFT)
    notes = (*measured.protocol.notes, *source.doubts.notes())
    return replace(measured, protocol=replace(measured.protocol, notes=notes), cells=cells)


def recognise(source: Source) -> Reader:
    """Returns the reader that recognises the file with the highest certainty. Raises MeasurementError if no
    reader recognises it, or if two are about equally certain."""
    sure = sorted(((reader.sniff(source), reader) for reader in READERS), key=lambda one: -one[0])
    (best, first), (second, other) = sure[0], sure[1]
    if best < _LEAST:
        hint = f"give its kind: --from {'|'.join(names())}"
        raise MeasurementError(f"{source.path}: {_why_not(source)}", hint)
    if best - second <= _TIE:
        message = f"{source.path}: may be of {first.name} or of {other.name}"
        raise MeasurementError(message, f"choose one: --from {first.name}")
    return first


def _why_not(source: Source) -> str:
    if source.path.is_dir():
        return "is a folder without a result of IO500"
    if not source.text:
        return "is empty or not text"
    return "is not a benchmark result that iodock recognises"
