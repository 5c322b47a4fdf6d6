"""fio: `--output-format=json` or `json+`, of version 2 and 3.

Source: fio's manual (`fio_doc`, JSON output) and runs. Jobs of one name in one group run at the same time, so
their rates add up. Version 2 gives rates in KiB/s and latencies in microseconds; since 3.0 there are bytes
and ns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from iodock.health.measurements import Cell, Latency, Measurements, Protocol, Unit
from iodock.health.readers.base import Reader, Source, number, size, together, whole
from iodock.health.readers.caching import of_fio

_OPERATIONS = ("read", "write", "trim")
_HINT = "run fio with --output-format=json --output=FILE"


def sniff(source: Source) -> float:
    """Sure of the member that names fio's version beside jobs."""
    start = source.start
    if '"fio version"' in start and ('"jobs"' in source.text or '"client_stats"' in source.text):
        return 0.95
    # Its usual output is no JSON, and worth an own message.
    return 0.8 if re.search(r"^\S+: \(groupid=\d+, jobs=\d+\): err=", source.text, re.MULTILINE) else 0.0


def read(source: Source) -> Measurements:
    """For each job name and direction: bytes/s, with the latencies. Raises MeasurementError."""
    whole_result = _document(source)
    jobs = _listed(whole_result, "jobs") or _listed(whole_result, "client_stats")
    jobs = [one for one in jobs if one.get("jobname") != "All clients"]
    common = _options(whole_result.get("global options"))
    cells: dict[tuple[object, ...], Cell] = {}
    for job in jobs:
        for key, cell in _cells(job, common, source):
            cells[key] = _added(cells[key], cell) if key in cells else cell
    if not cells:
        raise source.wrong(
            1, "no job of fio has read or written", "give its jobs a size or a runtime: see `man fio`"
        )
    failed = [f"job {one.get('jobname')} ended with error {one['error']}" for one in jobs if one.get("error")]
    return Measurements(_protocol(whole_result, common, failed), tuple(cells.values()))


def _document(source: Source) -> dict[str, Any]:
    """The JSON in it: warnings of fio may stand before."""
    start = re.search(r"^\{", source.text, re.MULTILINE)
    if start is None:
        raise source.wrong(1, "is fio's output without JSON", _HINT)
    try:
        document, _ = json.JSONDecoder().raw_decode(source.text, start.start())
    except (ValueError, RecursionError) as error:
        line = source.line_of(getattr(error, "pos", start.start()))
        raise source.wrong(line, f"is no whole JSON: {error}", f"let fio end; {_HINT}") from error
    return dict(document)


def _listed(one: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = one.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _options(value: Any) -> dict[str, str]:
    return {str(name): str(said) for name, said in value.items()} if isinstance(value, dict) else {}


def _protocol(result: dict[str, Any], common: dict[str, str], failed: list[str]) -> Protocol:
    from datetime import UTC, datetime

    stamp = number(result.get("timestamp"))
    started = (
        datetime.fromtimestamp(stamp, UTC).isoformat() if stamp is not None and 0 < stamp < 1e11 else None
    )
    return Protocol(
        tool="fio",
        version=str(result["fio version"]).removeprefix("fio-") if "fio version" in result else None,
        finished=started,
        target=common.get("directory") or common.get("filename"),
        settings=dict(common),
        notes=tuple(failed),
    )


def _cells(
    job: dict[str, Any], common: dict[str, str], source: Source
) -> Iterator[tuple[tuple[object, ...], Cell]]:
    options = {**common, **_options(job.get("job options"))}
    for operation in _OPERATIONS:
        done = job.get(operation)
        if not isinstance(done, dict) or not number(done.get("io_bytes")):
            continue
        rate = number(done.get("bw_bytes"))
        kib = number(done.get("bw"))
        if rate is None and kib is None:
            continue
        key = (job.get("groupid"), job.get("jobname"), job.get("hostname"), operation)
        yield (
            key,
            _cell(job, done, operation, rate if rate is not None else (kib or 0.0) * 1024, options, source),
        )


def _cell(
    job: dict[str, Any],
    done: dict[str, Any],
    operation: str,
    rate: float,
    options: dict[str, str],
    source: Source,
) -> Cell:
    old = "bw_bytes" not in done
    milliseconds = number(done.get("runtime"))
    jobs = whole(options.get("numjobs")) if options.get("group_reporting", "0") != "0" else 1
    cached, reason = of_fio(operation, options)
    return Cell(
        test="fio",
        operation=operation,
        size_bytes=_block(options, operation),
        processes=jobs or 1,
        nodes=1,
        value=rate,
        unit=Unit.BYTES_PER_S,
        repeats=1,
        spread=None,
        cache=cached,
        cache_reason=reason,
        latency_ns=_latency(done),
        variant=_variant(job, options),
        volume_bytes=(whole(done["io_bytes"]) or 0) * (1024 if old else 1),
        seconds=None if milliseconds is None else milliseconds / 1e3,
        source=str(source.path),
    )


def _block(options: dict[str, str], operation: str) -> int | None:
    """`bs=4k` or `bs=4k,64k` (read, write): a range (`bsrange`) has no single size."""
    if any(name in options for name in ("bsrange", "blocksize_range", "bssplit")):
        return None
    given = (options.get("bs") or options.get("blocksize") or "4k").split(",")
    at = min(_OPERATIONS.index(operation), len(given) - 1)
    return size(given[at]) or size(given[0])


def _variant(job: dict[str, Any], options: dict[str, str]) -> dict[str, str]:
    depth = options.get("iodepth")
    said = {
        "job": str(job.get("jobname", "")),
        "pattern": options.get("rw") or options.get("readwrite"),
        "engine": options.get("ioengine"),
        "io_depth": depth if depth != "1" else None,
    }
    return {name: value for name, value in said.items() if value}


def _latency(done: dict[str, Any]) -> Latency | None:
    """Of completion, as percentiles are of it (unless fio was asked for others)."""
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
    """Jobs that ran at the same time as one. Their percentiles can't be added: the median of them stands."""
    latencies = [latency for latency in (one.latency_ns, other.latency_ns) if latency is not None]
    return replace(
        one,
        processes=(one.processes or 0) + (other.processes or 0),
        value=one.value + other.value,
        latency_ns=together(latencies),
        volume_bytes=(one.volume_bytes or 0) + (other.volume_bytes or 0),
        seconds=max(one.seconds or 0.0, other.seconds or 0.0),
    )


READER = Reader("fio", "fio 2 and 3: JSON", sniff, read)
