"""Reads results of elbencho: the files of `--jsonfile` and `--csvfile`, and the table that it prints and
writes to `--resfile`.

Sources: elbencho's documentation (docs/csv-docs.md, docs/result-columns-explanation.md), its Statistics.cpp
of versions 1.0 to 3.1, and own runs. Of elbencho's two results, this reader takes `last done`, which was
computed when the slowest thread had finished. All numbers in its JSON are strings. elbencho truncates MiB/s
and MB/s to integers. The rate is therefore computed from the number of blocks per second, if it agrees with
the truncated one. A phase that mixes reads and writes becomes two cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from iodock.file_system.health.measurements import Cell, Latency, Measurements, Protocol, Unit
from iodock.file_system.health.readers.base import (
    Reader,
    Repeats,
    Source,
    duration,
    number,
    several_commands,
    size,
    whole,
    words,
)
from iodock.file_system.health.readers.caching import of_elbencho
from iodock.file_system.health.readers.elbencho_table import HEAD, Phase, from_table
from iodock.shared.bounded.documents import DocumentError, from_json
from iodock.shared.bounded.doubts import CUT_ROW

MIB = 1 << 20
_OPERATIONS = {
    "MKDIRS": "directory-create",
    "RMDIRS": "directory-remove",
    "STATDIRS": "directory-stat",
    "WRITE": "write",
    "READ": "read",
    "STAT": "file-stat",
    "RMFILES": "file-remove",
    "NET": "network-transfer",
    "MKBUCKETS": "bucket-create",
    "RMBUCKETS": "bucket-remove",
    "HEADOBJ": "object-stat",
    "RMOBJECTS": "object-remove",
    "LISTOBJ": "object-list",
    "LISTOBJ_P": "object-list",
    "MULTIDEL": "object-remove",
}
"""Maps elbencho's phases to operations. Other phases keep elbencho's name in lower case."""
_MIX = re.compile(r"(?:RWMIX|MIX-T)\d{0,9}$")
_ENTRIES = {"write": "file-create", "read": "file-read"}
_INLINE = {"s": "stat", "r": "read"}
_LIVE = re.compile(r"ISO Date,Label,Phase,RuntimeMS,")
_OPERATION = re.compile(r"[A-Z][\w-]*(?:\+[a-z])*$")
_HINT = "elbencho writes it with --jsonfile FILE, --csvfile FILE or --resfile FILE"
_SIDE = (
    *("entries_per_s", "iops", "rate", "rate_unit", "bytes_per_s", "mib", "bytes"),
    *("entry_min", "entry_avg", "entry_max", "io_min", "io_avg", "io_max"),
)
"""Values that a mix has twice: those of its reads begin with `read_`."""

_CSV = {
    "operation": "operation",
    "threads": "threads",
    "hosts": "hosts",
    "block_bytes": "block size",
    "file_bytes": "file size",
    "direct": "direct IO",
    "random": "random",
    "io_depth": "IO depth",
    "entries_per_s": "entries/s [last]",
    "iops": "IOPS [last]",
    "rate": "MiB/s [last]",
    "mib": "MiB [last]",
    "ms": "time ms [last]",
    "path_type": "path type",
    "version": "version",
    "command": "command",
    "date": "ISO date",
    **{f"entry_{one}": f"Ent lat us [{one}]" for one in ("min", "avg", "max")},
    **{f"io_{one}": f"IO lat us [{one}]" for one in ("min", "avg", "max")},
}
_CSV |= {f"read_{ours}": f"rwmix read {theirs}" for ours, theirs in _CSV.items() if ours in _SIDE}


def sniff(source: Source) -> float:
    """Returns a high certainty if the file begins with the header of elbencho's CSV or the first member of
    its JSON, or contains the heading of its table."""
    start = source.start
    if _is_head(start.split("\n", 1)[0].split(",")) or start.startswith('{"phase_type":'):
        return 0.95
    return 0.9 if HEAD.search(start) or '"phase_type":' in start or _LIVE.match(start) else 0.0


def read(source: Source) -> Measurements:
    """Makes a cell for each rate of each phase. Repetitions of a phase become repeats of one cell. Raises
    MeasurementError."""
    if _LIVE.match(source.start):
        what = "live statistics of elbencho: momentary rates, not those of phases"
        raise source.wrong(1, what, "give the file of --csvfile, --jsonfile or --resfile")
    if _is_head(source.whole_lines[0].split(",")):
        phases = list(_from_csv(source))
    elif '"phase_type":' in source.start:
        phases = list(_from_json(source))
    else:
        phases = list(from_table(source))
    repeats = Repeats(source.doubts)
    without = set()
    for phase in phases:
        cells = list(_cells(phase, source))
        if not cells:
            without.add(phase["operation"] or "?")
        for cell in cells:
            repeats.add(cell)
    found = repeats.cells()
    if not found:
        raise source.wrong(
            len(source.whole_lines), "contains no phase of elbencho that transfers data or files", _HINT
        )
    return Measurements(_protocol(phases, sorted(without)), found)


def _is_head(fields: list[str]) -> bool:
    return {"operation", "time ms [last]", "block size"} <= {one.strip() for one in fields}


def _protocol(phases: list[Phase], without: list[str]) -> Protocol:
    first = phases[0]
    given = words(first.get("command"))
    left_out = f"phases without a rate, left out: {', '.join(without)}"
    return Protocol(
        tool="elbencho",
        version=first.get("version"),
        started=(first.get("date") or "").strip() or None,
        target=given[-1] if given and not given[-1].startswith("-") else None,
        command=(first.get("command") or "").strip() or None,
        notes=(
            *((left_out,) if without else ()),
            *several_commands(phase.get("command") for phase in phases),
        ),
    )


def _from_csv(source: Source) -> Iterator[Phase]:
    columns: list[str] = []
    for line, text in enumerate(source.whole_lines, 1):
        # Every comma separates two fields: elbencho replaces commas inside fields, and only the command,
        # which is the last field, has quotes.
        fields = [one.strip() for one in text.split(",")]
        if _is_head(fields):
            columns = fields
            continue
        if not text.strip():
            continue
        row = dict(zip(columns, fields, strict=False))
        if len(fields) < len(columns) or not _OPERATION.match(row.get("operation", "")):
            source.doubts.count(CUT_ROW, "row", source.at(line))
            continue
        values = {ours: row.get(theirs) or None for ours, theirs in _CSV.items()}
        yield {**values, "rate_unit": str(MIB), "read_rate_unit": str(MIB), "line": str(line)}


def _from_json(source: Source) -> Iterator[Phase]:
    for line, text in enumerate(source.whole_lines, 1):
        if not text.strip():
            continue
        try:
            one = from_json(text)
        except DocumentError as error:
            source.doubts.count(f"a line that {error.reason}", "row", source.at(line))
            continue
        if isinstance(one, dict) and "phase_type" in one:
            yield _json_phase(one, line)
        else:
            source.doubts.count(CUT_ROW, "line", source.at(line))


def _json_phase(one: dict[str, Any], line: int) -> Phase:
    config, last = _inner(one, "config"), _inner(one, "last_done")
    phase: dict[str, str | None] = {
        "operation": _text(one["phase_type"]),
        "line": str(line),
        "date": _text(one.get("iso_start_date")),
        "block_bytes": _text(config.get("block_size")),
        "file_bytes": _text(config.get("file_size")),
        "direct": "1" if _text(config.get("direct_io")) == "true" else "0",
        "random": "1" if _text(config.get("random_offsets")) == "true" else "0",
        "ms": _text(last.get("elapsed_time_ms")),
    }
    phase |= {
        name: _text(config.get(name))
        for name in ("threads", "hosts", "io_depth", "path_type", "version", "command")
    }
    latency = _inner(last, "latency")
    for side, values in (("", last), ("read_", _inner(last, "rwmix_read"))):
        names = {"entries_per_s": "entries/s", "iops": "iops", "bytes_per_s": "bytes/s", "bytes": "bytes"}
        phase |= {side + ours: _text(values.get(theirs)) for ours, theirs in names.items()}
        for ours, theirs in (("entry", "entries"), ("io", "IO")):
            times = _inner(latency, theirs)
            times = _inner(times, "rwmix_read") if side else times
            phase |= {
                f"{side}{ours}_{name}": _text(times.get(f"{name}_us")) for name in ("min", "avg", "max")
            }
    return phase


def _inner(one: dict[str, Any], name: str) -> dict[str, Any]:
    value = one.get(name)
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    """Converts a JSON value to a string. elbencho writes all values as strings, but a damaged file may
    contain others."""
    if value is None or isinstance(value, (dict, list)):
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cells(phase: Phase, source: Source) -> Iterator[Cell]:
    """Yields the cells of one phase. A phase that mixes reads and writes has cells for both."""
    name, *inline = (phase["operation"] or "").split("+")
    is_mix = _MIX.match(name) is not None
    extra = {"mix": name if is_mix else "", "inline": "+".join(_INLINE.get(one, one) for one in inline)}
    operation = "write" if is_mix else _OPERATIONS.get(name, name.lower() or "unknown")
    yield from _side(phase, source, operation, extra)
    reads = {one: phase.get(f"read_{one}") for one in _SIDE}
    if any(reads.values()):
        yield from _side({**phase, **reads}, source, "read", extra)


def _side(phase: Phase, source: Source, operation: str, extra: dict[str, str]) -> Iterator[Cell]:
    rate = _bytes_per_s(phase, source)
    if rate is not None:
        yield _cell(phase, source, operation, rate, Unit.BYTES_PER_S, extra)
    entries = source.rate(phase.get("entries_per_s"), _line(phase), "entries/s")
    if entries is not None:
        name = _ENTRIES.get(operation, operation)
        yield _cell(phase, source, name, entries, Unit.OPERATIONS_PER_S, extra)


def _line(phase: Phase) -> int:
    return int(phase["line"] or 0)


def _cell(
    phase: Phase, source: Source, operation: str, value: float, unit: Unit, extra: dict[str, str]
) -> Cell:
    moves = unit is Unit.BYTES_PER_S
    threads, hosts = whole(phase.get("threads")), whole(phase.get("hosts"))
    volume = whole(phase.get("bytes"))
    mib = whole(phase.get("mib"))
    direct, command = phase.get("direct") == "1", words(phase.get("command"))
    cached, reason = of_elbencho(operation, direct, command, phase.get("path_type"))
    milliseconds = duration(phase.get("ms"))
    return Cell(
        test="elbencho",
        operation=operation,
        size_bytes=size(phase.get("block_bytes")) if moves else None,
        processes=threads * (hosts or 1) if threads else None,
        nodes=hosts or None,
        value=value,
        unit=unit,
        repeats=1,
        spread=None,
        cache=cached,
        cache_reason=reason,
        latency_ns=_latency(phase, "io" if moves else "entry"),
        variant={**_variant(phase, moves), **{name: text for name, text in extra.items() if text}},
        volume_bytes=volume if volume is not None else mib * MIB if mib is not None else None,
        seconds=None if milliseconds is None else milliseconds / 1e3,
        source=source.at(_line(phase)),
    )


def _variant(phase: Phase, moves: bool) -> dict[str, str]:
    said = {"path": phase.get("path_type"), "file_bytes": phase.get("file_bytes")}
    if moves:
        said["order"] = "random" if phase.get("random") == "1" else None
        said["io_depth"] = phase.get("io_depth") if phase.get("io_depth") not in (None, "1") else None
    return {name: value for name, value in said.items() if value}


def _bytes_per_s(phase: Phase, source: Source) -> float | None:
    exact = source.rate(phase.get("bytes_per_s"), _line(phase), "bytes/s")
    if exact is not None:
        return exact
    cut = source.rate(phase.get("rate"), _line(phase), "throughput")
    unit = number(phase.get("rate_unit"))
    blocks, each = number(phase.get("iops")), size(phase.get("block_bytes"))
    if cut is None or unit is None:
        return None
    finer = None if blocks is None or not each else blocks * each
    return finer if finer is not None and cut <= finer / unit < cut + 1 else cut * unit


def _latency(phase: Phase, which: str) -> Latency | None:
    least, mean, most = (number(phase.get(f"{which}_{one}")) for one in ("min", "avg", "max"))
    if mean is None:
        return None
    return Latency(max=_ns(most), min=_ns(least), mean=_ns(mean))


def _ns(microseconds: float | None) -> float | None:
    return None if microseconds is None else microseconds * 1e3


READER = Reader("elbencho", "elbencho: JSON, CSV, text", sniff, read)
