"""Determines from a benchmark's options whether its I/O reached a device or server, or only memory.

A write is labelled `page-cache` if the benchmark used neither fsync nor O_SYNC nor O_DIRECT, so that the
measured time ends before the data is on a device. If the output does not show the options, the label is
`unknown`. Sources: the options of IOR (parse_options.c) and iozone.c, fio's HOWTO, and elbencho's help.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from iodock.file_system.health.measurements import Cache

Label = tuple[Cache | None, str | None]
NO_SYNC = "no fsync, O_SYNC or O_DIRECT: written into the page cache"
NOT_SAID = "the output does not show whether the data was synced"
_DIRECT: Label = (Cache.UNCACHED, "O_DIRECT")

_IOR_WITH_VALUES = "aAbdDfGiIjJlMNoOQsTtUX"
_IOR_KERNEL = ("POSIX", "MPIIO", "MMAP", "BEEGFS")
_IOR_LIBRARIES = ("HDF5", "NCMPI")
"""IOR's interfaces above MPI-IO or POSIX. In most versions of IOR they have no fsync."""
_IOZONE_WITH_VALUES = "JjkVrtsfFdluUSLHPibXYgnyq+"
_FIO_SYNCS = ("end_fsync", "fsync", "fdatasync", "fsync_on_close", "sync")
_FIO_EVERY = ("fsync", "fdatasync")
"""Options of fio that sync after a number of writes."""
_FIO_OFF = ("", "0", "none", "false")
_FIO_REMOTE = frozenset(
    ("rados", "rbd", "http", "libhdfs", "nfs", "gfapi", "gfapi_async", "dfs", "net", "null")
)
"""Engines of fio that bypass the kernel's page cache, or write nothing."""


def flags(command: Iterable[str], with_values: str) -> set[str]:
    """Returns the letters of all short options in a command. One word may contain several, such as `-eI`.
    WITH_VALUES lists the letters that take a value, which may follow in the same word."""
    found: set[str] = set()
    for word in command:
        if not word.startswith("-") or word.startswith("--"):
            continue
        for letter in word[1:]:
            found.add(letter)
            if letter in with_values:
                break
    return found


def of_ior_write(command: list[str], settings: Mapping[str, str]) -> Label:
    """Returns the cache label of a write of IOR. COMMAND is IOR's command line, and SETTINGS are the settings
    that IOR prints. Each may be empty."""
    api = _api(settings)
    given = flags(command, _IOR_WITH_VALUES)
    named = {part for word in command for part in word.replace("-O", "").split(",")}
    said = {f"{name}={settings[name]}" for name in ("fsync", "fsyncperwrite") if name in settings}
    if api in _IOR_LIBRARIES:
        asked = {"e", "Y"} & given or {"fsync=1", "fsyncperwrite=1"} & (said | named)
        return (Cache.UNKNOWN, f"IOR may not sync through {api}") if asked else (Cache.PAGE_CACHE, NO_SYNC)
    if api and api not in _IOR_KERNEL:
        return Cache.UNKNOWN, f"{api} has caching of its own"
    if {"e", "Y"} & given or {"fsync=1", "fsyncperwrite=1"} & (said | named):
        return None, "fsync within the measured time"
    if ior_is_direct(command, settings):
        return None, "O_DIRECT"
    # With -f, IOR reads options from a script. Only IOR's JSON output shows these options.
    if not said and (not command or "f" in given):
        return Cache.UNKNOWN, NOT_SAID
    return Cache.PAGE_CACHE, NO_SYNC


def ior_is_direct(command: list[str], settings: Mapping[str, str]) -> bool:
    """Returns whether IOR opened its files with O_DIRECT. Only the interfaces POSIX and BEEGFS do so."""
    if _api(settings) not in ("", "POSIX", "BEEGFS"):
        return False
    named = {part for word in command for part in word.replace("-O", "").split(",")}
    asked = {"--posix.odirect", "useO_DIRECT=1"} & {*named, settings.get("direct", "")}
    return bool(asked) or "B" in flags(command, _IOR_WITH_VALUES)


def _api(settings: Mapping[str, str]) -> str:
    """Returns the name of IOR's interface without version, such as `HDF5` for the setting `HDF5-1.10.4
    (Parallel)`."""
    found = re.match(r"[A-Za-z0-9]+", settings.get("api", ""))
    return found[0].upper() if found else ""


def of_fio(operation: str, options: Mapping[str, str], requests: float | None = None) -> Label:
    """Returns the cache label of an operation of fio. OPTIONS combines the options of the job with those of
    all jobs, and is empty if the output has none. REQUESTS is the number of requests of each process, or None
    if it is not known."""
    direct = options.get("direct") == "1" or options.get("buffered") == "0"
    if operation == "read":
        return _DIRECT if direct else (Cache.UNKNOWN, None)
    if operation != "write":
        return None, None
    if not options:
        return Cache.UNKNOWN, NOT_SAID
    if direct:
        return None, "O_DIRECT"
    synced = next((one for one in _FIO_SYNCS if _is_synced(one, options, requests)), None)
    if synced is not None:
        return None, f"{synced}={options[synced]}"
    engine = options.get("ioengine", "").split(":")[0]
    if engine in _FIO_REMOTE:
        return Cache.UNKNOWN, f"{engine} has caching of its own"
    return Cache.PAGE_CACHE, NO_SYNC


def _is_synced(name: str, options: Mapping[str, str], requests: float | None) -> bool:
    given = options.get(name, "0").lower()
    if given in _FIO_OFF:
        return False
    # The values of fsync and fdatasync are the number of writes between two syncs. A process that makes fewer
    # writes never syncs.
    every = int(given) if name in _FIO_EVERY and given.isdecimal() else 1
    return requests is None or every <= requests


def of_elbencho(operation: str, direct: bool, command: list[str], path_type: str | None) -> Label:
    """Returns the cache label of an operation of elbencho. PATH_TYPE is elbencho's name for the type of its
    target, such as `bucket`."""
    if operation in ("read", "file-read"):
        return _DIRECT if direct else (Cache.UNKNOWN, None)
    if operation != "write":
        return None, None
    if direct:
        return None, "O_DIRECT"
    # elbencho executes --sync as a separate phase, so the time of the sync is not part of the write phase.
    remote = any(word.startswith(("--s3", "--hdfs", "s3://", "hdfs://")) for word in command)
    if remote or path_type in ("bucket", "hdfs", "s3"):
        return Cache.UNKNOWN, "an object store has its own cache"
    return (Cache.PAGE_CACHE, NO_SYNC) if command else (Cache.UNKNOWN, NOT_SAID)


def of_iozone(operation: str, command: list[str]) -> Label:
    """Returns the cache label of an operation of IOzone. COMMAND is empty if the output does not contain the
    command line."""
    given = flags(command, _IOZONE_WITH_VALUES)
    direct = "I" in given
    if operation == "read":
        return _DIRECT if direct else (Cache.UNKNOWN, None)
    if operation != "write":
        return None, None
    if not command:
        return Cache.UNKNOWN, NOT_SAID
    if direct:
        return None, "O_DIRECT"
    if "e" in given:
        return None, "fsync within the measured time"
    if "o" in given or {"-+D", "-+r"} & set(command):
        return None, "O_SYNC"
    return Cache.PAGE_CACHE, NO_SYNC
