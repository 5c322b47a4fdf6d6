"""Reads results of h5bench 1.0 to 1.6: the output of `h5bench_write`, `_read`, `_append` and `_overwrite`,
and their CSV.

Source: h5bench_write.c, h5bench_read.c, h5bench_append.c and h5bench_overwrite.c of each version. All
prefixes are powers of 1024, even in MB or GB. The `Raw` rate counts only the time inside the I/O calls, the
`Observed` rate the whole run without the emulated computation. Each becomes a cell. Up to version 1.2 the
text has the form `Raw write rate = 1.1 GB/sec`, and the CSV has the same names. Later versions write `Raw
write rate: 1.1 GB/s` and `raw rate, 1.1, GB/s`. Append and overwrite both print `modify`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from iodock.file_system.health.measurements import Cache, Cell, Measurements, Protocol, Unit
from iodock.file_system.health.readers.base import Reader, Repeats, Source, duration, size, whole
from iodock.shared.bounded.doubts import CUT_ROW

_OPERATION = "write|read|append|overwrite|modify"
_RATE = re.compile(
    rf"^\s*(?:(A?SYNC)\s+)?(Raw|Observed) ({_OPERATION})? ?rate\s*[:=]\s*(\S+) ?([KMGTP]?)B/s(?:ec)?\b",
    re.IGNORECASE,
)
_NEARLY = re.compile(r"[:=]\s*\S{1,40} ?[KMGTP]?B/|\brate\s*[:=]")
"""Matches a part of a rate, which shows that the rate is damaged."""
_TOTAL = re.compile(rf"^\s*Total ({_OPERATION}) size\s*[:=]\s*([\d.]+ ?[KMGTP]?B)", re.IGNORECASE)
_TIME = re.compile(
    rf"^\s*(Raw|Observed) (?:({_OPERATION}) )?(?:completion )?time\s*[:=]\s*(\S+) ?s", re.IGNORECASE
)
_RANKS = re.compile(r"^\s*(?:Total number of ranks: |Performance measured with )(\d{1,9})\b")
_RESULTS = re.compile(r"^\s*=+\s*Performance Results\s*=+", re.IGNORECASE)
_COLLECTIVE = re.compile(r"^Collective buffering for data operations: (YES|NO)\b")
_CSV_RATE = re.compile(rf"(raw|observed) (?:({_OPERATION}) )?rate$")
_CSV_TIME = re.compile(rf"(raw|observed) (?:({_OPERATION}) )?(?:completion )?time$")
_CSV_TOTAL = re.compile(rf"total (?:({_OPERATION}) )?size$")
_CSV_OTHER = re.compile(
    "metric|collective ?meta|subfiling|contig read|(?:core )?metadata time|total number of particles"
    "|total particle number|final (?:mean particles|standard deviation)|total (?:emulated )?compute time"
    "|total sleep time|h5f(?:lush|close)(?:\\(\\))? time|flush time|close time|"
)
"""Names of further lines in the CSV, of all versions."""
_CSV_START = re.compile(
    rf"^(?:metric, value, unit|observed(?:[ _](?:{_OPERATION}))?[ _]rate, )", re.MULTILINE | re.IGNORECASE
)
_HINT = "h5bench prints `Performance Results` at its end: let it run, and keep its output or its CSV"


@dataclass
class _Run:
    """Values of one section `Performance Results`, or of one CSV."""

    ranks: int | None = None
    volume: int | None = None
    operation: str | None = None
    mode: str | None = None
    collective: str | None = None
    rates: list[tuple[str, float, int]] = field(default_factory=list)
    """Each rate: `raw` or `observed`, bytes/s, line."""
    seconds: dict[str, float | None] = field(default_factory=dict)


def sniff(source: Source) -> float:
    """Returns a high certainty if the file begins like h5bench's CSV, or contains the observed rate and the
    heading `Performance Results`."""
    if _is_csv(source):
        return 0.95
    text = source.text
    is_result = re.search(rf"\bObserved (?:(?:{_OPERATION}) )?rate\s*[:=]", text, re.IGNORECASE)
    if is_result and re.search(r"=\s*Performance Results\s*=", text, re.IGNORECASE):
        return 0.9
    return 0.6 if "Start benchmark: h5bench" in source.start else 0.0


def _is_csv(source: Source) -> bool:
    return _CSV_START.search(source.start) is not None


def read(source: Source) -> Measurements:
    """Makes a cell for each rate. Raises MeasurementError if the file contains no rate."""
    runs = list(_from_csv(source)) if _is_csv(source) else _from_text(source)
    repeats = Repeats(source.doubts)
    for run in runs:
        for kind, rate, line in run.rates:
            repeats.add(_cell(run, kind, rate, source.at(line)))
    cells = repeats.cells()
    if not cells:
        raise source.wrong(len(source.lines), "contains no rate of h5bench", _HINT)
    target = re.search(r"^Output data file: (.*)$", source.text, re.MULTILINE)
    return Measurements(Protocol(tool="h5bench", target=target[1].strip() if target else None), cells)


def _from_text(source: Source) -> list[_Run]:
    runs: list[_Run] = []
    collective = None
    for line, text in enumerate(source.lines, 1):
        if found := _COLLECTIVE.match(text):
            collective = found[1].lower()
        ranks = _RANKS.match(text)
        # The number of ranks and the heading may come in either order, and h5bench_read of version 1.2 does
        # not print the number of ranks. Whichever comes first after a rate starts a new run.
        if (ranks or _RESULTS.match(text)) and (not runs or runs[-1].rates):
            runs.append(_Run(collective=collective))
        if ranks:
            runs[-1].ranks = int(ranks[1]) or None
        if runs:
            _add_line(runs[-1], text, source, line)
    return runs


def _add_line(run: _Run, text: str, source: Source, line: int) -> None:
    if total := _TOTAL.match(text):
        run.operation, run.volume = total[1].lower(), size(total[2])
    elif time := _TIME.match(text):
        run.seconds[time[1].lower()] = duration(time[3])
    elif found := _RATE.match(text):
        run.mode = (found[1] or "").lower() or None
        run.operation = found[3].lower() if found[3] else run.operation
        _add_rate(run, found[2].lower(), found[4], found[5], source, line)
    elif _NEARLY.search(text):
        source.doubts.count(CUT_ROW, "h5bench", source.at(line))


def _add_rate(run: _Run, kind: str, value: str, unit: str, source: Source, line: int) -> None:
    amount = source.rate(value, line, f"{kind} rate")
    factor = size(f"1 {unit}")
    if amount is not None and factor is not None:
        run.rates.append((kind, amount * factor, line))


def _from_csv(source: Source) -> Iterator[_Run]:
    run, seen = _Run(), set[str]()
    for line, text in enumerate(source.lines, 1):
        name, value, unit, *_ = (*(one.strip() for one in text.split(",")), "", "", "")
        name = name.lower().replace("_", " ")
        if name in seen and run.rates:
            yield run
            run, seen = _Run(), set()
        seen.add(name)
        if found := _CSV_RATE.match(name):
            run.operation = run.operation or found[2]
            prefix = re.match(r"([KMGTP]?)B/s(?:ec)?$", unit)
            if prefix is None:
                source.doubts.count("a rate without its unit", name, source.at(line))
            else:
                _add_rate(run, found[1], value, prefix[1], source, line)
        elif not _has_setting(run, name, value, unit):
            source.doubts.count(
                "a line in a form that h5bench does not write", "its name or value", source.at(line)
            )
    yield run


def _has_setting(run: _Run, name: str, value: str, unit: str) -> bool:
    """Stores the values of a line of the CSV that is not a rate. Returns False if h5bench does not write such
    a line."""
    if name in ("ranks", "num ranks"):
        run.ranks = whole(value) or None
        return run.ranks is not None
    if name == "operation":
        operation = value.split("_")[0]
        run.operation = operation if re.fullmatch(_OPERATION, operation) else "unknown"
        return run.operation != "unknown"
    if name in ("collective data", "collectivewrite"):
        run.collective = value.lower() if value in ("YES", "NO") else None
        return run.collective is not None
    if found := _CSV_TOTAL.match(name):
        run.operation, run.volume = run.operation or found[1], size(f"{value} {unit}")
        return run.volume is not None
    if found := _CSV_TIME.match(name):
        run.seconds[found[1]] = duration(value) if unit in ("sec", "seconds") else None
        return run.seconds[found[1]] is not None
    return _CSV_OTHER.fullmatch(name) is not None


def _cell(run: _Run, kind: str, rate: float, source: str) -> Cell:
    operation = run.operation or "write"
    variant = {"rate": kind, "mode": run.mode or "", "collective": run.collective or ""}
    return Cell(
        test="h5bench",
        operation=operation,
        size_bytes=None,
        processes=run.ranks,
        nodes=None,
        value=rate,
        unit=Unit.BYTES_PER_S,
        repeats=1,
        spread=None,
        cache=Cache.UNKNOWN if operation == "read" else None,
        variant={name: value for name, value in variant.items() if value},
        volume_bytes=run.volume,
        seconds=run.seconds.get(kind),
        source=source,
    )


READER = Reader("h5bench", "h5bench 1.0 to 1.6: text, CSV", sniff, read)
