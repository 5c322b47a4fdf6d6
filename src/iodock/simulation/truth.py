"""The true operations of the simulated jobs. Tests compare with them."""

from __future__ import annotations

from typing import Any

from iodock.simulation.centre import Centre
from iodock.simulation.counters import Tallies


def truth(centre: Centre) -> dict[str, Any]:
    """Returns the content of truth.json: `jobs`, each with its `work`: job id -> target -> operation ->
    `samples` and `sum` (bytes for `..._bytes`, else microseconds). It includes operations that no server
    counts any more."""
    now_ns = centre.now_ns
    jobs: dict[int, dict[str, Any]] = {
        id(job): {
            "number": job.number,
            "user": job.user,
            "uid": job.uid,
            "name": job.name,
            "application": job.application,
            "nodes": list(job.nodes),
            "start_ns": job.start_ns,
            "end_ns": job.end_ns,
            "work": {},
        }
        for job in centre.jobs
    }
    for stream in centre.streams:
        work = jobs[id(stream.job)]["work"]
        if done := _plain(stream.truth_at(now_ns)):
            work.setdefault(stream.job_id, {})[stream.target.name] = done
    return {
        "synthetic": True,
        "scenario": centre.scenario.name,
        "seed": centre.seed,
        "begin_ns": centre.begin_ns,
        "now_ns": now_ns,
        "jobs": list(jobs.values()),
    }


def _plain(tallies: Tallies) -> dict[str, dict[str, int]]:
    return {name: {"samples": tally.samples, "sum": tally.sum} for name, tally in tallies.items()}
