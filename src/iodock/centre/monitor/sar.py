"""Converts data that sysstat (sar, sadc) recorded to samples, for servers without an agent.

The module reads the JSON of `sadf -j -- -A` from sysstat 10 and newer. sadf prints rates. The module
multiplies each rate by its interval and adds the products to counters that begin at 0, because agents send
counters. sadf prints two decimals, which limits the precision of the sums. Some versions print an overflowed
counter as 3.7e18, or `nan`: the module treats such a value as unknown and keeps the other values of the
reading.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from iodock.shared.bounded import files
from iodock.shared.bounded.commands import answer_of
from iodock.shared.bounded.documents import DocumentError, from_json
from iodock.shared.bounded.doubts import MOST_BYTES_PER_S, MOST_OPERATIONS_PER_S, NO_NUMBER, Doubts
from iodock.shared.bounded.limits import SAR
from iodock.shared.errors import RequestError
from iodock.shared.units import number_text

SECOND = 1_000_000_000
_SADF_S = 300
"""Time limit for sadf in s. Converting the file of one day takes seconds."""

Metric = tuple[str, str]
"""Identifies a metric by its operation and its quantity. The quantity is count, bytes, time (us) or level."""
Values = dict[Metric, float]
Target = tuple[str, str]
"""Identifies a target by source and name."""

_MOST_PER_S = {
    "bytes": MOST_BYTES_PER_S,
    "count": MOST_OPERATIONS_PER_S,
    # The limit is 1e6 s of waiting per second: a million requests may wait in the queues of a device at the
    # same time.
    "time": 1e12,
    "level": 1e12,
}
"""Largest valid growth of each quantity per second (of a level: its value). Larger values are errors."""
_MOST_INTERVAL_S = 30 * 86_400
_MOST_CORES = 1 << 20
_IMPOSSIBLE = "more than any machine reaches"
_NO_READING = "a reading without a time, or not in the form of sadf"
_NOT_FINITE = re.compile(rb"(?<=[:\s,\[])-?(?:nan|inf(?:inity)?)(?=[\s,}\]])", re.IGNORECASE)
"""Matches `nan` and `inf`, which printf of C writes for such values. They are not valid JSON."""

_SECTOR = 512.0
_KIB = 1024.0
_DISK = {
    "rkB": (("read", "bytes"), _KIB), "rd_sec": (("read", "bytes"), _SECTOR),
    "wkB": (("write", "bytes"), _KIB), "wr_sec": (("write", "bytes"), _SECTOR),
    "dkB": (("discard", "bytes"), _KIB), "dc_sec": (("discard", "bytes"), _SECTOR),
    "tps": (("transfers", "count"), 1.0),
    "util-percent": (("busy", "time"), 1e4), "util": (("busy", "time"), 1e4),
    "aqu-sz": (("queued", "time"), 1e6), "avgqu-sz": (("queued", "time"), 1e6),
}  # fmt: skip
"""Maps a key of sadf to the metric and to the factor that converts a value to the metric's unit. If a reading
has two keys of the same metric, the later one in this table counts."""
_NETWORK = {
    "rxkB": (("receive", "bytes"), _KIB), "txkB": (("transmit", "bytes"), _KIB),
    "rxpck": (("receive_packets", "count"), 1.0), "txpck": (("transmit_packets", "count"), 1.0),
}  # fmt: skip
_NETWORK_ERRORS = {
    key: ((name, "count"), 1.0)
    for key, name in {
        "rxerr": "receive_errors", "txerr": "transmit_errors", "rxdrop": "receive_dropped",
        "txdrop": "transmit_dropped", "coll": "collisions", "txcarr": "carrier_errors",
    }.items()
}  # fmt: skip
_NFSD = {
    key: ((name, "count"), 1.0)
    for key, name in {
        "scall": "calls", "badcall": "bad_calls", "sread": "read", "swrite": "write",
        "saccess": "access", "sgetatt": "getattr",
    }.items()
}  # fmt: skip
_NFS = {
    key: ((name, "count"), 1.0)
    for key, name in {
        "call": "calls", "retrans": "retransmitted", "read": "read", "write": "write", "access": "access",
        "getatt": "getattr",
    }.items()
}  # fmt: skip
_CPU = {
    key: ((name, "time"), 1e4)
    for key, name in {
        "usr": "user", "user": "user", "nice": "nice", "sys": "system", "system": "system",
        "iowait": "iowait", "steal": "steal", "idle": "idle",
    }.items()
}  # fmt: skip
_LOAD = {"ldavg-1": ("load1_percent", 100.0), "blocked": ("blocked", 1.0), "runq-sz": ("runnable", 1.0)}


@dataclass
class _Counters:
    """Counters and levels by target and metric. A counter is the sum of the growth in all readings so far."""

    grown: dict[Target, Values] = field(default_factory=dict)
    levels: dict[Target, Values] = field(default_factory=dict)
    unknown: set[tuple[Target, Metric]] = field(default_factory=set)
    """Metrics whose value in the last reading was invalid."""

    def add(self, target: Target, metric: Metric, growth: float) -> None:
        sums = self.grown.setdefault(target, {})
        sums[metric] = sums.get(metric, 0.0) + growth

    def parts(self, is_read: bool) -> list[tuple[str, str, list[tuple[str, str, int]]]]:
        """Lists the source, the target, and (operation, quantity, value) for each metric. IS_READ says that
        the list is for the end of a reading. Otherwise it has no levels, which are valid only for their
        reading, and includes unknown metrics."""
        targets = {**dict.fromkeys(self.grown), **dict.fromkeys(self.levels if is_read else ())}
        return [
            (*target, [
                (*metric, round(value))
                for values in (self.grown, self.levels if is_read else {})
                for metric, value in values.get(target, {}).items()
                if not is_read or (target, metric) not in self.unknown
            ])
            for target in targets
        ]  # fmt: skip


@dataclass(frozen=True)
class Frames:
    """Data of one host as frames, in the form in which an agent pushes data."""

    host: str
    frames: list[bytes]
    begin: int
    end: int
    """Time of the last reading, ns since the epoch."""
    notes: tuple[str, ...] = ()
    """Sentences about invalid values that were left out."""


def read(path: Path) -> list[Frames]:
    """Reads the data of each host in a file, which is JSON of sadf or a binary file of sadc that this
    machine's sadf can read. If a file has grown since an earlier import, its first frames are the same as
    before, so the collector recognizes them and counts nothing twice. Raises RequestError."""
    document = _document(path)
    try:
        hosts = document["sysstat"]["hosts"]
        found = [frames for host in hosts if (frames := _host(path, host))]
    except (KeyError, TypeError, ValueError, OverflowError, IndexError, AttributeError) as error:
        raise RequestError(
            f"{path}: not in the format of sadf: {type(error).__name__} {error}",
            "write one with: sadf -j FILE -- -A",
        ) from error
    if not found:
        raise RequestError(f"{path}: contains no readings", "sadf -j FILE -- -A shows the contents")
    return found


def _document(path: Path) -> Any:
    try:
        content = files.content(path, SAR)
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}") from error
    if content.lstrip()[:1] != b"{":
        content = _converted(path)
    try:
        return from_json(_NOT_FINITE.sub(b"null", content))
    except DocumentError as error:
        raise RequestError(
            f"{path}: neither JSON nor a file of sadc: it {error}",
            "create one with: sadf -j FILE -- -A > FILE.json",
        ) from error


def _converted(path: Path) -> bytes:
    """Converts a file of sadc to JSON with sadf. A sadf of another version may not be able to read it."""
    advice = "on the machine that wrote it, run sadf -j FILE -- -A > FILE.json"
    # The path is made absolute, because sadf would take a relative path that begins with - for an option.
    answer = answer_of(["sadf", "-j", str(path.absolute()), "--", "-A"], SAR, _SADF_S)
    if answer.outcome == "missing":
        raise RequestError(f"{path}: not JSON, and sadf is not installed", advice)
    if answer.outcome == "silent":
        raise RequestError(f"{path}: sadf does not end", advice)
    if answer.outcome == "endless":
        raise SAR.exceeded(f"{path}, as sadf shows it", RequestError)
    if answer.status:
        said = answer.complained.strip().splitlines()
        raise RequestError(f"{path}: sadf can't read it: {said[0] if said else 'it says nothing'}", advice)
    return answer.content


def _host(path: Path, host: dict[str, Any]) -> Frames | None:
    from iodock import _native

    doubts = Doubts()
    name, cores = str(host["nodename"]), _cores(path, host, doubts)
    readings, moments = [], []
    for at, one in enumerate(host.get("statistics", []), 1):
        if isinstance(one, dict) and "timestamp" not in one:
            continue
        moment = _moment(path, one["timestamp"]) if isinstance(one, dict) else None
        if moment is None:
            doubts.count(_NO_READING, f"reading {at}", str(path))
        else:
            readings.append(one)
            moments.append(moment)
    if not readings:
        return None
    counters = _Counters()
    began = moments[0][0]
    spool = hashlib.sha256(f"sar {name} {began}".encode()).digest()[:16]
    # The first batch has all counters of the file with the value 0, including those that appear only in later
    # readings, because the growth of a counter is known only relative to an earlier value.
    for reading, (_, end) in zip(readings, moments, strict=True):
        _take(counters, reading, 0.0, cores, _Place(Doubts(), path, end))
    batches = [(began, counters.parts(is_read=False))]
    for (begin, end), reading in zip(moments, readings, strict=True):
        if begin > batches[-1][0] + SECOND:
            # Nothing is known about the time between two readings that do not follow each other, such as
            # between shutdown and boot. An extra batch with unchanged counters keeps the next growth out of
            # this time.
            batches.append((begin, counters.parts(is_read=False)))
        _take(counters, reading, (end - begin) / SECOND, cores, _Place(doubts, path, end))
        batches.append((end, counters.parts(is_read=True)))
    frames = [
        _native.monitor_frame(spool, number, name, moment, parts)
        for number, (moment, parts) in enumerate(batches, 1)
    ]
    return Frames(name, frames, began, moments[-1][1], tuple(doubts.notes()))


@dataclass(frozen=True)
class _Place:
    """The position of a value in the file, which is part of the message if the value is invalid."""

    doubts: Doubts
    path: Path
    moment: int

    def count(self, why: str, what: str) -> None:
        self.doubts.count(why, what, f"{self.path} at {self.moment / SECOND:.0f}")

    def number(self, value: Any, metric: Metric, factor: float, what: str) -> float | None:
        """Returns VALUE times FACTOR. If the value is invalid, counts it as a doubt and returns None."""
        try:
            found = float(value) * factor
        except (TypeError, ValueError, OverflowError):
            self.count(NO_NUMBER, f"{what} {str(value)[:40]}")
            return None
        if not found >= 0:
            self.count(NO_NUMBER, f"{what} {number_text(found / factor, 6)}")
            return None
        if found > _MOST_PER_S[metric[1]]:
            self.count(_IMPOSSIBLE, f"{what} {number_text(found / factor, 6)}")
            return None
        return found


def _cores(path: Path, host: dict[str, Any], doubts: Doubts) -> int | None:
    """Returns the number of processors, or None if it is invalid. Without this number the time of the
    processors can't be computed and is unknown."""
    given = host.get("number-of-cpus", 1)
    if isinstance(given, (int, float)) and 1 <= given <= _MOST_CORES:
        return int(given)
    doubts.count(NO_NUMBER, f"number-of-cpus {str(given)[:40]}", str(path))
    return None


def _moment(path: Path, stamp: Any) -> tuple[int, int] | None:
    """Returns the begin and end of a reading, ns since the epoch, or None if they are missing."""
    if not isinstance(stamp, dict):
        return None
    if not stamp.get("utc", 1):
        raise RequestError(
            f"{path}: its times are local ones of an unknown zone", "run sadf without -t and -T"
        )
    try:
        end = datetime.strptime(f"{stamp['date']} {stamp['time']}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        interval = float(stamp["interval"])
        begin = end - timedelta(seconds=max(interval, 1.0))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    # The store can't represent times before 1970.
    if not 0 <= interval <= _MOST_INTERVAL_S or begin.timestamp() < 0:
        return None
    return round(begin.timestamp()) * SECOND, round(end.timestamp()) * SECOND


def _parts_of(reading: Any, name: str, key: str, place: _Place) -> list[tuple[str, dict[str, Any]]]:
    """Returns the devices in the list NAME of a reading with their names, which are the values of KEY. A
    device without a valid name is counted as a doubt."""
    found = []
    several = reading.get(name, []) if isinstance(reading, dict) else []
    for one in several if isinstance(several, list) else [several]:
        if isinstance(one, dict) and isinstance(one.get(key), (str, int)):
            found.append((str(one[key]), one))
        else:
            place.count("a part of a reading has no name", name)
    return found


def _take(
    counters: _Counters, reading: dict[str, Any], seconds: float, cores: int | None, place: _Place
) -> None:
    counters.levels.clear()
    counters.unknown.clear()
    for device, disk in _parts_of(reading, "disk", "disk-device", place):
        _grow(counters, ("sar_disk", device), disk, _DISK, seconds, place)
    network = reading.get("network", {})
    for kind, wanted in (("net-dev", _NETWORK), ("net-edev", _NETWORK_ERRORS)):
        for name, interface in _parts_of(network, kind, "iface", place):
            _grow(counters, ("sar_network", name), interface, wanted, seconds, place)
    for target, kind, wanted in (("nfsd", "net-nfsd", _NFSD), ("nfs", "net-nfs", _NFS)):
        _grow(counters, (f"sar_{target}", target), _inner(network, kind, place), wanted, seconds, place)
    for kind in ("cpu-load", "cpu-load-all"):
        for name, cpu in _parts_of(reading, kind, "cpu", place):
            if name == "all" and cores is not None:
                _grow(counters, ("sar_cpu", "cpu"), cpu, _CPU, seconds * cores, place)
    queue = _inner(reading, "queue", place)
    for key, (name, factor) in _LOAD.items():
        metric = (name, "level")
        if key in queue and (level := place.number(queue[key], metric, factor, key)) is not None:
            counters.levels.setdefault(("sar_load", "load"), {})[metric] = level
    _take_pressure(counters, _inner(reading, "psi", place), seconds, place)


def _inner(reading: Any, name: str, place: _Place) -> dict[str, Any]:
    found = reading.get(name, {}) if isinstance(reading, dict) else {}
    if isinstance(found, dict):
        return found
    place.count("a part of a reading has no name", name)
    return {}


def _grow(
    counters: _Counters, target: Target, found: dict[str, Any],
    wanted: dict[str, tuple[Metric, float]], seconds: float, place: _Place,
) -> None:  # fmt: skip
    rates: Values = {}
    for key, (metric, factor) in wanted.items():
        if key in found:
            what = f"{target[1]} {key}"
            rate = place.number(found[key], metric, factor, what)
            if rate is not None:
                rates[metric] = rate
                counters.unknown.discard((target, metric))
            elif metric not in rates:
                # The value is invalid, so this reading will not contain the metric. In the next valid reading
                # the metric is a new counter that begins at 0.
                counters.unknown.add((target, metric))
                counters.grown.setdefault(target, {})[metric] = 0.0
    for metric, rate in rates.items():
        counters.add(target, metric, rate * seconds)


def _take_pressure(counters: _Counters, found: dict[str, Any], seconds: float, place: _Place) -> None:
    """Reads the pressure in `psi`, such as {"psi-io": {"some_avg10": ..., "some_avg": 1.5, "full_avg": 0.5}}.
    The values are percentages of the interval."""
    for resource, name in {"psi-cpu": "cpu", "psi-io": "io", "psi-mem": "memory"}.items():
        shares = _inner(found, resource, place)
        wanted = {f"{who}_avg": ((who, "time"), 1e4) for who in ("some", "full")}
        _grow(counters, ("sar_pressure", name), shares, wanted, seconds, place)
