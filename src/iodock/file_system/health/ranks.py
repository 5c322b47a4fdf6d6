"""Finds the rank of this process in a job that mpirun or srun started, from environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """A job: rank, number of ranks, a name that only the ranks of this job share, ranks on one machine, and
    whether they synchronise outside the engine."""

    rank: int
    size: int
    key: str
    per_node: int = 1
    met_outside: bool = False


_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")),
    ("PMI_RANK", "PMI_SIZE", ("PMI_JOBID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PJM_JOBID")),
    # The number of tasks is that of a step, because the batch script itself has a SLURM_PROCID, too.
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_JOB_ID",)),
)
"""Variables with rank, size, and candidates for the job's name, for each launcher: Open MPI, MPICH and Intel
MPI, Slurm."""


def job_of(environment: Mapping[str, str]) -> Job | None:
    """Returns the job; None if this is a single process."""
    for rank, size, names in _LAUNCHERS:
        if (given := _number(environment, rank)) is None or (many := _number(environment, size)) is None:
            continue
        if many < 2 or given >= many:
            return None
        key = next((environment[name] for name in names if environment.get(name)), "job")
        step = environment.get("SLURM_STEP_ID", "")
        return Job(given, many, f"{key}.{step}.{many}", _per_node(environment))
    return None


def _per_node(environment: Mapping[str, str]) -> int:
    """Number of ranks on this machine. Open MPI, MPICH and Intel MPI give a number, Slurm gives `4(x8),3`."""
    for name in ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"):
        if given := _number(environment, name):
            return given
    first = re.match(r"[1-9]\d{0,6}", environment.get("SLURM_STEP_TASKS_PER_NODE", ""))
    return int(first[0]) if first else 1


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isdigit() else None
