"""Adapters for schedulers, which query information about jobs and run commands that hold, suspend or requeue
jobs. Each scheduler has its own module."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from iodock.centre.watch.schedulers.base import Scheduler
from iodock.centre.watch.schedulers.grid_engine import GRID_ENGINE
from iodock.centre.watch.schedulers.nqsv import NQSV
from iodock.centre.watch.schedulers.pbs import PBS
from iodock.centre.watch.schedulers.pjm import PJM
from iodock.centre.watch.schedulers.slurm import SLURM
from iodock.shared.response import SchedulerName

SCHEDULERS: Mapping[SchedulerName, Scheduler] = {
    "slurm": SLURM,
    "pbs": PBS,
    "grid-engine": GRID_ENGINE,
    "pjm": PJM,
    "nqsv": NQSV,
}


def chosen(name: str) -> Scheduler | None:
    """Returns the scheduler with this name in the settings. `auto` means the scheduler whose program is
    installed on this machine. If the programs of several are found, the result is None, because three
    schedulers have a program called qstat."""
    if name != "auto":
        return next((one for one in SCHEDULERS.values() if one.name == name), None)
    here = [one for one in SCHEDULERS.values() if shutil.which(one.program)]
    return here[0] if len(here) == 1 else None
