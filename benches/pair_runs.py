"""Builds a pair's two programs and runs them alternately, without a recorder and recorded."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labelled_runs import Failed, Unrunnable, checked
from pair import FOLDER, Pair

from iodock.program.diagnosis import diagnose
from iodock.program.store import Store
from iodock.program.store.manifest import read_manifest
from iodock.program.views.diagnosis_json import diagnosis_json
from iodock.shared.language import language_in
from iodock.shared.settings import Settings

REQUIREMENTS = FOLDER / "requirements.txt"
SIDES = ("before", "after")
TIMES = "times.json"
"""Wall seconds of the unrecorded runs, and the stores of the recorded ones."""


@dataclass
class Measured:
    """Results of the runs of one pair: elapsed seconds, one value for each turn."""

    pair: Pair
    alone: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    recorded: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    found: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {side: [] for side in SIDES})
    """Diagnoses, as `iodock diagnose --format json` prints them. The corrected version has one."""
    skipped: str = ""
    error: str = ""

    @property
    def counts(self) -> bool:
        """Returns whether there are results to judge."""
        return not self.skipped and not self.error


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "iodock-pairs"


def python_folder() -> Path:
    """Returns the folder of a Python with the pairs' packages, and creates it on first use. Raises
    Unrunnable."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = cache_folder() / wanted
    if not (folder / "done").exists():
        print(f"installing the pairs' Python packages into {folder}", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]
        done = subprocess.run([str(folder / "bin" / "python"), *install], capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Unrunnable(f"Python packages can't be installed: {last}")
        (folder / "done").touch()
    return folder / "bin"


def lacking(pair: Pair) -> list[str]:
    """Returns the programs that a pair needs and that are not installed."""
    versions = (pair.before, pair.after)
    wanted = [*pair.needs, *(one.compile[0] for one in versions if one.compile)]
    wanted += [one.run[0] for one in versions if not one.run[0].startswith("./")]
    return [name for name in dict.fromkeys(wanted) if shutil.which(name) is None]


def measure(pair: Pair, folder: Path, stores: Path, turns: int) -> Measured:
    """Runs a pair in FOLDER and records it into STORES (both are new). The result lists missing tools and
    failures."""
    measured = Measured(pair)
    try:
        _measure(measured, prepared(pair, folder / "work"), stores, turns)
    except Unrunnable as reason:
        measured.skipped = str(reason)
    except Failed as error:
        measured.error = str(error)
    return measured


def diagnosed_again(pair: Pair, stores: Path) -> Measured:
    """Returns results that an earlier run measured and recorded into STORES, with new diagnoses."""
    measured = Measured(pair)
    if (stores / TIMES).exists():
        measured.alone = json.loads((stores / TIMES).read_text(encoding="utf-8"))
        _diagnose(measured, stores)
    else:
        measured.skipped = "nothing was kept of it"
    return measured


def prepared(pair: Pair, work: Path) -> Place:
    """Creates the folder WORK with a pair's compiled programs and their input. Raises Failed, Unrunnable."""
    if missing := lacking(pair):
        raise Unrunnable(f"no {', '.join(missing)}")
    # In scripts, `python3` must be the Python with the pairs' packages, or otherwise the one that runs this
    # tool.
    python = python_folder() if pair.packages else Path(sys.executable).parent
    variables = {"PATH": f"{python}:{os.environ['PATH']}"}
    shutil.copytree(pair.folder, work)
    if pair.input:
        checked(pair.input, work, "input", variables, _at_highest_priority)
    for version in (pair.before, pair.after):
        if version.compile:
            checked(version.compile, work, "compile", variables, _at_highest_priority)
    return Place(work, frozenset(path.name for path in work.iterdir()), pair.cold, variables)


def _measure(measured: Measured, place: Place, stores: Path, turns: int) -> None:
    versions = {"before": measured.pair.before, "after": measured.pair.after}
    # The first run reads programs, libraries and input into the cache, before the measurement.
    printed = {side: place.run(versions[side].run, side)[1] for side in SIDES}
    if printed["before"] != printed["after"]:
        raise Failed("the two versions print different results")
    for turn in range(1, turns + 1):
        for side in SIDES if turn % 2 else SIDES[::-1]:
            measured.alone[side].append(place.run(versions[side].run, side)[0])
            store = stores / f"{side}-{turn}.iodock"
            command = [iodock(), "record", "--quiet", "-o", str(store), "--", *versions[side].run]
            place.run(command, f"record {side}")
    (stores / TIMES).write_text(json.dumps(measured.alone), encoding="utf-8")
    _diagnose(measured, stores)


def _diagnose(measured: Measured, stores: Path) -> None:
    for side in SIDES:
        for turn in range(1, len(measured.alone[side]) + 1):
            store = stores / f"{side}-{turn}.iodock"
            measured.recorded[side].append((read_manifest(store).wall_ns or 0) / 1e9)
            # The score uses only the remaining findings of the corrected version, which are the same in each
            # turn.
            if side == "before" or turn == 1:
                measured.found[side].append(diagnosis(store))


@dataclass(frozen=True)
class Place:
    """The folder in which a pair's programs run. Each run finds it in the same state."""

    work: Path
    made: frozenset[str]
    """The files that were there at first. All others are removed after each run."""
    cold: tuple[str, ...]
    variables: Mapping[str, str]

    def run(self, command: Sequence[str], what: str) -> tuple[float, str]:
        """Runs a command and returns elapsed seconds and output. Raises Failed."""
        for name in self.cold:
            with (self.work / name).open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        begun = time.monotonic()
        printed = checked(command, self.work, what, self.variables, _at_highest_priority)
        seconds = time.monotonic() - begun
        for path in self.work.iterdir():
            if path.name in self.made:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        return seconds, printed


def _at_highest_priority() -> None:
    """Raises the priority if that is allowed (as root), so that programs of other users take little of a
    run's time."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        # With autogroup (sched(7)), sessions share the processors, and the priority of a process counts only
        # within its session.
        Path("/proc/self/autogroup").write_text("-20", encoding="ascii")


def iodock() -> str:
    return str(Path(sys.executable).with_name("iodock"))


def diagnosis(store: Path) -> dict[str, Any]:
    """Returns the output of `iodock diagnose --format json`. Runs it in this process, which saves the start
    of another Python."""
    with Store.open(store) as opened:
        text = diagnosis_json(diagnose(opened, Settings()), language_in("en"))
    found: dict[str, Any] = json.loads(text)
    return found
