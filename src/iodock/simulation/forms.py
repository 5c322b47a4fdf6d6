"""Lustre's files in the form in which releases 2.5, 2.12.8 and 2.15 print them (lprocfs_jobstats.c,
lprocfs_status.c)."""

from __future__ import annotations

from iodock.simulation.counters import SECOND_NS, Tallies, Tally
from iodock.simulation.scenarios import Release

_METADATA = (
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr", "getxattr",
    "setxattr", "statfs", "sync", "samedir_rename", "crossdir_rename",
)  # fmt: skip
_OBJECTS = (
    "getattr",
    "setattr",
    "punch",
    "sync",
    "destroy",
    "create",
    "statfs",
    "get_info",
    "set_info",
    "quotactl",
)
_NEWER_METADATA = (
    "parallel_rename_file",
    "parallel_rename_dir",
    "read_bytes",
    "write_bytes",
    "punch",
    "migrate",
)
OPERATIONS: dict[tuple[Release, str], tuple[str, ...]] = {
    ("2.5", "mdt"): _METADATA,
    ("2.12", "mdt"): _METADATA,
    ("2.15", "mdt"): (*_METADATA, *_NEWER_METADATA),
    ("2.5", "obdfilter"): ("read_bytes", "write_bytes", *_OBJECTS),
    ("2.12", "obdfilter"): ("read_bytes", "write_bytes", "read", "write", *_OBJECTS),
    ("2.15", "obdfilter"): ("read_bytes", "write_bytes", "read", "write", *_OBJECTS, "prealloc"),
}
"""Operations that an entry lists in this order, even if they are zero."""
_EMPTY = Tally()
_WORD = 2**64
"""Sums of squares overflow at this value, as in the kernel."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.@-_:/")


def job_entry(
    release: Release, kind: str, job_id: str, tallies: Tallies, start_ns: int, updated_ns: int
) -> str:
    """Returns the lines of one id in `job_stats`."""
    printed = quoted(job_id) if release == "2.15" else job_id
    lines = [f"- {'job_id:':<16} {printed}", *_times(release, start_ns, updated_ns)]
    for operation in OPERATIONS[release, kind]:
        tally = tallies.get(operation)
        if tally is None:
            lines.append(_zero(release, operation))
        else:
            lines.append(_operation(release, operation, tally))
    return "\n".join(lines) + "\n"


def quoted(job_id: str) -> str:
    """Quotes an id as in 2.15: it is in quotes if it contains a colon or an unusual byte, which becomes
    `\\xHH`."""
    escaped = "".join(
        chr(byte) if chr(byte) in _PLAIN else f"\\x{byte:02X}"
        for byte in job_id.encode("utf-8", "surrogateescape")
    )
    needs_quotes = escaped != job_id or ":" in job_id or job_id.startswith("@")
    return f'"{escaped}"' if needs_quotes else escaped


def _times(release: Release, start_ns: int, updated_ns: int) -> list[str]:
    if release != "2.15":
        return [f"  {'snapshot_time:':<16} {updated_ns // SECOND_NS}"]
    times = (
        ("snapshot_time:", updated_ns),
        ("start_time:", start_ns),
        ("elapsed_time:", updated_ns - start_ns),
    )
    return [f"  {name:<16} {_seconds(time)} secs.nsecs" for name, time in times]


def _seconds(time_ns: int) -> str:
    return f"{time_ns // SECOND_NS}.{time_ns % SECOND_NS:09d}"


_zeros: dict[tuple[Release, str], str] = {}


def _zero(release: Release, operation: str) -> str:
    line = _zeros.get((release, operation))
    if line is None:
        line = _zeros[release, operation] = _operation(release, operation, _EMPTY)
    return line


def _operation(release: Release, operation: str, tally: Tally) -> str:
    counts_bytes = operation.endswith("_bytes")
    head = f"  {operation + ':':<16} {{ samples: {tally.samples:>11}, unit: "
    if release == "2.5":
        if not counts_bytes:
            return head + " reqs }"
        return head + f"bytes, min:{tally.smallest:>8}, max:{tally.largest:>8}, sum:{tally.sum:>16} }}"
    unit = "bytes" if counts_bytes else "usecs"
    amounts = (
        f"{unit}, min: {tally.smallest:>8}, max: {tally.largest:>8}, sum: {tally.sum:>16}, "
        f"sumsq: {tally.sum_of_squares % _WORD:>18}"
    )
    histogram = f", hist: {{ {_histogram(tally)} }}" if counts_bytes and release == "2.15" else ""
    return head + amounts + histogram + " }"


def _histogram(tally: Tally) -> str:
    """Formats a histogram: `4K: 5, 1M: 7`. A bucket counts values up to its number and above half of it."""
    buckets: dict[int, int] = {}
    for amount, samples in tally.by_size.items():
        bucket = (max(1, amount) - 1).bit_length()
        buckets[bucket] = buckets.get(bucket, 0) + samples
    return ", ".join(f"{_bucket(bucket)}: {samples}" for bucket, samples in sorted(buckets.items()))


def _bucket(power: int) -> str:
    return f"{1 << power % 10}{('', 'K', 'M', 'G', 'T')[power // 10]}"


def stats(release: Release, tallies: Tallies, units: dict[str, str], start_ns: int, now_ns: int) -> str:
    """Returns `md_stats` of a target, or `stats` of a service. UNITS: units of all entries that have no other
    form in 2.5, where entries that are timed in later releases are only counted."""
    if release == "2.15":
        times = (("snapshot_time", now_ns), ("start_time", start_ns), ("elapsed_time", now_ns - start_ns))
        lines = [f"{name:<25} {_seconds(time)} secs.nsecs" for name, time in times]
    elif release == "2.12":
        lines = [f"{'snapshot_time':<25} {_seconds(now_ns)} secs.nsecs"]
    else:
        lines = [f"{'snapshot_time':<25} {now_ns // SECOND_NS}.{now_ns % SECOND_NS // 1000:06d} secs.usecs"]
    lines += [_stats_line(release, name, tally, units) for name, tally in tallies.items() if tally.samples]
    return "\n".join(lines) + "\n"


def _stats_line(release: Release, name: str, tally: Tally, units: dict[str, str]) -> str:
    unit = units.get(name, "usecs")
    head = f"{name:<25} {tally.samples} samples "
    if release == "2.5" and name not in units:
        return head + "[reqs]"
    if release == "2.5":
        # Up to 2.10 the unit has no plural.
        unit = {"usecs": "usec", "secs": "sec"}.get(unit, unit)
    return head + f"[{unit}] {tally.smallest} {tally.largest} {tally.sum} {tally.sum_of_squares % _WORD}"


def client_stats(release: Release, tallies: Tallies, start_ns: int, now_ns: int) -> str:
    """Returns `llite.*.stats`. Up to 2.12 it has a misspelt unit, and no sums of squares."""
    if release == "2.15":
        return stats(release, tallies, {"read_bytes": "bytes", "write_bytes": "bytes"}, start_ns, now_ns)
    head = stats(release, {}, {}, start_ns, now_ns)
    return head + "".join(_older_client_line(name, tally) for name, tally in tallies.items())


def _older_client_line(name: str, tally: Tally) -> str:
    head = f"{name:<25} {tally.samples} samples "
    if name.endswith("_bytes"):
        return head + f"[bytes] {tally.smallest} {tally.largest} {tally.sum}\n"
    return head + "[regs]\n"


SERVICE_UNITS = {
    "req_waittime": "usecs", "req_qdepth": "reqs", "req_active": "reqs", "req_timeout": "secs",
    "reqbuf_avail": "bufs", "ldlm_ibits_enqueue": "reqs",
}  # fmt: skip
