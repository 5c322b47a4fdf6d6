"""Schedulers that can hold, suspend or requeue a job."""

from __future__ import annotations

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
