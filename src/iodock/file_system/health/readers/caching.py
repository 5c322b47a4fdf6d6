"""Determines from a benchmark's options whether it reached a device or server, or only memory.

A write is labelled `page-cache` if nothing in the measured time waits for it: no fsync, O_SYNC or O_DIRECT.
If the output does not show this, it is `unknown`. Sources: the lists of options of IOR (parse_options.c) and
iozone.c, fio's HOWTO, and elbencho's help.
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
    """Returns the letters of the short options in a command, including several in one word (`-eI`).
    WITH_VALUES: letters whose value may follow in the same word."""
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
    """Label of a write of IOR. COMMAND: IOR's command line; SETTINGS: the settings that it prints. Both may
    be empty."""
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
    # The output shows the options in a script (-f) only if it is JSON.
    if not said and (not command or "f" in given):
        return Cache.UNKNOWN, NOT_SAID
    return Cache.PAGE_CACHE, NO_SYNC


def ior_is_direct(command: list[str], settings: Mapping[str, str]) -> bool:
    """Whether IOR opened files with O_DIRECT, which only its POSIX interface does."""
    if _api(settings) not in ("", "POSIX", "BEEGFS"):
        return False
    named = {part for word in command for part in word.replace("-O", "").split(",")}
    asked = {"--posix.odirect", "useO_DIRECT=1"} & {*named, settings.get("direct", "")}
    return bool(asked) or "B" in flags(command, _IOR_WITH_VALUES)


def _api(settings: Mapping[str, str]) -> str:
    """Name of the interface: `HDF5` from `HDF5-1.10.4 (Parallel)`."""
    found = re.match(r"[A-Za-z0-9]+", settings.get("api", ""))
    return found[0].upper() if found else ""


def of_fio(operation: str, options: Mapping[str, str], requests: float | None = None) -> Label:
    """Label of an operation of fio. OPTIONS: those of the job and of all jobs; empty if the output has none.
    REQUESTS: number that each process makes, if it is known."""
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
    # The option is the number of writes between two syncs. A process that writes less does not sync.
    every = int(given) if name in _FIO_EVERY and given.isdecimal() else 1
    return requests is None or every <= requests


def of_elbencho(operation: str, direct: bool, command: list[str], path_type: str | None) -> Label:
    """Label of an operation of elbencho. PATH_TYPE: elbencho's name for its target."""
    if operation in ("read", "file-read"):
        return _DIRECT if direct else (Cache.UNKNOWN, None)
    if operation != "write":
        return None, None
    if direct:
        return None, "O_DIRECT"
    # The --sync of elbencho is a separate phase, so its time is not included in the write.
    remote = any(word.startswith(("--s3", "--hdfs", "s3://", "hdfs://")) for word in command)
    if remote or path_type in ("bucket", "hdfs", "s3"):
        return Cache.UNKNOWN, "an object store has its own cache"
    return (Cache.PAGE_CACHE, NO_SYNC) if command else (Cache.UNKNOWN, NOT_SAID)


def of_iozone(operation: str, command: list[str]) -> Label:
    """Label of an operation of IOzone. COMMAND is empty if the output does not contain it."""
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
