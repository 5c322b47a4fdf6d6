"""Reads results of md-workbench: one line per phase, with the latencies of each kind of operation.

Source: md-workbench.c in the repository of IOR. Each object is read, queried with stat, created and deleted
once, so the rate `obj/s` of a phase is the rate of each kind of operation in it. The brackets contain
quantiles: minimum, 25, 50, 75, 90 and 99 %, and maximum. `Nodemap` has one digit per task, which is 1 for a
task on the first node.
"""

from __future__ import annotations

import re

from iodock.file_system.health.measurements import Cell, Json, Latency, Measurements, Protocol, Unit
from iodock.file_system.health.readers.base import (
    Reader,
    Repeats,
    Source,
    number,
    option,
    several_commands,
    whole,
    words,
)
from iodock.shared.bounded.doubts import CUT_ROW

_PHASE = re.compile(r"^(precreate|benchmark|cleanup) process .*?[\s:]([^\s:]+) obj/s")
_OPERATION = re.compile(r"\b(read|stat|create|delete)\(([^()]*)\)")
_TOTAL = re.compile(
    r"^MD-Workbench total objects: .*?\(version: ([^)]*)\)(?: time: (\S+ \S+))?", re.MULTILINE
)
_MEMBER = re.compile(r"^(Args|Nodemap): *(.*)$")
_NAMES = {"read": "file-read", "stat": "file-stat", "create": "file-create", "delete": "file-remove"}
_USUAL_BYTES = 3901


def sniff(source: Source) -> float:
    """Returns a high certainty if the file contains the line with the total number of objects."""
    return 0.95 if _TOTAL.search(source.start) else 0.0


def read(source: Source) -> Measurements:
    """Makes a cell for each phase and kind of operation. Repetitions of the phase `benchmark` are repeats of
    one cell. Raises MeasurementError if the file contains no phase."""
    repeats = Repeats(source.doubts)
    commands: list[str | None] = []
    given: list[str] = []
    nodemap = ""
    for line, text in enumerate(source.lines, 1):
        phase = _PHASE.match(text)
        if phase is None:
            if said := _MEMBER.match(text):
                # The line belongs to the header of a run. A file may contain several runs.
                if said[1] == "Args":
                    commands.append(said[2].strip())
                    given, nodemap = words(said[2]), ""
                else:
                    nodemap = said[2].strip()
            elif "iops/s" in text or " op-max:" in text:
                source.doubts.count(CUT_ROW, text[:40], source.at(line))
            continue
        rate = source.rate(phase[2], line, f"md-workbench {phase[1]}")
        for operation, quantiles in _OPERATION.findall(text) if rate is not None else ():
            repeats.add(_cell(source, line, (phase[1], operation, quantiles), rate or 0.0, given, nodemap))
    cells = repeats.cells()
    if not cells:
        hint = "let md-workbench run to its end, and copy its whole output"
        raise source.wrong(len(source.lines), "contains no phase of md-workbench", hint)
    return Measurements(_protocol(source, commands), cells)


def _protocol(source: Source, commands: list[str | None]) -> Protocol:
    command = commands[0] if commands else None
    given = words(command)
    total = _TOTAL.search(source.text)
    settings: dict[str, Json] = {
        "objects_per_process": whole(option(given, "-I")),
        "data_sets_per_process": whole(option(given, "-D")),
        "precreated_objects": whole(option(given, "-P")),
    }
    return Protocol(
        tool="md-workbench",
        version=total[1] if total else None,
        started=total[2].replace(" ", "T") if total and total[2] else None,
        target=option(given, "-o"),
        command=command,
        settings={name: value for name, value in settings.items() if value is not None},
        notes=tuple(several_commands(commands)),
    )


def _cell(
    source: Source, line: int, said: tuple[str, str, str], rate: float, given: list[str], nodemap: str
) -> Cell:
    phase, operation, quantiles = said
    alone = bool(nodemap) and set(nodemap) == {"1"}
    return Cell(
        test="md-workbench",
        operation=_NAMES[operation],
        size_bytes=None,
        processes=len(nodemap) or None,
        nodes=1 if alone else None,
        value=rate,
        unit=Unit.OPERATIONS_PER_S,
        repeats=1,
        spread=None,
        latency_ns=_latency(quantiles),
        variant={"phase": phase, "file_bytes": option(given, "-S") or str(_USUAL_BYTES)},
        source=source.at(line),
    )


def _latency(quantiles: str) -> Latency | None:
    seconds = [number(one.strip().removesuffix("s")) for one in quantiles.split(",")]
    if len(seconds) != 7:
        return None
    least, _, middle, _, _, high, most = (None if one is None else one * 1e9 for one in seconds)
    if middle is None and most is None:
        return None
    return Latency(p50=middle, p99=high, max=most, min=least)


READER = Reader("md-workbench", "md-workbench: text", sniff, read)
