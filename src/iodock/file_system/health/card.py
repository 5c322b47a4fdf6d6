"""Defines the card of a file system, which lists its properties, and computes the card's parts. This module
reads only /proc and /sys. Calls that may hang, such as statvfs, are made by other modules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from iodock.file_system.health.commands import Stripes
from iodock.file_system.health.mount_options import explanation
from iodock.file_system.health.mounts import Mount
from iodock.file_system.health.quotas import Grace, Quotas, shares_used
from iodock.shared.language import N_
from iodock.shared.message import Message
from iodock.shared.settings import FileSystem, FileSystemKind, kind_of
from iodock.shared.units import number_text


@dataclass(frozen=True, slots=True)
class Option:
    """A mount option. `meaning` is None if iodock has no explanation of the option."""

    name: str
    value: str | None
    meaning: str | None


@dataclass(frozen=True, slots=True)
class Space:
    """The size of a file system and its numbers of inodes, as statvfs returns them."""

    size_bytes: int
    free_bytes: int
    """Space that is available to ordinary users."""
    inodes: int
    """Number of inodes; 0 if the file system does not count them."""
    free_inodes: int
    block_bytes: int
    """Preferred size of a request."""
    name_bytes: int
    """Longest name of a file."""


@dataclass(frozen=True, slots=True)
class Cache:
    """The size, or another setting, of one cache or queue between programs and disks."""

    name: str
    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Card:
    """The properties of a file system that its users need. A field is None if its value is not known."""

    folder: str
    host: str
    ts: int
    """Time at which the card was made, ns since the epoch."""
    mount: Mount
    kind: FileSystemKind
    servers: tuple[str, ...]
    options: tuple[Option, ...]
    space: Space | None
    stripes: Stripes | None
    quotas: Quotas | None
    """Quotas of the user, and of the group and project of new files in the folder."""
    caches: tuple[Cache, ...]
    typical: FileSystem | None
    """Values from the site's settings: link limit, typical values and knees."""
    remarks: tuple[Message, ...]


def options_of(mount: Mount) -> tuple[Option, ...]:
    """Returns each mount option with the explanation of its meaning."""
    return tuple(Option(name, value, explanation(mount.fs_type, name)) for name, value in mount.options)


def servers_of(mount: Mount) -> tuple[str, ...]:
    """Returns names or addresses of the servers. They are taken from the mount's source and from the option
    `addr`. The source has the form `host:/path` for NFS and GlusterFS, `host@tcp:host2@tcp:/name` for Lustre,
    and `//host/share` for SMB."""
    options = dict(mount.options)
    found: list[str] = []
    if mount.source.startswith("//"):
        found.append(mount.source[2:].split("/")[0])
    elif mount.fs_type in ("lustre", "fefs"):
        found += [one.strip() for one in re.split(r"[:,]", mount.source.split(":/")[0]) if one.strip()]
    elif ":" in mount.source and not mount.source.startswith("/"):
        host = mount.source.rpartition(":/")[0] or mount.source.partition(":")[0]
        found.append(host.strip("[]"))
    address = options.get("addr")
    return tuple(dict.fromkeys([*found, *([address] if address else [])]))


_READ_AHEAD = N_("bytes that the client reads ahead when a file is read from beginning to end")
_DIRTY = N_("share of free memory that written data may fill before programs that write must wait")
_DIRTY_BACKGROUND = N_("share of free memory that written data may fill before writing out begins")
_DIRTY_AGE = N_("age at which written data is due to be written out")
_ROTATING = N_("whether the device has moving parts, which make random access slow")
_SCHEDULER = N_("algorithm by which the kernel orders requests to the device")
_DEPTH = N_("number of requests that may wait at the device")
_LUSTRE = {
    "max_cached_mb": N_("maximum amount of data that the client caches in memory, MiB"),
    "max_read_ahead_mb": N_("maximum amount of data that the client reads ahead, MiB"),
    "max_dirty_mb": N_("maximum amount of written data that may wait in the client for one target, MiB"),
    "max_rpcs_in_flight": N_("requests in progress to one target at the same time"),
}


def caches_of(mount: Mount, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> tuple[Cache, ...]:
    """Returns the sizes of those caches and queues of this machine that the mount uses."""
    return (*_device_caches(mount, sys), *_lustre_caches(sys), *_memory_caches(mount, proc))


def _device_caches(mount: Mount, sys: Path) -> Iterator[Cache]:
    ahead = _read(sys / "class" / "bdi" / mount.device / "read_ahead_kb")
    if ahead is not None:
        yield Cache("read_ahead", f"{ahead} KiB", _READ_AHEAD)
    device = sys / "dev" / "block" / mount.device
    # In /sys, a partition has no folder `queue`. The folder is one level higher, at the disk that contains
    # the partition.
    queue = next((one for one in (device / "queue", device / ".." / "queue") if one.is_dir()), None)
    if queue is None:
        return
    if (rotating := _read(queue / "rotational")) is not None:
        yield Cache("rotational", "yes" if rotating == "1" else "no", _ROTATING)
    if (order := _read(queue / "scheduler")) is not None:
        chosen = re.search(r"\[(.+?)\]", order)
        yield Cache("scheduler", chosen[1] if chosen else order, _SCHEDULER)
    if (depth := _read(queue / "nr_requests")) is not None:
        yield Cache("nr_requests", depth, _DEPTH)


def _lustre_caches(sys: Path) -> Iterator[Cache]:
    for name, meaning in _LUSTRE.items():
        part = "llite" if name in ("max_cached_mb", "max_read_ahead_mb") else "osc"
        values = {_read(one) for one in sorted((sys / "fs" / "lustre" / part).glob(f"*/{name}"))} - {None}
        if values:
            yield Cache(name, ", ".join(sorted(one for one in values if one)), meaning)


def _memory_caches(mount: Mount, proc: Path) -> Iterator[Cache]:
    if mount.fs_type in ("tmpfs", "ramfs", "proc", "sysfs"):
        return
    for name, meaning in (("dirty_ratio", _DIRTY), ("dirty_background_ratio", _DIRTY_BACKGROUND)):
        if (value := _read(proc / "sys" / "vm" / name)) is not None:
            yield Cache(name, f"{value} %", meaning)
    age = _read(proc / "sys" / "vm" / "dirty_expire_centisecs")
    if age is not None and age.isdigit():
        yield Cache("dirty_expire", f"{number_text(int(age) / 100, 6)} s", _DIRTY_AGE)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


SMALL_REQUEST = 65536
FULL = 0.05
_SMALL = N_("{name} is {size_bytes}: large reads or writes go to the server in many small requests")
_SLOW_OPTIONS: Mapping[tuple[str, str | None], str] = {
    ("sync", None): N_("Mounted with sync: every write waits for the disk or server."),
    ("noac", None): N_(
        "Mounted with noac: attributes are fetched from the server each time, and writes wait for the server."
    ),
    ("lookupcache", "none"): N_("Mounted with lookupcache=none: every look-up of a name goes to the server."),
    ("strictatime", None): N_("Mounted with strictatime: reading a file writes its access time."),
    ("data", "journal"): N_("Mounted with data=journal: contents are written twice."),
    ("soft", None): N_("Mounted with soft: calls fail if the server is slow, and data can be lost."),
    ("proto", "udp"): N_("Mounted over UDP: each lost packet delays large requests."),
}
_NEARLY_FULL = N_("Only {free_share} of the space is free: file systems become slower when they are full.")
_NEARLY_NO_FILES = N_("Only {free_share} of the inodes are free: creating files will soon fail.")
_ALL_TARGETS = N_(
    "New files are striped over all targets: right for one large file that all processes share, slow for "
    "many files."
)
_QUOTA: Mapping[str, str] = {
    "user": N_("User {owner} holds {used_share} of the quota."),
    "group": N_("Group {owner} holds {used_share} of the quota."),
    "project": N_("Project {owner} holds {used_share} of the quota."),
    "fileset": N_("Fileset {owner} holds {used_share} of the quota."),
}
_QUOTA_RUNNING: Mapping[str, str] = {
    "user": N_(
        "User {owner} exceeds the soft limit of the quota: files must be removed within the grace period."
    ),
    "group": N_(
        "Group {owner} exceeds the soft limit of the quota: files must be removed within the grace period."
    ),
    "project": N_(
        "Project {owner} exceeds the soft limit of the quota: files must be removed within the grace period."
    ),
    "fileset": N_(
        "Fileset {owner} exceeds the soft limit of the quota: files must be removed within the grace period."
    ),
}
_QUOTA_OVER: Mapping[str, str] = {
    "user": N_("User {owner} has exceeded the soft limit of the quota for too long: writing fails."),
    "group": N_("Group {owner} has exceeded the soft limit of the quota for too long: writing fails."),
    "project": N_("Project {owner} has exceeded the soft limit of the quota for too long: writing fails."),
    "fileset": N_("Fileset {owner} has exceeded the soft limit of the quota for too long: writing fails."),
}


def remarks_of(
    mount: Mount, space: Space | None, stripes: Stripes | None, quotas: Quotas | None
) -> Iterator[Message]:
    """Yields warnings about options, free space, stripes and quotas that slow down programs or make them
    fail."""
    for name, value in mount.options:
        said = _SLOW_OPTIONS.get((name, value))
        if said is not None:
            yield Message(said)
        if name in ("rsize", "wsize") and value and value.isdigit() and int(value) < SMALL_REQUEST:
            yield Message(_SMALL, {"name": name, "size_bytes": int(value)})
    if space is not None:
        yield from _room(space)
    if stripes is not None and stripes.count == -1:
        yield Message(_ALL_TARGETS)
    if quotas is not None:
        yield from _quota_remarks(quotas)


def _quota_remarks(quotas: Quotas) -> Iterator[Message]:
    for quota, used_share in shares_used(quotas.known):
        graces = (quota.bytes.grace, quota.files.grace)
        if Grace.OVER in graces:
            yield Message(_QUOTA_OVER[quota.kind], {"owner": quota.owner})
        elif Grace.RUNNING in graces:
            yield Message(_QUOTA_RUNNING[quota.kind], {"owner": quota.owner})
        elif used_share > 1 - FULL:
            yield Message(_QUOTA[quota.kind], {"owner": quota.owner, "used_share": used_share})


def _room(space: Space) -> Iterator[Message]:
    if space.size_bytes and space.free_bytes < FULL * space.size_bytes:
        yield Message(_NEARLY_FULL, {"free_share": space.free_bytes / space.size_bytes})
    if space.inodes and space.free_inodes < FULL * space.inodes:
        yield Message(_NEARLY_NO_FILES, {"free_share": space.free_inodes / space.inodes})


def kind(mount: Mount, typical: FileSystem | None) -> FileSystemKind:
    """Returns the kind of the file system. The site's settings take precedence over the kind that its type
    implies."""
    return typical.kind if typical is not None and typical.kind is not None else kind_of(mount.fs_type)
