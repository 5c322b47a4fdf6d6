"""Converts fio's text to documents that have the form of its JSON. It reads the usual output (`normal`) of
fio 1, 2 and 3, and the terse output.

Source: fio's stat.c (show_thread_status_normal, show_ddir_status, show_thread_status_terse_all) of several
versions. Before 2.17 `KB` is 1024 bytes; later `KiB` is 1024 bytes and `kB` is 1000. With `fio --client`, the
results of a host follow a line `<host>`, and the rates of `All clients` lack the unit `B/s`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from iodock.file_system.health.readers.base import CTIME, Source, duration, number
from iodock.file_system.health.readers.fio_json import Document
from iodock.file_system.health.readers.fio_sections import Setups, set_up

HEAD = re.compile(
    r"^(?:<(?P<host>[^>\n]{1,255})> ?)?(?P<name>\S.{0,4095}?): \(groupid=(?P<group>\d{1,9}),"
    r" jobs=(?P<jobs>\d{1,9})\): err=\s*(?P<error>\d{1,9}).*?: pid=(?P<pid>\d{1,19})(?:: (?P<date>.*))?$",
    re.MULTILINE,
)
TERSE = re.compile(
    r"^(?:[345];fio-[^;\n]{1,60};[^;\n]{0,4096}|2;[^;\n]{0,4096});\d{1,9};\d{1,9};\d+;\d+;\d+;\d+;",
    re.MULTILINE,
)
_VERSION = re.compile(r"^(?:<[^>]{1,255}> ?)?(fio-\d\S{0,60})\s*$")
_HOST = re.compile(r"^<([^>]{1,255})>\s*$")
_SETUP = re.compile(
    r"^(?:<(?P<host>[^>]{1,255})> ?)?(?P<name>\S.{0,4095}?): \(g=(?P<group>\d{1,9})\):"
    r" rw=(?P<rw>[\w,]{1,40}), bs=(?P<bs>.{1,200}?), ioengine=(?P<engine>[\w.-]{1,60})\S*,"
    r" iodepth=(?P<depth>\d{1,9})"
)
_NEW = re.compile(
    r"^\s+(?P<what>read|write|trim|mixed)\s*: IOPS=(?P<iops>[^,]+), BW=(?P<rate>[^\s(]+)(?: \([^)]*\))?"
    r"\s?\((?P<moved>[^/\s]+)/(?P<run>-?\d{1,19})msec\)"
)
_OLD = re.compile(
    r"^\s+(?P<what>read|write|trim|mixed)\s*: io=\s*(?P<moved>[^,]+), bw=\s*(?P<rate>[^,]+),"
    r" iops=\s*(?P<iops>[^,]+), runt=\s*(?P<run>-?\d{1,19})msec"
)
_MORE = re.compile(r"^(?:<[^>]{1,255}> ?)?\.\.\.\s*$")
"""This line follows the setup of a section that has several processes."""
_RESULT = re.compile(r"^\s+(read|write|trim|mixed)\s*: ")
_TIMES = re.compile(r"^\s+clat \((\w+)\)\s*: min=\s*([^,\s]+), max=\s*([^,\s]+), avg=\s*([\d.]+)")
_PERCENTILES = re.compile(r"^\s+(clat|lat|slat) percentiles \((\w+)\)|^\s+(\w* ?)percentiles \((\w+)\)")
_PERCENTILE = re.compile(r"(\d{1,3}\.\d{1,6})th=\[\s*(\d{1,19})\]")
_AMOUNT = re.compile(r"^\s*([\d.]{1,40})\s*([kKMGTPE]?)(i?)(bit|b|B)?(?:/s)?\s*$")
_NS = {"nsec": 1.0, "usec": 1e3, "msec": 1e6, "sec": 1e9}
_POWERS = {letter: power for power, letter in enumerate(("", "k", "m", "g", "t", "p", "e"))}


def amount(text: str, always_binary: bool) -> float | None:
    """Converts amounts such as `66.1MiB/s`, `69.3MB/s`, `529Mibit/s`, `133Mi` and `1024KB/s` to bytes (per
    second). If ALWAYS_BINARY is set, all prefixes are powers of 1024, as in fio 2. Returns None if TEXT has
    another form."""
    found = _AMOUNT.match(text)
    if found is None or found[1].count(".") > 1 or found[1] == ".":
        return None
    base = 1024 if found[3] or always_binary else 1000
    bits = 8 if found[4] in ("bit", "b") else 1
    return float(found[1]) * float(base ** _POWERS[found[2].lower()]) / bits


def _seconds(date: str | None) -> float | None:
    """Converts a date of fio's text to seconds. The date has no time zone, so the result is compared only
    with other dates of the same output."""
    try:
        return (datetime.strptime((date or "").strip(), CTIME) - datetime(1970, 1, 1)).total_seconds()
    except ValueError:
        return None


def documents(source: Source) -> list[Document]:
    """Makes a document for each run in a file. With `--status-interval`, each state of a run becomes a
    document."""
    reading = _Reading(source)
    for line, text in enumerate(source.lines, 1):
        reading.take(line, text)
    found = [one for one in reading.found if one["jobs"]]
    for one in found:
        set_up(one["jobs"])
    return found


class _Reading:
    """Processes lines one after the other. It keeps the current run, host and job, to which the next lines
    belong."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[Document] = []
        self.host: str | None = None
        self.version: str | None = None
        self.setups = Setups()
        self.jobs: set[tuple[object, ...]] = set()
        self.job: dict[str, Any] | None = None
        self.done: dict[str, Any] | None = None
        self.unit: float | None = None
        self.has_results = False

    def take(self, line: int, text: str) -> None:
        if version := _VERSION.match(text):
            self.version = version[1]
            self._begin(line)
        elif host := _HOST.match(text):
            self.host = host[1]
        elif setup := _SETUP.match(text):
            if self.has_results:
                # These lines describe sections of the next run. fio prints its version only after them.
                self.setups, self.has_results = Setups(), False
            self.setups.add(setup["host"] or self.host, setup["group"], setup["name"], _setup(setup))
        elif _MORE.match(text):
            self.setups.more()
        elif head := HEAD.match(text):
            self._head(line, head)
        elif text.startswith("Run status group"):
            self.job = self.done = None
        elif self.job is not None:
            self._detail(line, text)

    def _begin(self, line: int) -> None:
        self.jobs, self.job, self.done = set(), None, None
        self.found.append({"fio version": self.version, "jobs": [], "line": line})

    def _head(self, line: int, head: re.Match[str]) -> None:
        host = head["host"] or self.host
        key = (host, head["name"], head["group"], head["pid"])
        if not self.found or key in self.jobs:
            self._begin(line)
        self.jobs.add(key)
        self.has_results = True
        self.job = {
            "jobname": head["name"],
            "groupid": int(head["group"]),
            "error": int(head["error"]),
            "pid": head["pid"],
            "job options": {},
            "processes": int(head["jobs"]),
            "block_bytes": {},
            "setups": self.setups,
            "line": line,
            **({"hostname": host} if host else {}),
        }
        self.found[-1]["jobs"].append(self.job)
        self.found[-1].setdefault("written_s", _seconds(head["date"]))
        self.done = None

    def _detail(self, line: int, text: str) -> None:
        assert self.job is not None
        if found := _NEW.match(text) or _OLD.match(text):
            self.done, self.unit = self._done(found, line), None
            if self.done is not None:
                self.job[found["what"]] = self.done
                # The running time of the job is a lower bound of the time since fio started, because other
                # groups may have run before.
                elapsed = (duration(found["run"]) or 0.0) / 1e3
                self.job["elapsed"] = max(self.job.get("elapsed", 0.0), elapsed)
        elif _RESULT.match(text):
            self.done = None
            why = "the line is truncated or has an unknown format"
            self.source.doubts.count(why, f"fio {self.job['jobname']}", self.source.at(line))
        elif self.done is not None:
            self._latency(text)

    def _done(self, found: re.Match[str], line: int) -> dict[str, Any] | None:
        old = "runt=" in found[0]
        rate, moved = amount(found["rate"], old), amount(found["moved"], old)
        if rate is None or moved is None:
            self.source.rate(found["rate"] if rate is None else found["moved"], line, f"fio {found['what']}")
            return None
        return {
            "bw_bytes": rate,
            "io_bytes": moved,
            "runtime": int(found["run"]),
            "iops": amount(found["iops"], False),
        }

    def _latency(self, text: str) -> None:
        assert self.done is not None
        if (times := _TIMES.match(text)) and times[1] in _NS:
            factor = _NS[times[1]]
            named = {"min": _scaled(times[2]), "max": _scaled(times[3]), "mean": _scaled(times[4])}
            scaled = {name: value * factor for name, value in named.items() if value is not None}
            self.done["clat_ns"] = {**scaled, "percentile": {}}
        elif head := _PERCENTILES.match(text):
            kind, unit = (head[1] or head[3] or "clat").strip(), head[2] or head[4]
            self.unit = _NS.get(unit) if kind == "clat" else None
        elif self.unit is not None and "clat_ns" in self.done:
            for which, value in _PERCENTILE.findall(text):
                self.done["clat_ns"]["percentile"][f"{float(which):.6f}"] = int(value) * self.unit


def _scaled(text: str) -> float | None:
    """Parses a number such as `3782` or `12.1k`, whose prefixes are powers of 1000."""
    found = _AMOUNT.match(text)
    return None if found is None or found[1].count(".") > 1 else amount(text, False)


def _setup(found: re.Match[str]) -> dict[str, Any]:
    options = {"rw": found["rw"], "ioengine": found["engine"], "iodepth": found["depth"]}
    ranges = re.findall(r"([\d.]+[kKMGTP]?i?B?)-([\d.]+[kKMGTP]?i?B?)", found["bs"])
    sizes: dict[str, int] = {}
    for direction, (least, most) in zip(("read", "write", "trim"), ranges, strict=False):
        known = _request_bytes(least)
        if least == most and known is not None:
            sizes[direction] = known
    return {"job options": options, "block_bytes": sizes}


def _request_bytes(text: str) -> int | None:
    """Returns the exact request size in bytes, or None if it is not known. Sizes such as `64.0KiB`, and `4K`
    of fio 2, are exact. With --kb_base=1000 fio rounds a size to a text such as `65.5kB`. The result is then
    the power of two that fio prints in this way, or else the multiple of 512, if there is only one."""
    found = _AMOUNT.match(text)
    if found is None or found[1].count(".") > 1:
        return None
    is_decimal = bool(found[2]) and not found[3] and found[4] == "B"
    value = amount(text, not is_decimal)
    if value is None or not is_decimal:
        return None if value is None else round(value)
    half = 0.5 / 10 ** len(found[1].partition(".")[2]) * 1000 ** _POWERS[found[2].lower()]
    power = 1 << round(math.log2(value)) if value > 0 else 0
    if abs(power - value) <= half:
        return power
    first, last = math.ceil((value - half) / 512), math.floor((value + half) / 512)
    return first * 512 if first == last else None


_TERSE_KIB = 1024
_TERSE_WIDTH = {"2": 41, "3": 41, "4": 41, "5": 47}
"""Number of fields per direction, by version of the format."""


def terse(source: Source) -> Iterator[Document]:
    """Reads terse output (`--minimal`, `--output-format=terse`) in its versions 2 to 5. It has one line per
    job or group of jobs."""
    jobs: list[dict[str, Any]] = []
    version = None
    for line, text in enumerate(source.lines, 1):
        if not TERSE.match(text):
            continue
        fields = text.split(";")
        at = 1 if fields[0] == "2" else 2
        version = version if fields[0] == "2" else fields[1]
        job: dict[str, Any] = {
            "jobname": fields[at],
            "groupid": int(fields[at + 1]),
            "error": int(fields[at + 2]),
            "block_bytes": {},
            # The line does not state whether it is the result of one process or of a whole group.
            "processes": None,
            "line": line,
        }
        width = _TERSE_WIDTH[fields[0]]
        for nth, direction in enumerate(("read", "write", "trim")[: 2 if fields[0] == "3" else 3]):
            part = fields[at + 3 + nth * width :][:width]
            if len(part) < width:
                why = "the line is truncated"
                source.doubts.count(why, f"fio {job['jobname']} {direction}", source.at(line))
                break
            done = _terse_part(part)
            if done is None:
                what = f"fio {job['jobname']} {direction}"
                source.doubts.count("the line is damaged", what, source.at(line))
            else:
                job[direction] = done
        jobs.append(job)
    if jobs:
        yield {"fio version": version, "jobs": jobs, "line": jobs[0]["line"]}


def _terse_part(part: list[str]) -> dict[str, Any] | None:
    moved, rate, milliseconds = (number(part[at]) for at in (0, 1, 3))
    if moved is None or rate is None:
        return None
    percentiles = dict(one.split("%=", 1) for one in part[12:32] if "%=" in one)
    return {
        "io_bytes": moved * _TERSE_KIB,
        "bw_bytes": rate * _TERSE_KIB,
        "runtime": milliseconds,
        "clat": {
            "min": part[8],
            "max": part[9],
            "mean": part[10],
            "percentile": percentiles,
        },
    }
