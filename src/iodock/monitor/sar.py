"""What sysstat recorded (sar, sadc) as samples: servers without an agent.

Read is the JSON of `sadf -j -- -A`, of sysstat 10 and newer. sadf gives rates; a rate times its interval is a
growth, of which counters are made that begin at 0, so that what follows is what it is for an agent's. Rates
have two decimals: sums are as good as these.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from iodock.bounded import files
from iodock.bounded.commands import answer_of
from iodock.bounded.documents import DocumentError, from_json
from iodock.bounded.limits import SAR
from iodock.errors import RequestError

SECOND = 1_000_000_000
_SADF_S = 300
"""A day's file takes seconds."""

Metric = tuple[str, str]
"""Operation and quantity: count, bytes, time (us), level."""
Values = dict[Metric, float]
Target = tuple[str, str]
"""Source and target."""

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
"""Key of sadf -> metric, and its units in one a second. Of two names of one metric the last that is there
counts."""
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
    """Growth added up, by target and metric."""

    grown: dict[Target, Values] = field(default_factory=dict)
    levels: dict[Target, Values] = field(default_factory=dict)

    def add(self, target: Target, metric: Metric, growth: float) -> None:
        sums = self.grown.setdefault(target, {})
        sums[metric] = sums.get(metric, 0.0) + growth

    def parts(self, is_read: bool) -> list[tuple[str, str, list[tuple[str, str, int]]]]:
        """Source, target, and (operation, quantity, value). Levels are those of a reading only."""
        targets = {**dict.fromkeys(self.grown), **dict.fromkeys(self.levels if is_read else ())}
        return [
            (*target, [
                (*metric, round(value))
                for values in (self.grown, self.levels if is_read else {})
                for metric, value in values.get(target, {}).items()
            ])
            for target in targets
        ]  # fmt: skip


@dataclass(frozen=True)
class Frames:
    """What one host recorded, as an agent would push it."""

    host: str
    frames: list[bytes]
    begin: int
    end: int
    """First and last moment, ns since the epoch."""


def read(path: Path) -> list[Frames]:
    """Of each host in a file: JSON of sadf, or a file of sadc that the sadf of this machine reads. The same
    file, also one that has grown since, gives the same frames: who has them counts them once. Raises
    RequestError."""
    document = _document(path)
    try:
        hosts = document["sysstat"]["hosts"]
        found = [frames for host in hosts if (frames := _host(path, host))]
    except (KeyError, TypeError, ValueError, OverflowError, IndexError, AttributeError) as error:
        raise RequestError(
            f"{path}: not as sadf writes it: {type(error).__name__} {error}", "sadf -j FILE -- -A writes one"
        ) from error
    if not found:
        raise RequestError(f"{path}: no readings in it", "sadf -j FILE -- -A shows what it has")
    return found


def _document(path: Path) -> Any:
    try:
        content = files.content(path, SAR)
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}") from error
    if content.lstrip()[:1] != b"{":
        content = _converted(path)
    try:
        return from_json(content)
    except DocumentError as error:
        raise RequestError(
            f"{path}: neither JSON nor a file of sadc: it {error}", "sadf -j FILE -- -A > FILE.json makes one"
        ) from error


def _converted(path: Path) -> bytes:
    """A file of sadc: only a sadf of the same version reads it."""
    advice = "on the machine that wrote it, run sadf -j FILE -- -A > FILE.json"
    # An absolute path is never taken for an option.
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

    name, cores = str(host["nodename"]), int(host.get("number-of-cpus", 1))
    readings = [one for one in host.get("statistics", []) if "timestamp" in one]
    if not readings:
        return None
    counters = _Counters()
    moments = [_moment(path, one["timestamp"]) for one in readings]
    began = moments[0][0]
    spool = hashlib.sha256(f"sar {name} {began}".encode()).digest()[:16]
    # Counters that come later begin at 0 as well: all of them are there in the first batch.
    for reading in readings:
        _take(counters, reading, 0.0, cores)
    batches = [(began, counters.parts(is_read=False))]
    for (begin, end), reading in zip(moments, readings, strict=True):
        if begin > batches[-1][0] + SECOND:
            # Between a shutdown and the next boot nothing is known, and nothing may be spread over it.
            batches.append((begin, counters.parts(is_read=False)))
        _take(counters, reading, (end - begin) / SECOND, cores)
        batches.append((end, counters.parts(is_read=True)))
    frames = [
        _native.monitor_frame(spool, number, name, moment, parts)
        for number, (moment, parts) in enumerate(batches, 1)
    ]
    return Frames(name, frames, began, moments[-1][1])


def _moment(path: Path, stamp: dict[str, Any]) -> tuple[int, int]:
    """Begin and end of a reading, ns since the epoch."""
    if not stamp.get("utc", 1):
        raise RequestError(
            f"{path}: its times are local ones of an unknown zone", "run sadf without -t and -T"
        )
    end = datetime.strptime(f"{stamp['date']} {stamp['time']}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    begin = end - timedelta(seconds=max(float(stamp["interval"]), 1.0))
    return round(begin.timestamp()) * SECOND, round(end.timestamp()) * SECOND


def _take(counters: _Counters, reading: dict[str, Any], seconds: float, cores: int) -> None:
    counters.levels.clear()
    for disk in reading.get("disk", []):
        _grow(counters, ("sar_disk", disk["disk-device"]), disk, _DISK, seconds)
    network = reading.get("network", {})
    for interface in network.get("net-dev", []):
        _grow(counters, ("sar_network", interface["iface"]), interface, _NETWORK, seconds)
    for interface in network.get("net-edev", []):
        _grow(counters, ("sar_network", interface["iface"]), interface, _NETWORK_ERRORS, seconds)
    _grow(counters, ("sar_nfsd", "nfsd"), network.get("net-nfsd", {}), _NFSD, seconds)
    _grow(counters, ("sar_nfs", "nfs"), network.get("net-nfs", {}), _NFS, seconds)
    for cpu in [*reading.get("cpu-load", []), *reading.get("cpu-load-all", [])]:
        if cpu["cpu"] == "all":
            _grow(counters, ("sar_cpu", "cpu"), cpu, _CPU, seconds * cores)
    for key, (name, factor) in _LOAD.items():
        if key in reading.get("queue", {}):
            level = float(reading["queue"][key]) * factor
            counters.levels.setdefault(("sar_load", "load"), {})[name, "level"] = level
    _take_pressure(counters, reading.get("psi", {}), seconds)


def _grow(
    counters: _Counters, target: Target, found: dict[str, Any],
    wanted: dict[str, tuple[Metric, float]], seconds: float,
) -> None:  # fmt: skip
    rates = {metric: float(found[key]) * factor for key, (metric, factor) in wanted.items() if key in found}
    for metric, rate in rates.items():
        counters.add((target[0], str(target[1])), metric, max(rate, 0.0) * seconds)


def _take_pressure(counters: _Counters, found: dict[str, Any], seconds: float) -> None:
    """`psi`: {"psi-io": {"some_avg10": ..., "some_avg": %, "full_avg": %}}: shares of the interval."""
    for resource, name in {"psi-cpu": "cpu", "psi-io": "io", "psi-mem": "memory"}.items():
        for who in ("some", "full"):
            if f"{who}_avg" in found.get(resource, {}):
                share = float(found[resource][f"{who}_avg"])
                counters.add(("sar_pressure", name), (who, "time"), share * 1e4 * seconds)
