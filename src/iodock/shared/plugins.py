"""Finds plug-ins of other packages, which declare them as entry points of a group.

Importing `importlib.metadata` takes longer than most commands. It is imported only if a package may have
entry points of the group.
"""

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
    """Returns the entry points that installed packages declare in a group, such as `iodock.rules`."""
    if not _may_have(group, tuple(sys.path)):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


@cache
def _may_have(group: str, folders: tuple[str, ...]) -> bool:
    """Returns whether a package in FOLDERS may declare the group. Zip archives, and packages that other
    import finders find, can't be searched quickly, so for them the function returns True."""
    if any(hasattr(finder, "find_distributions") and not _is_usual(finder) for finder in sys.meta_path):
        return True
    return any(_declares(Path(folder or "."), group.encode()) for folder in folders)


def _is_usual(finder: object) -> bool:
    name = getattr(finder, "__name__", type(finder).__name__)
    # The finder of setuptools finds only packages in folders, which `_declares` searches as well.
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
