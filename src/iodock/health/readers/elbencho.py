"""elbencho: `--jsonfile`, `--csvfile`, and what it prints or writes by `--resfile`.

Source: elbencho's documentation (docs/result-columns.md) and runs. The result is that of `last done`: until
the slowest thread was done. All numbers of its JSON are texts; MiB/s are cut to whole ones, so that bytes/s
come from the rate of blocks where both agree.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any

from iodock.bounded.documents import from_json
from iodock.health.measurements import Cell, Latency, Measurements, Protocol, Unit
from iodock.health.readers.base import Reader, Repeats, Source, number, option, size, whole, words
from iodock.health.readers.caching import of_elbencho

MIB = 1 << 20
_OPERATIONS = {
    "MKDIRS": "directory-create",
    "RMDIRS": "directory-remove",
    "WRITE": "write",
    "READ": "read",
    "STAT": "file-stat",
    "RMFILES": "file-remove",
}
_ENTRIES = {"WRITE": "file-create", "READ": "file-read"}
_TABLE = re.compile(r"^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE", re.MULTILINE)
_TABLE_ROW = re.compile(r"^(\S*)\s+([A-Za-z][\w/ ]*?)\s*:\s*(.*)$")
_LATENCY = re.compile(r"(min|avg|max)=([\d.]+)(us|ms|s)?")
_UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9}
_HINT = "elbencho writes it with --jsonfile FILE, --csvfile FILE or --resfile FILE"

Phase = Mapping[str, str | None]
"""One phase, whatever form it came in: the keys of `_KEYS`, `operation` and `line`."""

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
    "mib_per_s": "MiB/s [last]",
    "mib": "MiB [last]",
    "ms": "time ms [last]",
    "path_type": "path type",
    "version": "version",
    "command": "command",
    "date": "ISO date",
    **{f"entry_{one}": f"Ent lat us [{one}]" for one in ("min", "avg", "max")},
    **{f"io_{one}": f"IO lat us [{one}]" for one in ("min", "avg", "max")},
}


def sniff(source: Source) -> float:
    """Sure of its CSV's header, of the members of its JSON, and of the head of its table."""
    start = source.start
    if start.startswith(("ISO date,label,path type,", '{"phase_type":')):
        return 0.95
    return 0.9 if _TABLE.search(start) or '"phase_type":' in start else 0.0


def read(source: Source) -> Measurements:
    """A cell for each phase and rate; a phase that was run again is a repeat. Raises MeasurementError."""
    if source.start.startswith("ISO date,"):
        phases = list(_from_csv(source))
    elif '"phase_type":' in source.start:
        phases = list(_from_json(source))
    else:
        phases = list(_from_table(source))
    repeats = Repeats(source.doubts)
    for phase in phases:
        for cell in _cells(phase, source):
            repeats.add(cell)
    cells = repeats.cells()
    if not cells:
        raise source.wrong(len(source.lines), "no phase of elbencho that moves data or files in it", _HINT)
    return Measurements(_protocol(phases), cells)


def _protocol(phases: list[Phase]) -> Protocol:
    first = phases[0]
    given = words(first.get("command"))
    others = sorted({one["operation"] or "" for one in phases} - set(_OPERATIONS))
    left_out = f"phases without a rate, left out: {', '.join(others)}"
    return Protocol(
        tool="elbencho",
        version=first.get("version"),
        started=(first.get("date") or "").strip() or None,
        target=given[-1] if given and not given[-1].startswith("-") else None,
        command=(first.get("command") or "").strip() or None,
        notes=(left_out,) if others else (),
    )


def _from_csv(source: Source) -> Iterator[Phase]:
    columns: list[str] = []
    for line, fields in enumerate(csv.reader(source.lines), 1):
        if fields[:1] == ["ISO date"]:
            columns = fields
            continue
        # The command stands last and has commas of its own quoted or not.
        if len(fields) < len(columns) or not columns:
            continue
        row = dict(zip(columns, fields, strict=False))
        yield {**{ours: row.get(theirs) or None for ours, theirs in _CSV.items()}, "line": str(line)}


def _from_json(source: Source) -> Iterator[Phase]:
    for line, text in enumerate(source.lines, 1):
        if not text.strip():
            continue
        try:
            one = from_json(text)
        except ValueError as error:
            raise source.wrong(line, str(error), _HINT) from error
        if isinstance(one, dict) and "phase_type" in one:
            yield _json_phase(one, line)


def _json_phase(one: dict[str, Any], line: int) -> Phase:
    config, last = _inner(one, "config"), _inner(one, "last_done")
    rate = number(last.get("bytes/s"))
    phase: dict[str, str | None] = {
        "operation": str(one["phase_type"]),
        "line": str(line),
        "date": one.get("iso_start_date"),
        "block_bytes": config.get("block_size"),
        "file_bytes": config.get("file_size"),
        "direct": "1" if config.get("direct_io") == "true" else "0",
        "random": "1" if config.get("random_offsets") == "true" else "0",
        "entries_per_s": last.get("entries/s"),
        "bytes_per_s": None if rate is None else str(rate),
        "bytes": last.get("bytes"),
        "ms": last.get("elapsed_time_ms"),
    }
    phase |= {
        name: config.get(name) for name in ("threads", "hosts", "io_depth", "path_type", "version", "command")
    }
    latency = _inner(last, "latency")
    for ours, theirs in (("entry", "entries"), ("io", "IO")):
        times = _inner(latency, theirs)
        phase |= {f"{ours}_{name}": times.get(f"{name}_us") for name in ("min", "avg", "max")}
    return phase


def _inner(one: dict[str, Any], name: str) -> dict[str, Any]:
    value = one.get(name)
    return value if isinstance(value, dict) else {}


def _from_table(source: Source) -> Iterator[Phase]:
    """Phases of the table; `--resfile` writes the command line before it."""
    command = re.search(r"^COMMAND LINE: *(.*)$", source.text, re.MULTILINE)
    day = re.search(r"^ISO DATE: *(\S+)", source.text, re.MULTILINE)
    common = _from_command(command[1] if command else None, day[1] if day else None)
    phase: dict[str, str | None] = {}
    for line, text in enumerate(source.lines, 1):
        found = _TABLE_ROW.match(text)
        if found is None or text.startswith(("ISO DATE", "COMMAND LINE")):
            continue
        if found[1].isupper():
            if phase:
                yield phase
            phase = {**common, "operation": found[1], "line": str(line)}
        if phase and not (found[1] and not found[1].isupper()):
            phase |= _table_value(found[2], found[3])
    if phase:
        yield phase


def _from_command(command: str | None, day: str | None) -> dict[str, str | None]:
    given = words(command)
    hosts = option(given, "--hosts")
    return {
        "command": command,
        "date": day,
        "threads": option(given, "-t", "--threads"),
        "hosts": None if command is None else str(len(hosts.split(",")) if hosts else 1),
        "block_bytes": str(size(option(given, "-b", "--block")) or "") or None,
        "direct": "1" if "--direct" in given else "0",
    }


def _table_value(name: str, text: str) -> dict[str, str | None]:
    last = text.split()[-1] if text.split() else None
    if name.endswith(("latency", "latency us")):
        which = "io" if name.startswith("IO") else "entry"
        usual = "us"
        return {
            f"{which}_{one}": str(float(value) * _UNITS[unit or usual] / 1e3)
            for one, value, unit in _LATENCY.findall(text)
        }
    names = {"IOPS": "iops", "Throughput MiB/s": "mib_per_s", "Total MiB": "mib"}
    if name in names:
        return {names[name]: last}
    return (
        {"entries_per_s": last}
        if name in ("Files/s", "Dirs/s", "Entries/s", "Objects/s", "Buckets/s")
        else {}
    )


def _cells(phase: Phase, source: Source) -> Iterator[Cell]:
    operation = _OPERATIONS.get(phase["operation"] or "")
    if operation is None:
        return
    moves = operation in ("read", "write")
    rate = _bytes_per_s(phase) if moves else None
    if rate is not None:
        yield _cell(phase, source, operation, rate, Unit.BYTES_PER_S)
    entries = number(phase.get("entries_per_s"))
    if entries is not None:
        name = _ENTRIES.get(phase["operation"] or "", operation)
        yield _cell(phase, source, name, entries, Unit.OPERATIONS_PER_S)


def _cell(phase: Phase, source: Source, operation: str, value: float, unit: Unit) -> Cell:
    moves = unit is Unit.BYTES_PER_S
    threads, hosts = whole(phase.get("threads")), whole(phase.get("hosts"))
    volume = whole(phase.get("bytes"))
    mib = whole(phase.get("mib"))
    direct, command = phase.get("direct") == "1", words(phase.get("command"))
    cached, reason = of_elbencho(operation, direct, command, phase.get("path_type"))
    milliseconds = number(phase.get("ms"))
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
        variant=_variant(phase, moves),
        volume_bytes=volume if volume is not None else mib * MIB if mib is not None else None,
        seconds=None if milliseconds is None else milliseconds / 1e3,
        source=source.at(int(phase["line"] or 0)),
    )


def _variant(phase: Phase, moves: bool) -> dict[str, str]:
    said = {"path": phase.get("path_type"), "file_bytes": phase.get("file_bytes")}
    if moves:
        said["order"] = "random" if phase.get("random") == "1" else None
        said["io_depth"] = phase.get("io_depth") if phase.get("io_depth") not in (None, "1") else None
    return {name: value for name, value in said.items() if value}


def _bytes_per_s(phase: Phase) -> float | None:
    exact = number(phase.get("bytes_per_s"))
    if exact is not None:
        return exact
    cut = number(phase.get("mib_per_s"))
    blocks, each = number(phase.get("iops")), size(phase.get("block_bytes"))
    if cut is None:
        return None
    finer = None if blocks is None or not each else blocks * each
    return finer if finer is not None and cut <= finer / MIB < cut + 1 else cut * MIB


def _latency(phase: Phase, which: str) -> Latency | None:
    least, mean, most = (number(phase.get(f"{which}_{one}")) for one in ("min", "avg", "max"))
    if mean is None:
        return None
    return Latency(max=_ns(most), min=_ns(least), mean=_ns(mean))


def _ns(microseconds: float | None) -> float | None:
    return None if microseconds is None else microseconds * 1e3


READER = Reader("elbencho", "elbencho: JSON, CSV, text", sniff, read)
