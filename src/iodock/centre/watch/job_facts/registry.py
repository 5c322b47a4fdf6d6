"""Every scheduler, and which one is here."""

from __future__ import annotations

import shutil

from iodock.centre.watch.job_facts import grid_engine, nqsv, pbs, pjm, slurm
from iodock.centre.watch.job_facts.facts import Scheduler

SCHEDULERS: tuple[Scheduler, ...] = (
    slurm.SCHEDULER, pjm.SCHEDULER, pbs.SCHEDULER, nqsv.SCHEDULER, grid_engine.SCHEDULER,
)  # fmt: skip


def chosen(name: str) -> Scheduler | None:
    """By its name in settings. `auto`: the one whose program is here, if that is clear (three have a
    qstat)."""
    if name != "auto":
        return next((one for one in SCHEDULERS if one.name == name), None)
    here = [one for one in SCHEDULERS if shutil.which(one.program)]
    return here[0] if len(here) == 1 else None
