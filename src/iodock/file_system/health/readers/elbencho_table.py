"""Parses the table that elbencho prints and appends to its `--resfile`. The table lists one phase after
another.

Source: `printPhaseResultsToStream` in elbencho's Statistics.cpp, versions 1.0 to 3.1. Up to version 1.2 each
row names its phase, in later versions only the first row does. With `--base10` rates are in MB/s instead of
MiB/s, but volumes remain in MiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from iodock.file_system.health.readers.base import Source, number, option, size, words
from iodock.shared.bounded.doubts import CUT_ROW

Phase = Mapping[str, str | None]
"""One phase, whatever its format: `operation`, `line`, and the names of `elbencho._CSV`. The prefix `read_`
marks values for the reads of a mix."""

HEAD = re.compile(r"^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE", re.MULTILINE)
# elbencho prints live statistics before a row. They contain control sequences of the terminal, and lines that
# the next line overwrites.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ROW = re.compile(r"^(\S*)\s+([A-Za-z][\w/% .]*?)\s*:(?:\s+(.*))?$")
_PHASE = re.compile(r"[A-Z][A-Z0-9_-]*(?:\+[a-z])*$")
_RATE = re.compile(r"(?:Throughput )?([KMGTP]?)(i?)B/s(?: (write|read|total))?$", re.IGNORECASE)
_BLOCKS = re.compile(r"IOPS(?: (write|read|total))?$")
_VOLUME = re.compile(r"(?:Total )?MiB(?: (write|read|total))?$")
_ENTRIES = re.compile(r"([A-Za-z]+)/s(?: (write|read|total))?$")
_LATENCY_ROW = re.compile(r"([A-Za-z]+)(?: (wr|rd))? lat(?:ency)?(?: us)?$")
_DATE = re.compile(r"ISO DATE(?: (start|end))?\s*:(.*)$")
_SKIPPED = "Skipping stats print due to unavailable worker results"
_LATENCY = re.compile(r"(min|avg|max)=([\d.]+)(us|ms|s)?")
_US = {"us": 1.0, "ms": 1e3, "s": 1e6}
_TIME = re.compile(r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9}(?:\.\d{1,9})?)s)?(?:(\d{1,12})ms)?$")


def from_table(source: Source) -> Iterator[Phase]:
    """Yields the phases in the table. elbencho writes its command line before each run to the file of
    `--resfile`."""
    common: dict[str, str | None] = _of_command(None)
    phase: dict[str, str | None] = {}
    has_own_command = False
    for line, raw in enumerate(source.lines, 1):
        text = _CONTROL.sub("", raw).rstrip("\r").rsplit("\r", 1)[-1]
        if date := _DATE.match(text):
            # Version 3.1 writes two dates, start and end. Only the start is used.
            if date[1] != "end":
                common, has_own_command = {**_of_command(None), "date": date[2].strip() or None}, True
        elif text.startswith("COMMAND LINE:"):
            common, has_own_command = {**common, **_of_command(text[13:].strip())}, True
        elif HEAD.match(text):
            common = common if has_own_command else _of_command(None)
            has_own_command = False
        elif _SKIPPED in text:
            source.doubts.count("a phase has no results of its workers", "phase", source.at(line))
        elif (found := _ROW.match(text)) and (not found[1] or _PHASE.match(found[1])):
            is_first = found[2].lower() in ("elapsed time", "elapsed ms", "time ms")
            if found[1] and (is_first or found[1] != phase.get("operation")):
                if phase:
                    yield phase
                phase = {**common, "operation": found[1], "line": str(line)}
            if phase:
                # If a phase has two rows of the same kind, the first one is used. With `--dirstats`, for
                # example, a phase on files has a second row about directories.
                phase = {**_value(found[2], (found[3] or "").split(), source, line), **phase}
    if phase:
        yield phase


def _of_command(command: str | None) -> dict[str, str | None]:
    given = words(command)
    hosts = option(given, "--hosts")
    many = any(word.split("=")[0] in ("--hosts", "--hostsfile", "--numhosts") for word in given)
    return {
        "command": command,
        "threads": option(given, "-t", "--threads"),
        "hosts": None if command is None else str(host_count(hosts) or "") or None if many else "1",
        "block_bytes": str(size(option(given, "-b", "--block")) or "") or None,
        "direct": "1" if "--direct" in given else "0",
        "random": "1" if "--rand" in given else "0",
        "io_depth": option(given, "--iodepth"),
    }


def host_count(hosts: str | None) -> int | None:
    """Counts the hosts in a text such as `node[01-16],login`. Returns None if the text can't be parsed."""
    total = 0
    for one in re.findall(r"(?:\[[^\]]*\]|[^,\s\[])+", hosts or ""):
        count = 1
        for inner in re.findall(r"\[([^\]]*)\]", one):
            numbers = [_range(part) for part in inner.split(",")]
            if None in numbers:
                return None
            count *= sum(part or 0 for part in numbers)
        total += count
    return total or None


def _range(part: str) -> int | None:
    found = re.match(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*$", part)
    if found is None:
        return 1 if part.strip() else None
    count = int(found[2] or found[1]) - int(found[1]) + 1
    return count if count > 0 else None


def _value(name: str, columns: list[str], source: Source, line: int) -> dict[str, str | None]:
    """Returns the value of a row. COLUMNS contains the columns `first done` and `last done`, of which the
    last one is used. Rows with the sum of reads and writes are left out."""
    if (found := _LATENCY_ROW.match(name)) and any("=" in one for one in columns):
        which = "io" if found[1] == "IO" else "entry"
        times = _LATENCY.findall(" ".join(columns))
        of_which = {f"{which}_{one}": _us(value, unit) for one, value, unit in times}
        return _of_mix({"rd": "read", "wr": "write"}.get(found[2] or ""), of_which)
    values = _number_of(name, columns[-1] if columns else None)
    if values and len(columns) != 2:
        source.doubts.count(CUT_ROW, name, source.at(line))
        return {}
    return values


def _number_of(name: str, last: str | None) -> dict[str, str | None]:
    if name.lower() in ("elapsed time", "elapsed ms", "time ms"):
        return {"ms": _milliseconds(last)}
    if found := _RATE.match(name):
        base = 1024 if found[2] else 1000
        factor = base ** " KMGTP".index(found[1].upper() or " ")
        return _of_mix(found[3], {"rate": last, "rate_unit": str(factor)})
    if found := _BLOCKS.match(name):
        return _of_mix(found[1], {"iops": last})
    if found := _VOLUME.match(name):
        return _of_mix(found[1], {"mib": last})
    if found := _ENTRIES.match(name):
        return _of_mix(found[2], {"entries_per_s": last})
    return {}


def _of_mix(part: str | None, values: dict[str, str | None]) -> dict[str, str | None]:
    if part == "total":
        return {}
    return {f"read_{name}": value for name, value in values.items()} if part == "read" else values


def _us(value: str, unit: str) -> str | None:
    time = number(value)
    return None if time is None else str(time * _US[unit or "us"])


def _milliseconds(text: str | None) -> str | None:
    """Converts a time such as `2m5.755s`, `1h2m3s` or `17ms` to milliseconds. A number without a unit is
    already in milliseconds."""
    if text is None or text.isdecimal():
        return text
    found = _TIME.match(text)
    if found is None or not found[0]:
        return None
    hours, minutes, seconds, milliseconds = (number(one or 0) or 0.0 for one in found.groups())
    return str(round((hours * 3600 + minutes * 60 + seconds) * 1000 + milliseconds, 3))
