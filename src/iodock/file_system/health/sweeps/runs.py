"""Runs a sweep in shuffled order. The output of each run is kept, so that an interrupted sweep can be
resumed.

The files of a run are in a temporary folder below the folder of the sweep. It is removed after the run, even
after Ctrl-C, because IOR and mdtest leave their files behind when they fail. Other files are not changed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from iodock import _native
from iodock.file_system.health import readers
from iodock.file_system.health.measurements import Cache, Cell, Json, MeasurementError, Measurements, Protocol
from iodock.file_system.health.readers.base import Repeats
from iodock.file_system.health.sweeps import commands
from iodock.file_system.health.sweeps.plan import RunCell, Sweep, SweepError, matrix, swept
from iodock.shared.bounded import files
from iodock.shared.bounded.doubts import Doubts
from iodock.shared.bounded.limits import NOTE
from iodock.shared.units import number_text

Progress = Callable[[int, int | None, int], None]
_CARRIED = ("stripe_bytes", "stripe_count", "collective_buffering")
"""Settings that the programs' outputs do not show."""
_PREFIX = ".iodock-bench-"


@dataclass(frozen=True)
class Run:
    """One run of a cell. Each cell is run several times."""

    cell: RunCell
    repeat: int

    def output(self, kept: Path) -> Path:
        return kept / f"{self.cell.name()}_r{self.repeat}.txt"


@dataclass(frozen=True)
class Outcome:
    """The measurements of a sweep, and the runs that failed."""

    measurements: Measurements
    failed: tuple[str, ...]
    """Each run that failed, as `output: why`."""


def planned(sweep: Sweep) -> tuple[list[Run], int]:
    """Returns all runs in random order, and the number of impossible combinations. All cells are run once
    before any is repeated. If the file system is slow for a minute, this then affects single repeats instead
    of all repeats of one cell."""
    cells, left_out = matrix(sweep)
    chance = random.Random(sweep.seed)
    order: list[Run] = []
    for repeat in range(1, sweep.repeats + 1):
        several = [Run(cell, repeat) for cell in cells]
        chance.shuffle(several)
        order += several
    return order, left_out


def check_space(sweep: Sweep, runs: Sequence[Run]) -> None:
    """Checks that the file system has enough free bytes and inodes for the largest run. Raises SweepError."""
    folder = Path(sweep.folder)
    try:
        free = os.statvfs(folder)
    except OSError as error:
        raise SweepError(f"{folder}: {error.strerror}", "folder must be an existing folder") from error
    if not os.access(folder, os.W_OK):
        raise SweepError(f"{folder}: you may not write there", "name another folder")
    needs = [commands.needed(sweep, run.cell) for run in runs]
    most, inodes = max(one[0] for one in needs), max(one[1] for one in needs)
    room = free.f_bavail * free.f_frsize
    if most > 0.95 * room:
        hint = "fewer processes, or a smaller block (file_bytes, items)"
        raise SweepError(f"{folder}: the largest run needs {most:,} bytes, but {room:,} are free", hint)
    if free.f_files and inodes > 0.95 * free.f_favail:
        raise SweepError(
            f"{folder}: the largest run needs {inodes:,} inodes, but {free.f_favail:,} are free",
            "fewer items",
        )


def carry_out(sweep: Sweep, name: str, kept: Path, progress: Progress) -> Outcome:
    """Executes all runs whose output is not yet in the folder KEPT, and combines all outputs. A run that
    fails is listed in the result, and is executed again when the sweep is resumed. Raises SweepError before
    the first run if the sweep can't be executed."""
    program = commands.find_program(sweep, name)
    runs, left_out = planned(sweep)
    check_space(sweep, runs)
    kept.mkdir(parents=True, exist_ok=True)
    _same_sweep(sweep, kept)
    missing = [run for run in runs if not run.output(kept).is_file()]
    for at, run in enumerate(missing):
        progress(at, len(missing), at)
        _make(sweep, run, program, kept)
    return gathered(sweep, runs, kept, left_out)


def _same_sweep(sweep: Sweep, kept: Path) -> None:
    """Checks that the outputs in KEPT are those of the same sweep. Only the number of repeats, the time limit
    and the seed may differ. Raises SweepError."""
    said = {
        name: value for name, value in vars(sweep).items() if name not in ("repeats", "limit_seconds", "seed")
    }
    text = json.dumps(said, sort_keys=True)
    note = kept / "sweep.json"
    if note.is_file() and files.text(note, NOTE, SweepError, "replace") != text:
        hint = f"choose another name with -o, or remove {kept}"
        raise SweepError(f"{kept}: holds the outputs of another sweep", hint)
    note.write_text(text, encoding="utf-8")


@contextmanager
def _own_folder(sweep: Sweep) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=sweep.folder))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make(sweep: Sweep, run: Run, program: str, kept: Path) -> None:
    """Executes one run. Its output is written to a file that ends in `.part`. After the run the file is
    renamed to its final name, or to a name that ends in `.failed` if the run failed."""
    output = run.output(kept)
    failed = output.with_suffix(".failed")
    failed.unlink(missing_ok=True)
    part = output.with_suffix(".part")
    with _own_folder(sweep) as folder, part.open("wb") as out:
        prepare = commands.stripes(run.cell, folder)
        if prepare is not None:
            subprocess.run(prepare, stdout=out, stderr=subprocess.STDOUT, check=False, timeout=60)
        said = commands.command(sweep, run.cell, program, folder)
        variables = os.environ | dict(commands.environment(sweep, run.cell))
        try:
            status = _wait(
                subprocess.Popen(
                    said,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    env=variables,
                    start_new_session=True,
                ),
                sweep.limit_seconds,
            )
        except OSError as error:
            raise SweepError(f"{said[0]}: {error.strerror}", "correct launcher in the TOML file") from error
        if status != 0:
            out.write(f"\niodock: {_ended(status, sweep)}\n".encode())
    part.replace(output if status == 0 else failed)


def _ended(status: int | None, sweep: Sweep) -> str:
    return (
        f"ended after {number_text(sweep.limit_seconds, 6)} s" if status is None else f"exit status {status}"
    )


def _wait(process: subprocess.Popen[bytes], limit: float) -> int | None:
    """Returns the exit status, or None if the process exceeded the time limit. Remaining processes of its
    group are terminated in either case."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        for number, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience)
                break


def gathered(sweep: Sweep, runs: Sequence[Run], kept: Path, left_out: int) -> Outcome:
    """Combines the outputs of all runs. Runs of the same cell are its repeats. Raises SweepError if no run
    succeeded."""
    repeats, failed = Repeats(Doubts()), []
    first: Protocol | None = None
    for run in runs:
        output = run.output(kept)
        if not output.is_file():
            failed.append(f"{output.with_suffix('.failed')}: {_last_line(output.with_suffix('.failed'))}")
            continue
        try:
            measured = readers.read(output)
        except MeasurementError as error:
            failed.append(str(error))
            output.replace(output.with_suffix(".failed"))
            continue
        first = first or measured.protocol
        for cell in measured.cells:
            repeats.add(_carrying(cell, run.cell, sweep))
    if first is None:
        raise SweepError(
            f"no run succeeded: {failed[0] if failed else 'none was planned'}", f"see the outputs in {kept}"
        )
    cells = tuple(sorted(_over_what(repeats.cells(), sweep.folder), key=_order))
    return Outcome(Measurements(_protocol(first, sweep, len(failed), left_out), cells), tuple(failed))


def _over_what(cells: Sequence[Cell], folder: str) -> Iterator[Cell]:
    """Corrects the cache labels of cells that were measured with O_DIRECT. The layers below the file system
    (such as a RAM disk) may have a cache. They can be examined only on the machine on which the benchmark
    ran."""
    kind, why = _native.load_under(folder)
    label = {"perhaps": Cache.MAYBE_CACHED, "memory": Cache.CACHED}.get(kind)
    for cell in cells:
        is_direct = cell.cache_reason == "O_DIRECT"
        yield replace(cell, cache=label, cache_reason=f"O_DIRECT, but {why}") if label and is_direct else cell


def _order(cell: Cell) -> tuple[object, ...]:
    """Returns the sort key of a cell for the table: operation, variant, nodes, size and processes. Without
    sorting, cells would be in the random order of the runs."""
    variant = tuple(sorted(cell.variant.items()))
    return (cell.operation, variant, cell.nodes or 0, cell.size_bytes or 0, cell.processes or 0)


def _carrying(cell: Cell, run: RunCell, sweep: Sweep) -> Cell:
    """Adds to CELL the settings that the benchmark's output does not contain. It also sets the numbers of
    nodes and processes, because the launcher may hide the real nodes from the benchmark."""
    said = {name: str(run.settings[name]) for name in swept(sweep, _CARRIED) if run.settings.get(name)}
    return replace(cell, nodes=run.nodes, processes=run.processes, variant={**cell.variant, **said})


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return "was not run"
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def _protocol(first: Protocol, sweep: Sweep, failed: int, left_out: int) -> Protocol:
    settings: dict[str, Json] = {
        **first.settings,
        "repeats": sweep.repeats,
        "seed": sweep.seed,
        "launcher": sweep.launcher,
    }
    notes = [f"runs that failed: {failed}"] if failed else []
    notes += [f"combinations that can't be run and are left out: {left_out}"] if left_out else []
    return replace(first, target=sweep.folder, settings=settings, notes=(*first.notes, *notes))
