"""Finds the rank of this process in a job that mpirun or srun started. The launcher passes it in environment
variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """The ranks that execute one check-up together: the rank of this process, the number of ranks, a name
    that only the ranks of this job share, the number of ranks on this machine, and whether a barrier outside
    the engine synchronises them."""

    rank: int
    size: int
    key: str
    per_node: int = 1
    met_outside: bool = False


_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")),
    ("PMI_RANK", "PMI_SIZE", ("PMI_JOBID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PJM_JOBID")),
    # The number of tasks is read from SLURM_STEP_NUM_TASKS, which only a job step has. A batch script has
    # SLURM_PROCID as well, but it is not a rank.
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_JOB_ID",)),
)
"""Variables with rank, size, and candidates for the job's name, for each launcher: Open MPI, MPICH and Intel
MPI, Slurm."""


def job_of(environment: Mapping[str, str]) -> Job | None:
    """Returns the job of this process, or None if the process does not belong to several ranks."""
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
    """Returns the number of ranks on this machine, or 1 if no variable states it. Open MPI, MPICH and Intel
    MPI set a number, Slurm sets a text such as `4(x8),3`, of which the first number is used."""
    for name in ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"):
        if given := _number(environment, name):
            return given
    first = re.match(r"[1-9]\d{0,6}", environment.get("SLURM_STEP_TASKS_PER_NODE", ""))
    return int(first[0]) if first else 1


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isdigit() else None
