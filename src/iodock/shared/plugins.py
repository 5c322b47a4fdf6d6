"""Finds plug-ins of other packages: the entry points of a group.

Importing `importlib.metadata` takes longer than most commands, so it is imported only if a package may have
such entry points."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_ENDINGS = (".dist-info", ".egg-info")
_MOST_BYTES = 1 << 20
"""Number of bytes that are read of a list of entry points. A package with a longer list is treated as if it
declared the group."""


def plugins(group: str) -> tuple[EntryPoint, ...]:
    """Returns the entry points of a group, such as `iodock.rules`."""
    if not _may_have(group, tuple(sys.path)):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


@cache
def _may_have(group: str, folders: tuple[str, ...]) -> bool:
    """Whether a package in these folders may declare the group. Zip archives and packages of other finders
    can't be searched, so they may."""
    if any(hasattr(finder, "find_distributions") and not _is_usual(finder) for finder in sys.meta_path):
        return True
    return any(_declares(Path(folder or "."), group.encode()) for folder in folders)


def _is_usual(finder: object) -> bool:
    name = getattr(finder, "__name__", type(finder).__name__)
    # setuptools' own finder only knows packages in folders.
    return name in ("PathFinder", "DistutilsMetaFinder")


def _declares(folder: Path, group: bytes) -> bool:
    try:
        names = os.listdir(folder)  # noqa: PTH208 (a Path for each name takes longer than all else)
    except NotADirectoryError:
        return True
    except OSError:
        return False
    return any(group in read or len(read) == _MOST_BYTES for read in _entry_points(folder, names))


def _entry_points(folder: Path, names: Iterable[str]) -> Iterable[bytes]:
    for name in names:
        if name.endswith(_ENDINGS):
            try:
                with (folder / name / "entry_points.txt").open("rb") as file:
                    yield file.read(_MOST_BYTES)
            except OSError:
                continue
