"""Runs a case: creates its input, compiles, records both versions, and measures the gain of the change."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from iodock.program.casebook.case import Case, Version
from iodock.program.diagnosis import diagnose
from iodock.program.findings import Diagnosis, Finding
from iodock.program.store import Store
from iodock.shared.errors import IodockError
from iodock.shared.settings import Settings

PACKAGES = {"cc": "gcc", "c++": "g++", "mpicc": "libopenmpi-dev", "mpirun": "openmpi-bin", "awk": "gawk"}
"""Maps a program to the Debian package that contains it."""
PATIENCE_S = 300

Tell = Callable[[str, int, int], None]
"""Reports progress: called with the current step (`input`, `compile`, `before`, `after`), the number of the
run and the number of runs."""


@dataclass(frozen=True, slots=True)
class CaseRun:
    """The stores of both versions, each recorded several times."""

    case: Case
    before: tuple[Path, ...]
    """Stores of the runs before the change."""
    after: tuple[Path, ...]
    outputs: tuple[str, str]
    """Output of both programs. If they differ, the change altered the result."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The measured gain of the change, and the gain that the diagnosis expected, in seconds of wall time."""

    before_seconds: float
    """Median elapsed time before the change, in s."""
    after_seconds: float
    low_seconds: float
    """Smallest expected gain, as the sum over the findings that disappeared."""
    high_seconds: float
    gone: tuple[Finding, ...]
    remaining: int = 0
    """Number of findings of the original version that are still worth changing afterwards."""

    @property
    def gain_seconds(self) -> float:
        """The measured gain, s."""
        return self.before_seconds - self.after_seconds

    @property
    def is_inside(self) -> bool:
        """Whether the measured gain lies in the expected range."""
        return self.low_seconds <= self.gain_seconds <= self.high_seconds


def missing(case: Case) -> tuple[str, ...]:
    """Names of programs that the case needs but that are not installed."""
    versions = [one for one in (case.before, case.after) if one is not None]
    wanted = [*case.needs, *(one.compile[0] for one in versions if one.compile)]
    wanted += [one.run[0] for one in versions if not one.run[0].startswith("./")]
    return tuple(dict.fromkeys(name for name in wanted if shutil.which(name) is None))


def run_case(case: Case, folder: Path, times: int, tell: Tell) -> CaseRun:
    """Records both versions TIMES times, in turn, in FOLDER, which must be empty. Raises IodockError."""
    lacking = missing(case)
    if lacking:
        packages = " ".join(PACKAGES.get(name, name) for name in lacking)
        raise IodockError(f"{case.name} needs {', '.join(lacking)}", f"apt-get install {packages}")
    assert case.before is not None and case.after is not None
    work = folder / "work"
    shutil.copytree(case.folder, work)
    if case.input:
        tell("input", 1, 1)
        _run(case.input, work)
    for version in (case.before, case.after):
        if version.compile:
            tell("compile", 1, 1)
            _run(version.compile, work)
    stores: dict[str, list[Path]] = {"before": [], "after": []}
    outputs = {}
    for number in range(1, times + 1):
        for side, version in (("before", case.before), ("after", case.after)):
            tell(side, number, times)
            store = folder / (f"{side}.iodock" if times == 1 else f"{side}-{number}.iodock")
            with _one_cpu(case.one_cpu):
                outputs[side] = _record(version, store, work)
            stores[side].append(store)
    return CaseRun(
        case, tuple(stores["before"]), tuple(stores["after"]), (outputs["before"], outputs["after"])
    )


@contextmanager
def _one_cpu(wanted: bool) -> Iterator[None]:
    """Keeps processes that are started inside on one CPU. A stop of a traced program takes several times as
    long if the recorder runs on another CPU, and the two versions would not be comparable."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)} if wanted else allowed)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _record(version: Version, store: Path, work: Path) -> str:
    command = [sys.executable, "-m", "iodock", "record", "--quiet", "-o", str(store), "--", *version.run]
    return _run(command, work)


def _run(command: Sequence[str], work: Path) -> str:
    program = sys.executable if command[0] == "python3" and command[1:2] == ["make_input.py"] else command[0]
    try:
        done = subprocess.run(
            [program, *command[1:]], cwd=work, capture_output=True, timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise IodockError(f"{command[0]} did not end within {PATIENCE_S} s") from error
    except OSError as error:
        raise IodockError(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-400:]
        raise IodockError(f"{' '.join(command[:3])} ended with status {done.returncode}: {said}")
    return done.stdout.decode(errors="replace")


def effect(run: CaseRun, settings: Settings) -> Effect:
    """Computes the measured gain, and the sum of the expected gains of the findings that disappeared. Both
    are medians over the runs."""
    befores = [_diagnosed(store, settings) for store in run.before]
    afters = [_diagnosed(store, settings) for store in run.after]
    still = {(one.rule, one.call) for one in afters[0].worth_changing}
    gone = [[one for one in found.worth_changing if (one.rule, one.call) not in still] for found in befores]
    gains = [[one.gain for one in findings if one.gain is not None] for findings in gone]
    before_seconds = _median_wall(befores)
    high_seconds = statistics.median(sum(one.high_seconds for one in found) for found in gains)
    return Effect(
        before_seconds=before_seconds,
        after_seconds=_median_wall(afters),
        low_seconds=statistics.median(sum(one.low_seconds for one in found) for found in gains),
        # A single finding may promise up to the whole run, but all findings together may not promise more.
        high_seconds=min(high_seconds, before_seconds),
        gone=tuple(gone[0]),
        remaining=len(befores[0].worth_changing) - len(gone[0]),
    )


def _diagnosed(store: Path, settings: Settings) -> Diagnosis:
    with Store.open(store) as opened:
        return diagnose(opened, settings)


def _median_wall(found: Sequence[Diagnosis]) -> float:
    return statistics.median(one.verdict.wall_seconds or 0.0 for one in found)
