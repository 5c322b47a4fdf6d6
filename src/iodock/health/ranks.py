"""This process among those that mpirun or srun started, from the environment that they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """Rank, number of ranks, and a name that all of them have and no other job."""

    rank: int
    size: int
    key: str


_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")),
    ("PMI_RANK", "PMI_SIZE", ("PMI_JOBID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PJM_JOBID")),
    # Of a step that srun started: the batch script itself has a SLURM_PROCID too.
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_JOB_ID",)),
)
"""Rank, size, and what may name the job, by launcher: Open MPI, MPICH and Intel MPI, Slurm."""


def job_of(environment: Mapping[str, str]) -> Job | None:
    """The job; None where this process is alone."""
    for rank, size, names in _LAUNCHERS:
        if (given := _number(environment, rank)) is None or (many := _number(environment, size)) is None:
            continue
        if many < 2 or given >= many:
            return None
        key = next((environment[name] for name in names if environment.get(name)), "job")
        step = environment.get("SLURM_STEP_ID", "")
        return Job(given, many, f"{key}.{step}.{many}")
    return None


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isdigit() else None
