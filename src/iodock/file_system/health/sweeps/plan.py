"""Reads the TOML file that describes a sweep, and makes the matrix of its cells. Unknown keys are errors.

    folder = "/scratch/me"                  # test files go below it, and are removed
    launcher = "mpirun -n {processes} --map-by ppr:{per_node}:node"
    repeats = 3
    nodes = [1, 2, 4]
    processes_per_node = [1, 8, 16]
    transfer = ["64k", "1m"]                # ior; the rest has one value each unless it is said
    access = ["file-per-process", "shared-file"]

Every combination of values is a cell. Impossible combinations, such as collective calls of POSIX, are left
out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from iodock.file_system.health.readers.base import size
from iodock.shared.bounded import files
from iodock.shared.bounded.documents import from_toml
from iodock.shared.bounded.limits import PLAN
from iodock.shared.errors import IodockError, meant

LAUNCHER = "mpirun -n {processes}"
_MOST_RUNS = 100_000


class SweepError(IodockError):
    """The error that is raised if a sweep can't be run as described."""


@dataclass(frozen=True)
class Common:
    """Settings that sweeps of IOR and mdtest share."""

    folder: str = ""
    program: str = ""
    """Path of the program; empty: it is searched in PATH."""
    launcher: str = LAUNCHER
    """Command that launches the ranks. It contains `{processes}`, `{nodes}` and `{per_node}`."""
    options: tuple[str, ...] = ()
    """Options that are added to each command line unchanged."""
    repeats: int = 3
    seed: int = 1
    """Seed for the order of runs."""
    limit_seconds: float = 3600.0
    """A run that takes longer than this is killed, and counts as failed."""
    nodes: tuple[int, ...] = (1,)
    processes_per_node: tuple[int, ...] = (1,)
    processes: tuple[int, ...] = (0,)
    """Total numbers of processes; 0: any. Other combinations are left out."""


@dataclass(frozen=True)
class IorSweep(Common):
    """Settings of a sweep of IOR."""

    transfer: tuple[str, ...] = ("1m",)
    block: tuple[str, ...] = ("64m",)
    """Bytes that each process writes."""
    segments: int = 1
    api: tuple[str, ...] = ("POSIX",)
    access: tuple[str, ...] = ("file-per-process",)
    """How processes use files: `file-per-process` or `shared-file`."""
    collective: tuple[bool, ...] = (False,)
    collective_buffering: tuple[str, ...] = ("default",)
    """`default`, `enable` or `disable`. The last two are set with `collective_buffering_hints`."""
    collective_buffering_hints: tuple[str, ...] = ("romio_cb_write", "romio_cb_read")
    """Names of the hints. They differ by vendor: some use `cb_write`, `cb_read`."""
    stripe_bytes: tuple[str, ...] = ("",)
    stripe_count: tuple[int, ...] = (0,)
    """Stripe count: 0 is the file system's default; other values are set by `lfs setstripe`, and -1 means all
    targets."""


@dataclass(frozen=True)
class MdtestSweep(Common):
    """Settings of a sweep of mdtest."""

    items: int = 1000
    """Number of files and of directories per process."""
    directories: tuple[str, ...] = ("one-per-process",)
    """Directories of the processes: `one-per-process` or `shared`."""
    file_bytes: tuple[int, ...] = (0,)


Sweep = IorSweep | MdtestSweep
_CHOICES = {
    "access": ("file-per-process", "shared-file"),
    "api": ("POSIX", "MPIIO", "HDF5", "NCMPI"),
    "collective_buffering": ("default", "enable", "disable"),
    "directories": ("one-per-process", "shared"),
}
_LEAST = {"repeats": 1, "nodes": 1, "processes_per_node": 1, "items": 1, "segments": 1, "file_bytes": 0}
_NO_AXES = ("options", "nodes", "processes_per_node", "processes", "collective_buffering_hints")
_SIZES = ("transfer", "block", "stripe_bytes")


@dataclass(frozen=True)
class RunCell:
    """One combination of settings."""

    nodes: int
    per_node: int
    settings: Mapping[str, Any]
    """A value for each field of the sweep that is a list."""

    @property
    def processes(self) -> int:
        return self.nodes * self.per_node

    def name(self) -> str:
        """Returns a name for files that identifies the cell."""
        usual = ("", "default", 0, False)
        said = [f"{name}={value}" for name, value in self.settings.items() if value not in usual]
        return "_".join([f"n{self.nodes}", f"p{self.per_node}", *said]).replace("/", "-").replace(" ", "")


def load(path: Path, program: str) -> Sweep:
    """Reads a sweep from a TOML file. PROGRAM is `ior` or `mdtest`. Raises SweepError with file and key."""
    try:
        content = from_toml(files.text(path, PLAN, SweepError))
    except OSError as error:
        raise SweepError(f"{path}: {error.strerror or error}", "name a TOML file") from error
    except ValueError as error:
        raise SweepError(f"{path}: {error}", "see docs/how-to/sweeps.md") from error
    kind: type[Sweep] = IorSweep if program == "ior" else MdtestSweep
    known = {one.name: one.default for one in fields(kind)}
    values = {name: _value(path, name, said, known) for name, said in content.items()}
    sweep = kind(**values)
    if not sweep.folder:
        raise SweepError(f"{path}: folder is missing", 'give the folder to measure: folder = "/scratch/me"')
    if len(sweep.nodes) > 1 and not any(one in sweep.launcher for one in ("{nodes}", "{per_node}")):
        hint = 'launcher = "srun -N {nodes} -n {processes}", or mpirun with --map-by ppr:{per_node}:node'
        raise SweepError(f"{path}: nodes differ, but the launcher has no {{nodes}} or {{per_node}}", hint)
    return sweep


def _value(path: Path, name: str, said: Any, known: Mapping[str, Any]) -> Any:
    """Checks the value of a key, and converts it to the type of the field. If the field is a list, a single
    value becomes a list with one element."""
    if name not in known:
        raise SweepError(f"{path}: no such key: {name}", meant(name, known, "see the how-to"))
    usual = known[name]
    if isinstance(usual, tuple):
        several = said if isinstance(said, list) else [said]
        if not several:
            raise SweepError(f"{path}: {name} is empty", "leave it out, or give it a value")
        kind = type(usual[0]) if usual else str
        return tuple(dict.fromkeys(_checked(path, name, one, kind) for one in several))
    return _checked(path, name, said, type(usual))


def _checked(path: Path, name: str, given: Any, kind: type) -> Any:
    said: Any = given
    if kind is float and isinstance(said, int) and not isinstance(said, bool):
        said = float(said)
    if kind is str and name in _SIZES and isinstance(said, int):
        said = str(said)
    if not _is(said, kind):
        raise SweepError(
            f"{path}: {name} should be {kind.__name__}, not {said!r}", "see docs/how-to/sweeps.md"
        )
    if name in _CHOICES and said not in _CHOICES[name]:
        raise SweepError(f"{path}: {name} can't be {said!r}", f"possible values: {', '.join(_CHOICES[name])}")
    if name in _LEAST and said < _LEAST[name]:
        raise SweepError(f"{path}: {name} should be at least {_LEAST[name]}, not {said}", "correct this")
    if name in _SIZES and said and not size(said):
        raise SweepError(f"{path}: {name} should be a size such as 64k or 1m, not {said!r}", "correct this")
    return said


def _is(said: Any, kind: type) -> bool:
    return isinstance(said, kind) and (kind is bool or not isinstance(said, bool))


def matrix(sweep: Sweep) -> tuple[list[RunCell], int]:
    """Returns all combinations that can be run, and the number of those that can't. Raises SweepError if
    there are too many runs, or if no combination can be run."""
    axes = [one.name for one in fields(sweep) if isinstance(one.default, tuple) and one.name not in _NO_AXES]
    cells, left_out = [], 0
    for nodes, per_node, *several in product(
        sweep.nodes, sweep.processes_per_node, *(getattr(sweep, name) for name in axes)
    ):
        settings = dict(zip(axes, several, strict=True))
        if any(sweep.processes) and nodes * per_node not in sweep.processes:
            continue
        if possible(settings):
            cells.append(RunCell(nodes, per_node, settings))
        else:
            left_out += 1
        if len(cells) * sweep.repeats > _MOST_RUNS:
            raise SweepError(f"more than {_MOST_RUNS:,} runs", "give fewer values, or fewer repeats")
    if not cells:
        raise SweepError("no combination can be run", "docs/how-to/sweeps.md lists valid combinations")
    return cells, left_out


def possible(settings: Mapping[str, Any]) -> bool:
    """Returns whether IOR can run the combination. A block must be a multiple of the transfer size, and POSIX
    has no collective calls."""
    posix = settings.get("api") == "POSIX"
    if posix and (settings.get("collective") or settings.get("collective_buffering", "default") != "default"):
        return False
    transfer, block = size(settings.get("transfer")), size(settings.get("block"))
    return transfer is None or block is None or (block >= transfer and block % transfer == 0)


def swept(sweep: Sweep, names: Sequence[str]) -> list[str]:
    """Returns those NAMES whose fields in the sweep do not have their default values."""
    usual = {one.name: one.default for one in fields(sweep)}
    return [
        name
        for name in names
        if getattr(sweep, name, None) is not None and getattr(sweep, name) != usual[name]
    ]
