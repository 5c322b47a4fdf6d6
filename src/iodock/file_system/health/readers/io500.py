"""Reads results of the IO500: the folder of a result, or one of its files `result_summary.txt` and
`result.txt`.

Sources: the output functions of the benchmark (io500/src/main.c), and published results. Phases with `ior` in
their names are in GiB/s, others in kIOPS, and the scores are geometric means of the phases. Two kinds of
phases are kept with a note: those that are invalid by the rules of the IO500, and those of the extended mode
(`[ ]`), which do not count in the usual score. `[SCOREX]` is the score that includes them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from iodock.file_system.health.measurements import Cache, Cell, MeasurementError, Measurements, Protocol, Unit
from iodock.file_system.health.readers import ior, mdtest
from iodock.file_system.health.readers.base import Reader, Source, duration, whole
from iodock.shared.bounded.doubts import CUT_ROW

GIB = 1 << 30
_PHASE = re.compile(
    r"^\[\s*(RESULT(?:-invalid|-X)?|)\s*\]\s+([\w-]{1,60})\s+(\S+) (GiB/s|kIOPS)\s*: time +(\S+) seconds"
    r"( ?\[INVALID\])?"
)
_SCORE = re.compile(
    r"^\[\s*SCORE(X?(?:-invalid)?)\s*\] Bandwidth (\S+) GiB/s : IOPS (\S+) kiops : TOTAL (\S+)"
    r"( ?\[INVALID\])?"
)
_NEARLY = re.compile(r"\[\s*[^\]\s].{0,200}(?:\bGiB/s|kIOPS|: time \S+ seconds|: TOTAL )")
"""Matches a part of a line, which shows that the line is damaged."""
_SECTION = re.compile(r"^\[([\w-]{1,60})\]\s*$")
_VERSION = re.compile(r"^IO500 version (\S+)", re.MULTILINE)
_WHAT = {
    "write": "file-create",
    "stat": "file-stat",
    "read": "file-read",
    "delete": "file-remove",
    "rnd4K-easy-read": "read",
}
_HINT = "give the folder that contains result_summary.txt, as written by io500"


def sniff(source: Source) -> float:
    """Returns a high certainty for a folder that contains a result, and for each of the two files."""
    if source.path.is_dir():
        return 0.95 if _inside(source.path) else 0.0
    start = source.start
    if _VERSION.search(start) and "[" in start:
        return 0.95
    return 0.9 if re.search(r"^\[ior-easy-write\]", start, re.MULTILINE) and "t_delta" in start else 0.0


def read(source: Source) -> Measurements:
    """Makes a cell for each phase and for each of the three scores. Raises MeasurementError if there is no
    phase."""
    folder = source.path if source.path.is_dir() else source.path.parent
    summary = _inside(folder) if source.path.is_dir() else source.path
    if summary is None:
        raise MeasurementError(f"{source.path}: no result of IO500 in this folder", _HINT)
    said = Source(summary, source.doubts)
    cells, notes = _phases(said) if _VERSION.search(said.start) else _sections(said)
    if not cells:
        raise said.wrong(len(said.lines), "no phase of IO500 has a result", "let io500 run to its end")
    protocol = _protocol(said, folder, notes)
    detailed = tuple(_detailed(cell, folder) for cell in cells)
    return Measurements(protocol, detailed)


def _inside(folder: Path) -> Path | None:
    """Returns the file with the phases, or None if there is none. It is in FOLDER, or in a subfolder, because
    io500 writes each result to a subfolder that is named by date."""
    for place in (folder, *sorted(one for one in folder.iterdir() if one.is_dir())[:50]):
        for name in ("result_summary.txt", "result.txt"):
            if (place / name).is_file():
                return place / name
    return None


def _protocol(said: Source, folder: Path, notes: list[str]) -> Protocol:
    version = _VERSION.search(said.start)
    result = (
        Source(said.path.with_name("result.txt")) if said.path.with_name("result.txt").is_file() else said
    )
    members = dict(
        re.findall(r"^([\w-]+)\s+= *(.*)$", result.text.split("[ior-easy-write]")[0], re.MULTILINE)
    )
    times = re.findall(r"^; (?:START|END) (\S+ \S+)$", result.text, re.MULTILINE)
    return Protocol(
        tool="io500",
        version=version[1] if version else members.get("version"),
        started=times[0].replace(" ", "T") if times else None,
        finished=times[-1].replace(" ", "T") if len(times) > 1 else None,
        target=members.get("result-dir"),
        settings={"processes": whole(members.get("procs"))} if members.get("procs") else {},
        notes=tuple(notes),
    )


def _phases(said: Source) -> tuple[list[Cell], list[str]]:
    cells, notes = [], []
    invalid: list[str] = []
    unscored: list[str] = []
    for line, text in enumerate(said.lines, 1):
        if phase := _PHASE.match(text):
            if phase[2] == "timestamp":
                # The phase `timestamp` is only a pause between other phases.
                continue
            if phase[1] == "RESULT-invalid" or phase[6]:
                invalid.append(phase[2])
            if phase[1] in ("", "RESULT-X"):
                unscored.append(phase[2])
            value = said.rate(phase[3], line, f"io500 {phase[2]}")
            if value is not None:
                cells.append(_cell(phase[2], value, phase[4] == "GiB/s", duration(phase[5]), said.at(line)))
        elif score := _SCORE.match(text):
            if score[1].endswith("-invalid") or score[5]:
                invalid.append("SCORE")
            kind = "extended" if score[1].startswith("X") else None
            cells.extend(_scores((score[2], score[3], score[4]), said, line, kind))
        elif _NEARLY.match(text):
            said.doubts.count(CUT_ROW, text[:40], said.at(line))
    if invalid:
        notes.append(f"invalid by the rules of the IO500: {', '.join(invalid)}")
    if unscored:
        notes.append(f"phases that are not part of the score: {', '.join(unscored)}")
    return cells, notes


def _sections(said: Source) -> tuple[list[Cell], list[str]]:
    """Reads the phases in result.txt. This file is used if result_summary.txt is missing."""
    cells: list[Cell] = []
    name, members = "", dict[str, str]()
    for line, text in enumerate([*said.lines, "[end]"], 1):
        if section := _SECTION.match(text):
            score = said.rate(members.get("score"), line - 1, f"io500 {name}")
            if score is not None:
                seconds = duration(members.get("t_delta"))
                cells.append(_cell(name, score, name.startswith("ior"), seconds, said.at(line - 1)))
            elif name == "SCORE" and "SCORE" in members:
                texts = (members.get("BW", ""), members.get("MD", ""), members["SCORE"])
                cells.extend(_scores(texts, said, line - 1))
            elif name and "t_delta" in members:
                said.doubts.count(CUT_ROW, f"io500 {name}", said.at(line - 1))
            name, members = section[1], {}
        elif "=" in text:
            key, _, value = text.partition("=")
            members[key.strip()] = value.strip()
    return cells, []


def _cell(phase: str, value: float, transfer: bool, seconds: float | None, source: str) -> Cell:
    test, _, what = phase.rpartition("-")
    operation = what if transfer else "find" if phase == "find" else _WHAT.get(what, what)
    return Cell(
        test=f"io500-{test or phase}",
        operation=operation,
        size_bytes=None,
        processes=None,
        nodes=None,
        value=value * (GIB if transfer else 1000),
        unit=Unit.BYTES_PER_S if transfer else Unit.OPERATIONS_PER_S,
        repeats=1,
        spread=None,
        cache=Cache.UNKNOWN if operation == "read" else None,
        seconds=seconds,
        source=source,
    )


def _scores(texts: tuple[str, str, str], said: Source, line: int, kind: str | None = None) -> list[Cell]:
    """Makes a cell for each of the three scores (bandwidth, metadata, total). KIND is `extended` if they
    include the phases of the extended mode."""
    variant = {"score": kind} if kind else {}
    names = ("bandwidth", "metadata", "total")
    units = (Unit.BYTES_PER_S, Unit.OPERATIONS_PER_S, Unit.SCORE)
    factors = (GIB, 1000, 1)
    return [
        Cell(
            "io500-score",
            name,
            None,
            None,
            None,
            value * factor,
            unit,
            1,
            None,
            variant=variant,
            source=said.at(line),
        )
        for name, unit, factor, text in zip(names, units, factors, texts, strict=True)
        if (value := said.rate(text, line, f"io500 score {name}")) is not None
    ]


def _detailed(cell: Cell, folder: Path) -> Cell:
    """Adds processes, nodes, size and variant to CELL. They are read from the output of IOR or mdtest, which
    io500 stores in a file for each phase."""
    what = {"file-create": "write", "file-stat": "stat", "file-read": "read", "file-remove": "delete"}
    name = f"{cell.test.removeprefix('io500-')}-{what.get(cell.operation, cell.operation)}.txt"
    own = next(
        (Path(cell.source.rsplit(":", 1)[0]).parent / name for _ in (1,) if cell.source), folder / name
    )
    if not own.is_file() or cell.test == "io500-score":
        return cell
    reader = ior.READER if cell.unit is Unit.BYTES_PER_S else mdtest.READER
    try:
        first = reader.read(Source(own)).cells[0]
    except MeasurementError:
        return cell
    return replace(
        cell,
        processes=first.processes,
        nodes=first.nodes,
        size_bytes=first.size_bytes,
        variant=first.variant,
        cache=first.cache if cell.cache is not None else None,
        cache_reason=first.cache_reason,
    )


READER = Reader("io500", "IO500: the folder of a result, result_summary.txt, result.txt", sniff, read)
