"""Reads results of fio 2 and 3: the output of `--output-format=json` and `json+`, fio's text, and its terse
lines.

Sources: fio's manual (`fio_doc`, JSON output), stat.c and own runs. Jobs with the same name and group ran at
the same time, on one host or on several (`fio --client`), so the reader adds their rates. Version 2 writes
rates in KiB/s and latencies in microseconds; since version 3.0 they are in bytes/s and ns. With
`--status-interval` fio writes the state of a run several times, and the reader uses the last document.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from iodock.file_system.health.measurements import Cell, Latency, Measurements, Protocol, Unit
from iodock.file_system.health.readers import fio_json, fio_runs, fio_sections, fio_text
from iodock.file_system.health.readers.base import Reader, Repeats, Source, duration, number, together, whole
from iodock.file_system.health.readers.caching import of_fio
from iodock.file_system.health.readers.fio_json import DIRECTIONS, Document, bytes_moved, jobs_of
from iodock.file_system.health.readers.fio_sections import MERGED, SUM, Shape, options_of

_HINT = "run fio with --output-format=json --output=FILE"
_FILE_ENGINES = {
    "filecreate": "file-create",
    "filestat": "file-stat",
    "filedelete": "file-remove",
    "dircreate": "directory-create",
    "dirstat": "directory-stat",
    "dirdelete": "directory-remove",
}
"""Engines that count operations on files as requests, without moving data."""
_NO_DATA = frozenset(("null", "cpuio", "ftruncate", "falloc", "exec"))
"""Engines that count requests without moving data."""
_LOOKED_AT = 1 << 20


def sniff(source: Source) -> float:
    """Returns a high certainty if the text contains the JSON members `fio version` and `jobs` (or
    `client_stats`), the first line of a job in fio's text, or a terse line."""
    if '"fio version"' in source.text and ('"jobs"' in source.text or '"client_stats"' in source.text):
        return 0.95
    text = source.text[:_LOOKED_AT]
    return 0.9 if fio_text.HEAD.search(text) or fio_text.TERSE.search(text) else 0.0


def read(source: Source) -> Measurements:
    """Reads a rate in bytes/s and the latencies for each job name and direction. Raises MeasurementError."""
    documents, notes = _documents(source)
    runs = fio_runs.runs(documents, source)
    several: list[list[Cell]] = []
    for run in runs:
        if len(run) > 1:
            notes.append(
                f"{source.at(run[0]['line'])}: documents of one run: {len(run):,} "
                "(--status-interval); the last is its result, the others are earlier states. If "
                "they are separate runs, keep each in its own file"
            )
        notes += _hosts(run[-1]) + _failures(run[-1])
        cells_of_run, more = _run_cells(run[-1], source)
        several.append(cells_of_run)
        notes += more
    cells = tuple(several[0]) if len(several) == 1 else _repeated(several, source)
    if not cells:
        raise source.wrong(
            1, "no job of fio has read or written", "give its jobs a size or a runtime: see `man fio`"
        )
    last = runs[-1][-1]
    return Measurements(_protocol(last, options_of(last.get("global options")), notes), cells)


def _repeated(several: list[list[Cell]], source: Source) -> tuple[Cell, ...]:
    """Combines the cells of several runs in one file. Equal cells are repeats of each other."""
    repeats = Repeats(source.doubts)
    for cell in (cell for cells in several for cell in cells):
        repeats.add(cell)
    return repeats.cells()


def _documents(source: Source) -> tuple[list[Document], list[str]]:
    """Reads documents from the file's JSON, or from its text if it contains no JSON of fio. Raises
    MeasurementError."""
    found = fio_json.documents(source)
    notes = [
        f"{source.at(line)}: a JSON document of fio is damaged or cut, so left out" for line in found.damaged
    ]
    if found.documents:
        if found.ends_damaged:
            notes.append(
                "the file ends in the middle of a JSON document: the last complete document "
                "may not be from the end of the run"
            )
        return found.documents, notes
    documents = _of_text(source)
    if documents:
        _refuse_unclear(documents, source)
        return documents, notes + _cut(source)
    if found.damaged:
        line, what = found.wrong
        raise source.wrong(line, what, f"copy the whole file; {_HINT}")
    raise source.wrong(1, "contains no result of fio", _HINT)


def _of_text(source: Source) -> list[Document]:
    if fio_text.HEAD.search(source.text) is None and fio_text.TERSE.search(source.text) is None:
        # The file may be damaged JSON, which has lines of any length. Regular expressions on such lines may
        # take very long.
        return []
    return fio_text.documents(source) or list(fio_text.terse(source))


def _refuse_unclear(documents: list[Document], source: Source) -> None:
    """Raises MeasurementError if several terse lines have the same job name. They may be processes of the
    job, whose rates add up, or successive states of one run, of which only the last counts."""
    if "pid" in documents[0]["jobs"][0]:
        return
    names = [(job["jobname"], job["groupid"]) for job in documents[0]["jobs"]]
    for at, name in enumerate(names):
        if name in names[:at]:
            line = documents[0]["jobs"][at]["line"]
            what = f"several terse lines of job {name[0]}: processes of it, or states of one run"
            raise source.wrong(line, what, f"terse lines don't say which: {_HINT}")


def _cut(source: Source) -> list[str]:
    """Returns a note if fio's text is truncated. Complete text ends with `Run status group`. Terse output has
    no such end mark, so nothing is noted for it."""
    heads = list(fio_text.HEAD.finditer(source.text))
    if not heads or "Run status group" in source.text[heads[-1].start() :] or SUM in heads[-1][0]:
        return []
    return ["the text ends before fio's `Run status group`: the run, or its copy, is truncated"]


def _failures(document: Document) -> list[str]:
    return [
        f"job {one.get('jobname')} ended with error {one['error']}"
        for one in jobs_of(document)
        if one.get("error")
    ]


def _hosts(document: Document) -> list[str]:
    """Returns notes about the hosts of a run. One note warns if the sum over all clients differs from the sum
    of the listed hosts."""
    jobs = [one for one in jobs_of(document) if one.get("hostname")]
    own = [one for one in jobs if one.get("jobname") != SUM]
    names = dict.fromkeys(
        f"{one['hostname']}:{one['port']}" if one.get("port") else str(one["hostname"]) for one in own
    )
    notes = [f"on the hosts {', '.join(names)}: their rates are added up"] if len(names) > 1 else []
    for total in jobs:
        if total.get("jobname") != SUM or not own:
            continue
        for direction in DIRECTIONS:
            said = bytes_moved(total.get(direction)) or 0.0
            added = sum(bytes_moved(one.get(direction)) or 0.0 for one in own)
            if abs(said - added) > 0.01 * max(said, added):
                notes.append(
                    f"a host may be missing: clients transferred {said:,.0f} bytes in total "
                    f"({direction}), the listed hosts {added:,.0f}"
                )
    return notes


def _run_cells(document: Document, source: Source) -> tuple[list[Cell], list[str]]:
    """Makes the cells of one run. Processes that ran at the same time are combined into one cell. Returns the
    cells and notes about them."""
    common = options_of(document.get("global options"))
    jobs = jobs_of(document)
    # With several hosts, fio adds an entry `All clients` with their sum. It is used only if there are no
    # entries of single hosts.
    jobs = [one for one in jobs if one.get("jobname") != SUM] or jobs
    cells: dict[tuple[object, ...], Cell] = {}
    hosts: dict[tuple[object, ...], set[str]] = {}
    notes: list[str] = []
    for job, shape in zip(jobs, fio_sections.shapes(jobs, common), strict=True):
        line = job.get("line") or document["line"]
        if shape.is_merged:
            notes.append(f"{source.at(line)}: job {_text(job, 'jobname')}: {MERGED}")
        for cell in _cells(job, shape, source, line):
            variant = tuple(sorted(cell.variant.items()))
            key = (_text(job, "groupid"), cell.operation, cell.unit, cell.size_bytes, variant, cell.cache)
            cells[key] = _added(cells[key], cell) if key in cells else cell
            hosts.setdefault(key, set()).add(_text(job, "hostname"))
    found = [
        replace(cell, nodes=None if cell.variant.get("job") == SUM else len(hosts[key]))
        for key, cell in cells.items()
    ]
    return found, notes


def _text(job: dict[str, Any], name: str) -> str:
    """Returns a member of a job as text. In a damaged file the member may have any type."""
    return str(job.get(name, ""))


def _protocol(result: dict[str, Any], common: dict[str, str], notes: list[str]) -> Protocol:
    from datetime import UTC, datetime

    stamp = number(result.get("timestamp"))
    finished = (
        datetime.fromtimestamp(stamp, UTC).isoformat() if stamp is not None and 0 < stamp < 1e11 else None
    )
    return Protocol(
        tool="fio",
        version=str(result["fio version"]).removeprefix("fio-") if result.get("fio version") else None,
        finished=finished,
        target=common.get("directory") or common.get("filename"),
        settings=dict(common),
        notes=tuple(notes),
    )


def _cells(job: dict[str, Any], shape: Shape, source: Source, line: int) -> Iterator[Cell]:
    engine = shape.options.get("ioengine", "")
    for operation in DIRECTIONS:
        done = job.get(operation)
        # fio writes zeros for a direction that was not used.
        if not isinstance(done, dict) or done.get("io_bytes") in (0, None):
            continue
        what = f"fio {_text(job, 'jobname')} {operation}"
        if engine in _NO_DATA:
            source.doubts.count(
                f"requests of the engine {engine}, which moves no data", what, source.at(line)
            )
        elif engine in _FILE_ENGINES:
            rate = source.rate(done.get("iops"), line, what)
            if rate is not None:
                yield _of_files(_cell(job, done, operation, rate, shape, source.at(line)), engine)
        else:
            rate = source.rate(done.get("bw_bytes"), line, what)
            if "bw_bytes" not in done:
                kib = source.rate(done.get("bw"), line, what)
                rate = None if kib is None else kib * 1024
            if rate is not None:
                yield _cell(job, done, operation, rate, shape, source.at(line))


def _of_files(cell: Cell, engine: str) -> Cell:
    """Converts a cell with a rate in bytes/s to one with a rate of operations on files. CELL's value already
    is the number of operations per second."""
    return replace(
        cell,
        operation=_FILE_ENGINES[engine],
        size_bytes=None,
        unit=Unit.OPERATIONS_PER_S,
        cache=None,
        cache_reason=None,
        volume_bytes=None,
        variant={name: value for name, value in cell.variant.items() if name != "pattern"},
    )


def _cell(
    job: dict[str, Any], done: dict[str, Any], operation: str, rate: float, shape: Shape, place: str
) -> Cell:
    options = shape.options
    moved, milliseconds = bytes_moved(done), duration(done.get("runtime"))
    requests = number(done.get("total_ios"))
    each = requests / shape.processes if requests and shape.processes else None
    # fio's text shows only some of the options, so they are not used to determine the cache label.
    cached, reason = of_fio(operation, {} if "block_bytes" in job else options, each)
    if "block_bytes" in job:
        request: int | None = job["block_bytes"].get(operation)
    else:
        request = fio_sections.request_bytes(done, options, operation) if options else None
    return Cell(
        test="fio",
        operation=operation,
        size_bytes=request,
        processes=shape.processes,
        nodes=1,
        value=rate,
        unit=Unit.BYTES_PER_S,
        repeats=1,
        spread=None,
        cache=cached,
        cache_reason=reason,
        latency_ns=_latency(done),
        variant=_variant(job, options),
        volume_bytes=None if moved is None else int(moved),
        seconds=None if milliseconds is None else milliseconds / 1e3,
        source=place,
    )


def _variant(job: dict[str, Any], options: dict[str, str]) -> dict[str, str]:
    depth = options.get("iodepth")
    said = {
        "job": _text(job, "jobname"),
        "pattern": options.get("rw") or options.get("readwrite"),
        "engine": options.get("ioengine"),
        "io_depth": depth if depth != "1" else None,
    }
    return {name: value for name, value in said.items() if value}


def _latency(done: dict[str, Any]) -> Latency | None:
    """Reads completion latencies. fio's percentiles are those of the completion latencies, or of the total
    latencies if the user set the option lat_percentiles."""
    factor = 1.0
    times = done.get("clat_ns")
    if not isinstance(times, dict):
        times, factor = done.get("clat"), 1e3
    if not isinstance(times, dict):
        return None
    percentiles = times.get("percentile")
    if not isinstance(percentiles, dict):
        lat = done.get("lat_ns")
        percentiles = lat.get("percentile", {}) if isinstance(lat, dict) else {}

    def at(value: object) -> float | None:
        known = number(value)
        return None if known is None else known * factor

    return Latency(
        p50=at(percentiles.get("50.000000")),
        p99=at(percentiles.get("99.000000")),
        p99_9=at(percentiles.get("99.900000")),
        max=at(times.get("max")),
        min=at(times.get("min")),
        mean=at(times.get("mean")),
        count=whole(done.get("total_ios")),
    )


def _added(one: Cell, other: Cell) -> Cell:
    """Combines two jobs that ran at the same time: rates and volumes are added. The percentiles of both
    together can't be computed, so their median is used."""
    latencies = [latency for latency in (one.latency_ns, other.latency_ns) if latency is not None]
    return replace(
        one,
        processes=_both(one.processes, other.processes),
        value=one.value + other.value,
        latency_ns=together(latencies),
        volume_bytes=_both(one.volume_bytes, other.volume_bytes),
        seconds=_longest(one.seconds, other.seconds),
    )


def _longest(one: float | None, other: float | None) -> float | None:
    """Returns the longer of two times. If one of them is negative or NaN, it is returned instead, so that the
    sum of the rates is rejected as well."""
    if one is None or other is None:
        return None
    return next((time for time in (one, other) if not time >= 0), max(one, other))


def _both(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


READER = Reader("fio", "fio 2 and 3: JSON, text, terse lines", sniff, read)
