"""What the file systems' own tools say: stripes and quotas. A tool that hangs is left behind."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from getpass import getuser
from itertools import pairwise

from iodock.health.mounts import Mount

LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Stripes:
    """How new files of a folder are laid out."""

    count: int
    """Targets a file lies on; -1: all."""
    size_bytes: int
    """In one target before the next one comes."""
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class Quota:
    """What a user, group or project holds and may hold; None: no limit."""

    owner: str
    used_bytes: int
    limit_bytes: int | None
    files: int
    files_limit: int | None


def output_of(command: Sequence[str], limit_s: float = LIMIT_S) -> str | None:
    """What a command writes to stdout; None where it is not there, fails, or takes too long."""
    if shutil.which(command[0]) is None:
        return None
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout as out:
        content = b"".join(_parts(out.fileno(), time.monotonic() + limit_s))
    for _ in range(20):
        if (status := process.poll()) is not None:
            return content.decode("utf-8", "replace") if status == 0 else None
        time.sleep(0.01)
    # Deep in the file system it can't be killed, and nobody waits for it.
    process.kill()
    return None


def _parts(descriptor: int, until: float) -> Iterator[bytes]:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN | select.POLLHUP)
    while (rest := until - time.monotonic()) > 0 and waiting.poll(rest * 1e3):
        part = os.read(descriptor, 65536)
        if not part:
            return
        yield part


def stripes_of(folder: str, mount: Mount) -> Stripes | None:
    """Of a Lustre folder, where `lfs` is there."""
    if mount.fs_type not in ("lustre", "fefs"):
        return None
    said = output_of(["lfs", "getstripe", "-d", folder])
    return None if said is None else stripes_in(said)


def stripes_in(said: str) -> Stripes | None:
    """From what `lfs getstripe -d` writes: `stripe_count:  1 stripe_size:   1048576 ...`, in one line or
    many. Of a composite layout the first component's."""
    words = said.replace(":", ": ").split()
    values = {
        name.rstrip(":").removeprefix("lmm_"): value
        for name, value in reversed(list(pairwise(words)))
        if name.endswith(":")
    }
    try:
        count, size = int(values["stripe_count"]), int(values["stripe_size"])
    except (KeyError, ValueError):
        return None
    pool = values.get("pool")
    return Stripes(count, size, pool if pool and not pool.endswith(":") else None)


def quotas_of(mount: Mount) -> tuple[Quota, ...] | None:
    """The user's; None where no tool says."""
    if mount.fs_type in ("lustre", "fefs"):
        said = output_of(["lfs", "quota", "-q", "-u", getuser(), mount.point])
    elif mount.fs_type == "gpfs":
        said = output_of(["mmlsquota", "-Y", mount.source.removeprefix("/dev/")])
        return None if said is None else gpfs_quotas_in(said)
    else:
        said = output_of(["quota", "-u", "-w", "-p", "-f", mount.point])
    return None if said is None else quotas_in(said, getuser())


def quotas_in(said: str, owner: str) -> tuple[Quota, ...]:
    """From rows of `lfs quota -q` and `quota -wp`: name, KiB (with `*` where beyond the limit), soft and hard
    limit, grace, then the same of files; a limit of 0 is none."""
    found = []
    for line in said.splitlines():
        cells = [cell.rstrip("*") for cell in line.split()]
        # A long name stands in a line of its own.
        if cells and not cells[0].isdigit():
            cells = cells[1:]
        if len(cells) < 7 or not cells[0].isdigit():
            continue
        numbers = [int(cell) for cell in cells if cell.isdigit()]
        # The grace times are numbers with -p, else `-`, `none` or `6d23h`.
        if len(numbers) >= 8:
            numbers = [*numbers[:3], *numbers[4:7]]
        if len(numbers) >= 6:
            used, soft, hard, files, files_soft, files_hard = numbers[:6]
            bytes_limit = (soft or hard) * 1024 or None
            found.append(Quota(owner, used * 1024, bytes_limit, files, files_soft or files_hard or None))
    return tuple(found)


def gpfs_quotas_in(said: str) -> tuple[Quota, ...]:
    """From `mmlsquota -Y`: lines of fields between colons, their names in a line that has HEADER."""
    names: list[str] = []
    found = []
    for line in said.splitlines():
        cells = line.split(":")
        if "HEADER" in cells:
            names = cells
            continue
        row = dict(zip(names, cells, strict=False))
        try:
            used, limit = int(row["blockUsage"]) * 1024, int(row["blockQuota"]) * 1024
            files, files_limit = int(row["filesUsage"]), int(row["filesQuota"])
        except (KeyError, ValueError):
            continue
        owner = f"{row.get('quotaType', '')} {row.get('name', '')}".strip()
        found.append(Quota(owner, used, limit or None, files, files_limit or None))
    return tuple(found)
