"""Plans and executes a check-up. The module estimates the time, runs the steps, keeps the results of an
interrupted run, and makes measurements of all results."""

from __future__ import annotations

import json
import os
import platform
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import iodock
from iodock import _native
from iodock.file_system.health import engine
from iodock.file_system.health.classes import (
    CLASSES,
    KIB,
    MIB,
    Cell,
    Choice,
    Step,
    cells,
    made_files,
    shuffled,
    written_bytes,
)
from iodock.file_system.health.measurements import Measurements, Protocol
from iodock.file_system.health.mounts import mount_of, mounts
from iodock.file_system.health.mpi import Meeting
from iodock.file_system.health.quota_tools import ONLY_TOOLS_TELL, Owner, quotas_of
from iodock.file_system.health.quotas import Quotas
from iodock.file_system.health.ranks import Job
from iodock.file_system.health.results import Partial, Plan, Result, folded
from iodock.shared.errors import IodockError, RequestError

_OVERHEAD_S = 0.02
"""Time of a step in addition to its I/O: forking, cleaning, reporting."""


@dataclass(frozen=True)
class Wanted:
    """What the user requested. If WORKLOAD contains cells, they replace those of the class."""

    directory: Path
    name: str = "S"
    repeats: int = 3
    seed: int | None = None
    choice: Choice = field(default_factory=Choice)
    workload: Sequence[Cell] = ()
    job: Job | None = None


@dataclass(frozen=True)
class Estimate:
    """Estimated duration of a plan, and the space and number of files that it needs."""

    seconds: float
    written_bytes: int
    """Upper bound of all bytes that are written."""
    files: int
    """Upper bound of the number of files and directories that are created."""
    bytes_at_once: int
    inodes_at_once: int
    of_step: Mapping[int, float]
    """Estimated duration of each step, s."""


@dataclass(frozen=True)
class Speed:
    """Speed of one process in a short trial: bytes per second for data, seconds for operations on files."""

    write: float
    read: float
    file_s: float
    """Seconds for writing, syncing and closing a small file."""
    item_s: float
    """Seconds for creating a file."""


def planned(wanted: Wanted) -> tuple[Plan, Estimate]:
    """Measures the file system for about a second, and makes the plan. If the plan would exceed the time
    limit of the class, its volumes are reduced. Raises IodockError."""
    speed = _tried(wanted.directory)
    seed = random.randrange(1 << 32) if wanted.seed is None else wanted.seed
    shrunk, notes = 1.0, []
    estimate = _estimated(wanted, seed, speed, shrunk)[1]
    budget = None if wanted.workload else CLASSES[wanted.name].budget_s
    for _ in range(6):
        if budget is None or estimate.seconds <= budget:
            break
        shrunk *= max(min(budget / estimate.seconds, 0.8), 0.1)
        estimate = _estimated(wanted, seed, speed, shrunk)[1]
    if shrunk < 1.0:
        notes.append(f"volumes are {shrunk:.0%} of those of the class, because this file system is slow")
    plan, estimate = _estimated(wanted, seed, speed, shrunk)
    return replace(plan, notes=tuple(notes)), estimate


def _estimated(wanted: Wanted, seed: int, speed: Speed, shrunk: float) -> tuple[Plan, Estimate]:
    grid = wanted.workload or cells(CLASSES[wanted.name], wanted.choice, shrunk)
    if not grid:
        raise RequestError(
            "nothing is left to measure", "choose smaller --sizes, fewer --processes, or more --tests"
        )
    steps = shuffled(grid, wanted.repeats, seed)
    ranks = wanted.job.size if wanted.job else 1
    directory = str(wanted.directory)
    plan = Plan(directory, wanted.name, wanted.repeats, seed, ranks, _now(), steps)
    return plan, _estimate(plan, wanted.job, speed)


def _estimate(plan: Plan, job: Job | None, speed: Speed) -> Estimate:
    need = need_of(plan, job)
    of_step = {step.id: _seconds(step, speed) for step in plan.steps}
    written = sum(written_bytes(step) for step in plan.steps)
    files = sum(made_files(step) for step in plan.steps)
    return Estimate(sum(of_step.values()), written, files, *need, of_step)


def estimated_anew(plan: Plan, job: Job | None) -> Estimate:
    """Makes a new estimate for the plan of an interrupted run, with a new trial, because the speed of the
    file system may have changed. Raises IodockError."""
    return _estimate(plan, job, _tried(Path(plan.directory)))


def need_of(plan: Plan, job: Job | None) -> tuple[int, int]:
    """Returns the bytes, and the number of files and folders, that the largest step needs."""
    return _native.load_need(json.dumps(_request(plan, job, ())))


def quotas_at(directory: Path) -> Quotas:
    """Returns the quotas for new files in DIRECTORY if only a command of the file system reports them.
    Otherwise the result is empty, because the engine itself queries quotas from the kernel."""
    mount = mount_of(str(directory), mounts(), directory.stat().st_dev)
    if mount is None or mount.fs_type not in ONLY_TOOLS_TELL:
        return Quotas()
    return quotas_of(mount, str(directory), Owner.of(str(directory)))


def _seconds(step: Step, speed: Speed) -> float:
    """Estimates the duration of a step in seconds from the speed of one process. The estimate assumes that
    several processes together are as fast as one."""
    pattern, limit = step.cell.pattern, step.cell.limit_s
    items = made_files(step)
    if pattern["kind"] == "metadata":
        return 7 * min(limit, items / 2 * speed.item_s) + 2 * items * speed.item_s / 4 + _OVERHEAD_S
    volume = written_bytes(step)
    writing = volume / speed.write + items * (speed.file_s if volume else speed.item_s)
    reading = volume / speed.read + items * speed.item_s
    if pattern["kind"] == "mixed":
        return min(writing + reading, limit) + _OVERHEAD_S
    # Writing stops at the time limit, but the data must then still be synced. The estimate for writing may
    # therefore be twice the limit.
    reads = 2 if pattern.get("reread") else 1
    return min(writing, 2 * limit) + reads * min(reading, limit) + items * speed.item_s / 2 + _OVERHEAD_S


def _tried(directory: Path) -> Speed:
    data = {"kind": "data", "request_bytes": MIB}
    patterns: list[dict[str, Any]] = [
        {**data, "files": 1, "file_bytes": 16 * MIB},
        {**data, "files": 16, "file_bytes": 64 * KIB},
        {"kind": "metadata", "items": 100},
    ]
    steps = [
        {"id": at, "processes": 1, "limit_seconds": 0.5, "pattern": one} for at, one in enumerate(patterns)
    ]
    plan = {"directory": str(directory), "steps": steps}
    with closing(engine.run(plan)) as events:
        results = {event["id"]: event for event in events if event["event"] == "step"}

    def done(step: int, operation: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = next(one for one in results[step]["done"] if one["operation"] == operation)
        return found

    def each(step: int, operation: str, what: str) -> float:
        one = done(step, operation)
        return float(one["seconds"]) / max(float(one[what]), 1.0)

    write = 1 / each(0, "write", "bytes")
    file_s = max(each(1, "write", "operations") - 64 * KIB / write, 0.0)
    return Speed(write, 1 / each(0, "read", "bytes"), file_s, each(2, "file-create", "operations"))


def _request(plan: Plan, job: Job | None, done: Sequence[Result]) -> dict[str, Any]:
    over = {result["id"] for result in done}
    request: dict[str, Any] = {
        "directory": plan.directory,
        "steps": [step.request(plan.ranks) for step in plan.steps if step.id not in over],
    }
    if job:
        request["job"] = asdict(job)
    return request


Progress = Callable[[float, int], None]
"""Reports progress: called with the completed part of the estimated seconds, and the number of completed
steps."""


def carried_out(
    plan: Plan,
    job: Job | None,
    partial: Partial,
    done: Sequence[Result] = (),
    estimate: Estimate | None = None,
    progress: Progress = lambda seconds, steps: None,
    note: Callable[[str], None] = lambda text: None,
    meeting: Meeting | None = None,
) -> list[Result]:
    """Runs all steps that are not in DONE, and returns the results of all steps. Each result is written to
    PARTIAL as soon as it is complete. MEETING is the barrier for a job whose ranks synchronise outside the
    engine. Raises EngineError."""
    results = list(done)
    keeps = True
    seconds = sum((estimate.of_step[one["id"]] for one in done), 0.0) if estimate else 0.0
    with closing(engine.run(_request(plan, job, done), meeting)) as events:
        for event in events:
            if event["event"] != "step":
                continue
            result = {name: value for name, value in event.items() if name != "event"}
            results.append(result)
            seconds += estimate.of_step[result["id"]] if estimate else 0.0
            progress(seconds, len(results))
            if keeps and (keeps := _kept(partial, result)) is False:
                note(f"{partial.path}: can no longer be written, so this run can't be resumed")
    return results


def _kept(partial: Partial, result: Result) -> bool:
    try:
        partial.add(result)
    except OSError:
        return False
    return True


def follow(directory: Path, job: Job, meeting: Meeting | None = None) -> None:
    """Takes part in a check-up as a rank other than 0. The engine receives its steps from rank 0. Raises
    EngineError."""
    request = {"directory": str(directory), "steps": [], "job": asdict(job)}
    with closing(engine.run(request, meeting)) as events:
        for _ in events:
            pass


def measurements(plan: Plan, results: Sequence[Result], command: str | None = None) -> Measurements:
    """Combines RESULTS into cells, and adds the conditions of the measurement."""
    limited = {
        (result["id"], one["operation"]) for result in results for one in result["done"] if one["limited"]
    }
    notes = list(plan.notes)
    total = sum(len(result["done"]) for result in results)
    if limited:
        notes.append(
            f"{len(limited)} of {total} runs ended at their time limit, so they did less than planned"
        )
    if untimed := sum(one["seconds"] <= 0 for result in results for one in result["done"]):
        notes.append(f"{untimed} of {total} runs took no time by the clock, so they have no rate")
    protocol = Protocol(
        tool="iodock health",
        version=iodock.__version__,
        started=plan.started,
        finished=_now(),
        host=platform.node(),
        target=plan.directory,
        file_system=file_system_of(Path(plan.directory)),
        command=command,
        settings={
            "class": plan.name,
            "repeats": plan.repeats,
            "seed": plan.seed,
            "ranks": plan.ranks,
            "hosts": sorted({host for result in results for host in result.get("hosts", ())}),
            "cores": os.cpu_count(),
            "memory_bytes": memory_bytes(),
            "kernel": platform.release(),
        },
        notes=tuple(notes),
    )
    return Measurements(protocol, folded(plan, results))


def memory_bytes() -> int:
    """Returns the size of this machine's memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def file_system_of(directory: Path) -> str | None:
    """Returns the type of the file system from the kernel's list of mounts, or None if no mount contains
    DIRECTORY."""
    try:
        folder, device = str(directory.resolve()), directory.stat().st_dev
        found = mount_of(folder, mounts(), device)
    except OSError:
        return None
    return None if found is None else found.fs_type


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def check_directory(directory: Path) -> Path:
    """Returns the absolute path of DIRECTORY. Raises IodockError if it does not exist, or if the user may not
    create files there."""
    if not directory.is_dir():
        raise RequestError(f"{directory}: no such folder", "name a folder on the file system to measure")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise IodockError(
            f"{directory}: you may not write there", "name a folder of yours on that file system"
        )
    return directory.resolve()


def steps_left(plan: Plan, results: Sequence[Result]) -> Iterator[Step]:
    """Yields the steps of the plan that have no result yet."""
    over = {result["id"] for result in results}
    return (step for step in plan.steps if step.id not in over)


def waited(seconds: float) -> str:
    """Formats a duration, such as `40 s`, `3 min` or `1 h 30 min`."""
    if seconds < 100:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
