"""Finds the monitor's file system that is mounted where a program ran."""

from __future__ import annotations

from collections.abc import Iterable

from iodock.shared.meanwhile import MountedAs

_BY_NAME = ("lustre", "fefs")
"""Types whose source ends in the file system's name: `10.0.0.1@tcp:10.0.0.2@tcp:/work`."""


def system_of(mount: MountedAs, known: Iterable[str]) -> str | None:
    """Returns the monitored file system that is mounted at this mount point, or None if KNOWN, the monitored
    ones, does not contain it."""
    names = set(known)
    if mount.monitored_as is not None:
        return mount.monitored_as
    source = mount.source or ""
    if source in names:
        return source
    if mount.fs_type in _BY_NAME:
        # A subfolder of the file system may be mounted separately.
        name = source.rpartition(":/")[2].partition("/")[0]
        return name if name in names else None
    server = source.partition(":/")[0] if ":/" in source else ""
    same = sorted(name for name in names if server and name.partition(":/")[0] == server)
    # The mounted folder may be an export itself or a subfolder of one. The longest export that contains the
    # folder is used.
    longest = [name for name in same if source.startswith(f"{name.rstrip('/')}/")]
    return max(longest, key=len) if longest else None
