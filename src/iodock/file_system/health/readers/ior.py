"""Reads results of IOR 2.10 to 4.1: its text, its JSON and its CSV.

Sources: IOR's own output functions, and runs of each version. Rates are in MiB/s, where a MiB is 2^20 bytes.
Latencies, and the column OPs of 2.10, are not read, because their meaning differs between versions.
"""

from __future__ import annotations

import re
from statistics import fmean

from iodock.file_system.health.measurements import Cache, Cell, Json, Measurements, Protocol, Unit, repeated
from iodock.file_system.health.readers import ior_json, ior_text
from iodock.file_system.health.readers.base import (
    CTIME,
    Reader,
    Source,
    date,
    number,
    option,
    several_commands,
    size,
    whole,
    words,
)
from iodock.file_system.health.readers.caching import ior_is_direct, of_ior_write
from iodock.file_system.health.readers.credible import fault_of
from iodock.file_system.health.readers.ior_rows import Result, Row, Run

_BANNER = re.compile(r"^IOR-(\S+): MPI Coordinated Test of Parallel I/O", re.MULTILINE)
_ACCESS = {"single-shared-file": "shared-file", "file-per-process": "file-per-process"}
_ERROR = re.compile(
    r"^(?:ior (?:ERROR|FATAL ERROR): (?P<said>.*)|(?P<parameter>Unrecognized parameter .*)"
    r"|\*\* error \*\*\s*(?P<old>.*)|(?P<abort>MPI_ABORT was invoked.*))$",
    re.MULTILINE,
)


def sniff(source: Source) -> float:
    """Returns a high certainty if the file begins with IOR's banner, the members of IOR's JSON, or the header
    of its CSV."""
    start = source.start
    if _BANNER.search(start):
        return 0.95
    if '"Command line"' in start and '"Parameters"' in start and '"tests"' in start:
        return 0.95
    return 0.95 if start.startswith("access,bw(MiB/s),") else 0.0


def read(source: Source) -> Measurements:
    """Reads all tests in a file. If IOR measured nothing, MeasurementError contains IOR's own error
    message."""
    if source.start.startswith("access,bw(MiB/s),"):
        result = ior_text.read_csv(source)
    elif '"tests"' in source.start:
        result = ior_json.read(source)
    else:
        result = ior_text.read_text(source)
    found = _BANNER.search(source.start)
    result.version = result.version or (found[1] if found else None)
    cells = tuple(cell for run in result.runs for cell in _cells(run, source))
    error = _first_error(source)
    if not cells:
        raise _nothing(source, error)
    return Measurements(_protocol(result, source, error), cells)


def _first_error(source: Source) -> tuple[int, str] | None:
    first = _ERROR.search(source.text)
    # An error message of IOR is more helpful than the message of MPI_ABORT that surrounds it.
    own = next((one for one in _ERROR.finditer(source.text) if not one["abort"]), first)
    if own is None:
        return None
    said = next((text.strip() for text in own.groupdict().values() if text), "an error")
    return source.line_of(own.start()), said


def _nothing(source: Source, error: tuple[int, str] | None) -> Exception:
    if error is None:
        return source.wrong(
            len(source.lines),
            "IOR's output ends before any result",
            "let the run end, and copy its whole output",
        )
    line, said = error
    if "summaryFormat" in said:
        hint = "IOR before 3.2 writes no JSON: run it without -O summaryFormat, and read its text"
    elif "xfer-size == block-size" in said:
        hint = (
            "IOR refused its options, so nothing was measured: use -b as large as -t with -s above 1, or -s 1"
        )
    else:
        hint = "IOR stopped, so nothing was measured: correct what it reports and run it again"
    return source.wrong(line, f"IOR stopped before any result: {said}", hint)


def _protocol(result: Result, source: Source, error: tuple[int, str] | None) -> Protocol:
    first = result.runs[0].settings
    settings: dict[str, Json] = {
        "segments": whole(first.get("segments")),
        "block_bytes": _exact(first.get("blocksize"), result.runs[0], "-b"),
        "stonewalling_seconds": number(first.get("stonewallingTime")),
    }
    notes = [] if error is None else [f"{source.at(error[0])}: IOR reported an error: {error[1]}"]
    notes += several_commands(run.command for run in result.runs)
    return Protocol(
        tool="ior",
        version=result.version,
        started=date(result.began, CTIME),
        finished=date(result.finished, CTIME),
        host=(result.machine or "").split(" ")[-1] or None,
        target=first.get("test filename"),
        command=result.command,
        settings={name: value for name, value in settings.items() if value is not None},
        notes=tuple(notes),
    )


def _cells(run: Run, source: Source) -> list[Cell]:
    """Makes one cell per operation. Its repeats are the rows of the single iterations. If IOR printed only
    one row for all iterations, the cell has its mean."""
    cells = []
    credible = [row for row in run.rows if _is_credible(row, source)]
    for operation in dict.fromkeys(row.operation for row in credible):
        rows = [row for row in credible if row.operation == operation]
        if operation == "remove":
            cells.append(_removal(rows, run, source))
            continue
        rows = [row for row in rows if row.bandwidth is not None]
        if rows:
            cells.append(_transfer(rows, run, source))
    return [cell for cell in cells if cell is not None]


def _is_credible(row: Row, source: Source) -> bool:
    """Returns whether the values of an iteration are possible. The other iterations of the test are used even
    if this one is rejected."""
    if row.operation == "remove":
        fault = None if row.seconds is None else fault_of(row.seconds, Unit.SECONDS)
    else:
        fault = None if row.bandwidth is None else fault_of(row.bandwidth, Unit.BYTES_PER_S, row.seconds)
    if fault is not None:
        source.doubts.count(fault.why, f"ior {row.operation} {fault.value}", source.at(row.line))
    return fault is None


def _transfer(rows: list[Row], run: Run, source: Source) -> Cell:
    first = rows[0]
    values = [row.bandwidth for row in rows if row.bandwidth is not None]
    times = [row.seconds for row in rows if row.seconds is not None]
    cached, reason = _cache(first.operation, run)
    cell = Cell(
        test="ior",
        operation=first.operation,
        size_bytes=_exact(run.settings.get("xfersize"), run, "-t") or first.size_bytes,
        processes=_processes(run) or first.processes,
        nodes=_nodes(run),
        value=values[0],
        unit=Unit.BYTES_PER_S,
        repeats=whole(run.settings.get("repetitions")),
        spread=first.spread,
        cache=cached,
        cache_reason=reason,
        minimum=first.minimum,
        maximum=first.maximum,
        variant=_variant(run),
        volume_bytes=size(run.settings.get("aggregate filesize")),
        seconds=fmean(times) if times else None,
        source=source.at(first.line),
    )
    return cell if first.of_all else repeated(cell, values)


def _removal(rows: list[Row], run: Run, source: Source) -> Cell | None:
    times = [row.seconds for row in rows if row.seconds is not None]
    if not times:
        return None
    cell = Cell(
        test="ior",
        operation="file-remove",
        size_bytes=None,
        unit=Unit.SECONDS,
        processes=_processes(run),
        nodes=_nodes(run),
        value=times[0],
        repeats=1,
        spread=None,
        variant=_variant(run),
        source=source.at(rows[0].line),
    )
    return repeated(cell, times)


def _variant(run: Run) -> dict[str, str]:
    settings = run.settings
    said = {
        "api": settings.get("api"),
        "access": _ACCESS.get(settings.get("access", ""), settings.get("access")),
        "collective": {"collective": "yes", "independent": "no"}.get(settings.get("type", "")),
        "block_bytes": str(_exact(settings.get("blocksize"), run, "-b") or ""),
        "stripe_bytes": str(size(settings.get("Lustre stripe size")) or ""),
        "stripe_count": settings.get("stripe count"),
        "order": "random" if settings.get("ordering in a file", "").startswith("random") else None,
    }
    if said["api"] == "POSIX":
        said["collective"] = None
    return {name: value for name, value in said.items() if value}


def _exact(rounded: str | None, run: Run, name: str) -> int | None:
    """Returns a size in bytes. IOR may print a rounded size such as `45.91 KiB`. The size in the command line
    (option NAME) is then returned, if it differs by no more than 1 %."""
    shown, asked = size(rounded), size(option(words(run.command), name))
    if shown is None or asked is None:
        return shown
    return asked if abs(asked - shown) <= 0.01 * shown else shown


def _processes(run: Run) -> int | None:
    return whole(run.settings.get("tasks")) or whole(run.settings.get("clients", "").split(" ")[0]) or None


def _nodes(run: Run) -> int | None:
    known = whole(run.settings.get("nodes"))
    if known:
        return known
    found = re.search(r"\((\d{1,9}) per node\)", run.settings.get("clients", ""))
    each = whole(run.settings.get("clients per node")) or (whole(found[1]) if found else None)
    processes = _processes(run)
    return -(-processes // each) if each and processes else None


def _cache(operation: str, run: Run) -> tuple[Cache | None, str | None]:
    command = words(run.command)
    if operation == "write":
        return of_ior_write(command, run.settings)
    if operation != "read":
        return None, None
    if ior_is_direct(command, run.settings):
        return Cache.UNCACHED, "O_DIRECT"
    shifted = run.settings.get("ordering inter file", "").startswith(("constant task offset", "random task"))
    if shifted and (_nodes(run) or 1) > 1:
        return Cache.UNCACHED, "read by another node than wrote it"
    return Cache.UNKNOWN, None


READER = Reader("ior", "IOR 2.10 to 4.1: text, JSON, CSV", sniff, read)
