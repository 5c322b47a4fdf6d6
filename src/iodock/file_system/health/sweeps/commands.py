"""Makes the command line and the environment of one run of IOR or mdtest, and the command that prepares its
folder."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from iodock.file_system.health.readers.base import size
from iodock.file_system.health.sweeps.plan import IorSweep, RunCell, Sweep, SweepError

_LOAD = 'load its module, or say where it is: program = "/path/to/{name}" in the TOML file'


def find_program(sweep: Sweep, name: str) -> str:
    """Returns the path of the benchmark. Raises SweepError if the benchmark, the launcher, or `lfs` (if
    stripes are set) is not installed."""
    found = shutil.which(sweep.program or name)
    if found is None:
        raise SweepError(f"{sweep.program or name}: not found", _LOAD.replace("{name}", name))
    launcher = shlex.split(sweep.launcher)
    if launcher and shutil.which(launcher[0]) is None:
        raise SweepError(
            f"{launcher[0]}: not found", "load MPI's module, or change launcher in the TOML file"
        )
    if sweep_needs_lfs(sweep) and shutil.which("lfs") is None:
        raise SweepError(
            "lfs: not found, which sets stripes", "leave out stripe_count and stripe_bytes, or use Lustre"
        )
    return found


def sweep_needs_lfs(sweep: Sweep) -> bool:
    """Returns whether any cell sets stripes, for which `lfs` is needed."""
    return isinstance(sweep, IorSweep) and (any(sweep.stripe_count) or any(sweep.stripe_bytes))


def command(sweep: Sweep, cell: RunCell, program: str, folder: Path) -> list[str]:
    """Returns the command line of a run. The run creates its files in FOLDER."""
    places = {"processes": cell.processes, "nodes": cell.nodes, "per_node": cell.per_node}
    launcher = shlex.split(sweep.launcher)
    for name, value in places.items():
        launcher = [word.replace(f"{{{name}}}", str(value)) for word in launcher]
    own = _ior(sweep, cell, folder) if isinstance(sweep, IorSweep) else _mdtest(sweep, cell, folder)
    return [*launcher, program, *own, *sweep.options]


def _ior(sweep: IorSweep, cell: RunCell, folder: Path) -> list[str]:
    settings = cell.settings
    words = ["-a", settings["api"], "-t", settings["transfer"], "-b", settings["block"]]
    words += ["-s", str(sweep.segments), "-i", "1", "-o", str(folder / "data")]
    words += ["-F"] if settings["access"] == "file-per-process" else []
    return [*words, *(["-c"] if settings["collective"] else [])]


def _mdtest(sweep: Sweep, cell: RunCell, folder: Path) -> list[str]:
    words = ["-n", str(getattr(sweep, "items", 1)), "-i", "1", "-d", str(folder)]
    words += ["-u"] if cell.settings["directories"] == "one-per-process" else []
    written = str(cell.settings["file_bytes"])
    return [*words, "-w", written, "-e", written] if written != "0" else words


def environment(sweep: Sweep, cell: RunCell) -> Mapping[str, str]:
    """Returns environment variables of a run. They contain MPI-IO hints in the form that IOR reads."""
    forced = cell.settings.get("collective_buffering", "default")
    if forced == "default" or not isinstance(sweep, IorSweep):
        return {}
    return {f"IOR_HINT__MPI__{hint}": forced for hint in sweep.collective_buffering_hints}


def stripes(cell: RunCell, folder: Path) -> list[str] | None:
    """Returns the command that sets the stripes of FOLDER before the run, or None if the default stripes are
    used."""
    count, width = cell.settings.get("stripe_count", 0), cell.settings.get("stripe_bytes", "")
    if not count and not width:
        return None
    words = ["lfs", "setstripe"]
    words += ["-c", str(count)] if count else []
    return [*words, *(["-S", str(size(width))] if width else []), str(folder)]


def needed(sweep: Sweep, cell: RunCell) -> tuple[int, int]:
    """Returns the number of bytes and inodes that a run needs."""
    if isinstance(sweep, IorSweep):
        each = (size(cell.settings["block"]) or 0) * sweep.segments
        files = cell.processes if cell.settings["access"] == "file-per-process" else 1
        return each * cell.processes, files + 1
    items = getattr(sweep, "items", 1) * cell.processes
    return items * int(cell.settings["file_bytes"]), 2 * items + 16
