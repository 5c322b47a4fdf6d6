"""h5bench: what `h5bench_write` and `h5bench_read` print, and their CSV.

Source: h5bench_write.c. Its prefixes are powers of 1024. `Raw` is over the time inside the calls, `Observed`
over the whole run without the emulated computation; both are cells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from iodock.health.measurements import Cache, Cell, Measurements, Protocol, Unit
from iodock.health.readers.base import Reader, Repeats, Source, number, size, whole

_RATE = re.compile(
    r"^\s*(?:(SYNC|ASYNC)\s+)?(Raw|Observed) (write|read|append|overwrite)? ?rate:"
    r"\s*([\d.]+) ([KMGTPE ]?)B/s",
    re.IGNORECASE,
)
_TOTAL = re.compile(r"^\s*Total (write|read|append|overwrite) size: ([\d.]+ [KMGTPE ]?B)", re.IGNORECASE)
_RANKS = re.compile(r"^\s*Total number of ranks: (\d{1,9})")
_HINT = "h5bench prints `Performance Results` at its end: let it run, and keep its output or its CSV"


@dataclass
class _Run:
    """One `Performance Results`, or one CSV."""

    ranks: int | None = None
    volume: int | None = None
    operation: str | None = None
    mode: str | None = None
    collective: str | None = None
    rates: list[tuple[str, float, int]] = field(default_factory=list)
    """`raw` or `observed`, bytes/s, line."""


def sniff(source: Source) -> float:
    """Sure of both of its rates, or of its CSV's head."""
    start = source.start
    if (
        re.search(r"Observed (?:write|read|append|overwrite)? ?rate:", start)
        and "Total number of ranks" in source.text
    ):
        return 0.9
    if start.startswith("metric, value, unit") and re.search(r"^observed rate,", start, re.MULTILINE):
        return 0.95
    return 0.6 if "Start benchmark: h5bench" in start else 0.0


def read(source: Source) -> Measurements:
    """A cell for each rate. Raises MeasurementError without one."""
    runs = _from_csv(source) if source.start.startswith("metric,") else _from_text(source)
    repeats = Repeats(source.doubts)
    for run in runs:
        for kind, rate, line in run.rates:
            repeats.add(_cell(run, kind, rate, source.at(line)))
    cells = repeats.cells()
    if not cells:
        raise source.wrong(len(source.lines), "no rate of h5bench in it", _HINT)
    target = re.search(r"^Output data file: (.*)$", source.text, re.MULTILINE)
    return Measurements(Protocol(tool="h5bench", target=target[1].strip() if target else None), cells)


def _from_text(source: Source) -> list[_Run]:
    runs: list[_Run] = []
    for line, text in enumerate(source.lines, 1):
        if ranks := _RANKS.match(text):
            runs.append(_Run(ranks=int(ranks[1]) or None))
        elif not runs:
            continue
        elif total := _TOTAL.match(text):
            runs[-1].operation, runs[-1].volume = total[1].lower(), size(total[2])
        elif found := _RATE.match(text):
            rate = size(f"{found[4]} {found[5].strip()}B")
            if rate is not None:
                runs[-1].mode = found[1]
                runs[-1].operation = found[3].lower() if found[3] else runs[-1].operation
                runs[-1].rates.append((found[2].lower(), float(rate), line))
    return runs


def _from_csv(source: Source) -> list[_Run]:
    run = _Run()
    for line, text in enumerate(source.lines, 1):
        name, value, unit, *_ = (*(one.strip() for one in text.split(",")), "", "", "")
        if name == "ranks":
            run.ranks = whole(value) or None
        elif name == "operation":
            run.operation = value.split("_")[0]
        elif name == "total size":
            run.volume = size(f"{value} {unit}")
        elif name == "collective data":
            run.collective = value.lower()
        elif name in ("raw rate", "observed rate") and number(value) is not None:
            rate = size(f"{value} {unit.removesuffix('/s')}")
            if rate is not None:
                run.rates.append((name.split(" ")[0], float(rate), line))
    return [run]


def _cell(run: _Run, kind: str, rate: float, source: str) -> Cell:
    operation = run.operation or "write"
    variant = {"rate": kind, "mode": (run.mode or "").lower(), "collective": run.collective or ""}
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
        source=source,
    )


READER = Reader("h5bench", "h5bench: text, CSV", sniff, read)
