"""Combines rows of sacct into runs of jobs. The rows of a job need not be adjacent, and a requeued job has
several runs (`sacct -D`), each with a row and steps of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the file."""

    line: int
    fields: tuple[str, ...]
    """The required columns in order. The first one is the job's id, with `.STEP` for a step."""
    started: str
    """Start and submission time as they are written; empty if the columns are missing."""
    running: bool

    @property
    def job(self) -> str:
        """The id of its job."""
        return self.fields[0].partition(".")[0]

    @property
    def is_step(self) -> bool:
        """Whether it is a step of a job."""
        return "." in self.fields[0]


@dataclass(slots=True)
class Run:
    """One run of one job while its rows are being read."""

    line: int
    row: Row | None = None
    steps: dict[str, Row] = field(default_factory=dict)
    """The steps of the run, by their ids."""

    @property
    def running(self) -> bool:
        """Whether one of the run's rows says that it has not ended."""
        rows = [*self.steps.values(), *([self.row] if self.row else [])]
        return any(one.running for one in rows)


@dataclass(slots=True)
class Job:
    """All runs that have the same job id."""

    runs: list[Run] = field(default_factory=list)

    def add(self, row: Row) -> bool:
        """Adds a row. Returns False if it is a duplicate."""
        return self._add_step(row) if row.is_step else self._add_run(row)

    def _add_run(self, row: Row) -> bool:
        for run in self.runs:
            if run.row is None:
                # The steps of this run came before its own row.
                run.row = row
                return True
            if _is_same(run.row, row):
                # If there are files of several months, a job that ran across the end of a month is in both
                # files.
                is_newer = run.row.running and not row.running
                run.row = row if is_newer else run.row
                return is_newer
        self.runs.append(Run(row.line, row))
        return True

    def _add_step(self, row: Row) -> bool:
        name = row.fields[0]
        if any(name in run.steps and _is_same(run.steps[name], row) for run in self.runs):
            return False
        started = [run for run in self.runs if run.row and run.row.started and run.row.started <= row.started]
        if row.started and started:
            # A step belongs to the run that began last before it.
            chosen = max(started, key=lambda run: run.row.started if run.row else "")
        else:
            chosen = next((run for run in reversed(self.runs) if name not in run.steps), Run(row.line))
        if not any(chosen is run for run in self.runs):
            self.runs.append(chosen)
        is_new = name not in chosen.steps
        if is_new or chosen.steps[name].running:
            chosen.steps[name] = row
        return is_new


def _is_same(one: Row, other: Row) -> bool:
    """Whether two rows of one id belong to the same run: they have the same start, or the same content."""
    if one.started and other.started:
        return one.started == other.started
    return one.fields == other.fields


def last_lines(jobs: Iterable[tuple[int, str]]) -> dict[str, int]:
    """Maps jobs whose rows are not adjacent to the line of their last row. JOBS: line and job of every
    row."""
    seen: set[str] = set()
    scattered: dict[str, int] = {}
    last = ""
    for line, job in jobs:
        if job in scattered or (job != last and job in seen):
            scattered[job] = line
        elif job != last:
            seen.add(job)
        last = job
    return scattered
