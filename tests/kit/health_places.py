"""Mounts small file systems for check-ups, and starts check-ups in them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

MIB = 1 << 20
COMMAND = [sys.executable, "-m", "iodock", "health"]
LONG = ["--sizes", "4k,1m", "--processes", "1,3", "--repeats", "20", "--force"]
"""A check-up that lasts longer than any test waits."""
ALONE = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("OMPI_", "PMI_", "PMIX_", "SLURM_"))
}


def health(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Runs a command of `iodock health` until it ends."""
    settings: dict[str, object] = {"capture_output": True, "text": True, "timeout": 120, "env": ALONE}
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, **{**settings, **options})  # type: ignore[call-overload, no-any-return]


def started(folder: Path, *more: str, **options: object) -> subprocess.Popen[str]:
    """Starts `iodock health run` on FOLDER in its own process group. It writes its results next to FOLDER."""
    kept = folder.parent / f"{folder.name}.json"
    command = [*COMMAND, "run", str(folder), "-q", "-o", str(kept), *LONG, *more]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=ALONE,
        **options,  # type: ignore[call-overload]
    )


@contextmanager
def mounted(folder: Path, *arguments: str) -> Iterator[Path]:
    """Mounts a file system on FOLDER while the context lasts. Skips the test if mounting is not permitted."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *arguments, str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"can't mount here: {done.stderr.strip()}")
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def small_tmpfs(folder: Path, size: str = "64m", inodes: int = 20_000) -> Iterator[Path]:
    with mounted(folder, "-t", "tmpfs", "-o", f"size={size},nr_inodes={inodes}", "tmpfs") as place:
        yield place


@contextmanager
def loop_ext4(folder: Path, mebibytes: int = 96) -> Iterator[Path]:
    if not shutil.which("mkfs.ext4"):
        pytest.skip("mkfs.ext4 is not installed")
    image = folder.with_suffix(".image")
    with image.open("wb") as out:
        out.truncate(mebibytes * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-N", "20000", str(image)], check=True)
    with mounted(folder, "-o", "loop", str(image)) as place:
        (place / "lost+found").rmdir()
        yield place
    image.unlink()


@contextmanager
def btrfs_with_quota(folder: Path, mebibytes: int) -> Iterator[Path]:
    """Mounts a btrfs with a quota on the bytes of all its content and with no soft limit."""
    if not (shutil.which("mkfs.btrfs") and shutil.which("btrfs")):
        pytest.skip("btrfs-progs is not installed")
    image = folder.with_suffix(".image")
    with image.open("wb") as out:
        out.truncate(600 * MIB)
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True, capture_output=True)
    with mounted(folder, "-o", "loop", str(image)) as place:
        subprocess.run(["btrfs", "quota", "enable", str(place)], check=True)
        subprocess.run(["btrfs", "qgroup", "limit", f"{mebibytes}M", str(place)], check=True)
        yield place
    image.unlink()


def contents(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Returns owner, modification time and content of everything below FOLDER."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        text = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (status.st_uid, status.st_mtime_ns, text)
    return found


def others_files(folder: Path) -> None:
    """Creates files of another user, some with the names that a check-up gives to its own files."""
    for name in ("thesis", ".iodock-load-0123456789abcdef", "w0"):
        (folder / name).mkdir()
        for inner in ("tag", "f0", "chapter 1"):
            (folder / name / inner).write_text('{"token":"0123456789abcdef"}')
    (folder / "f0").write_text("mine")
    if os.geteuid() == 0:
        for path in [*folder.rglob("*")]:
            os.chown(path, 65534, 65534)


def measured(folder: Path, *arguments: object, **options: object) -> dict[str, Any]:
    done = health("run", folder, *arguments, "--format", "json", cwd=folder.parent, **options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def place_among_others(folder: Path) -> Path:
    """Creates an empty folder for a check-up, among files that it must not touch."""
    place = folder / "place"
    place.mkdir()
    others_files(place)
    return place


def of(found: dict[str, Any], operation: str) -> dict[str, Any]:
    """Returns the only cell of an operation."""
    (cell,) = [cell for cell in found["cells"] if cell["operation"] == operation]
    return dict(cell)


def kept_in_memory(check_up: Callable[[], dict[str, Any]], attempts: int = 5) -> dict[str, Any]:
    """Repeats a check-up until its reread finds the file's pages in the cache, and returns that result. The
    kernel may drop pages at any time."""
    for _ in range(attempts):
        found = check_up()
        reread = of(found, "reread")
        if reread["cache"] == "cached":
            return found
        # The check-up must report why the cache is unknown: mincore found some pages missing, or found
        # different numbers before and after.
        reason = reread["cache_reason"] or ""
        share = re.search(r"mincore found ([\d.]+) % in memory", reason)
        assert reread["cache"] == "unknown", reread
        assert float(share[1]) <= 99 if share else "found the cache differently" in reason, reread
    raise AssertionError(f"never in memory, {attempts} times: {reread}")
