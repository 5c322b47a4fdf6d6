"""Combines rows of sacct into runs of jobs. The rows of a job need not be adjacent. A job that was requeued
has several runs (`sacct -D`), each with its own row and steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Row(NamedTuple):
    """Holds one row of the file."""

    line: int
    fields: tuple[str, ...]
    """The required columns in order. The first one is the job's id, with `.STEP` for a step."""
    started: str
    """Start and submission time as they are written; empty if the columns are missing."""
    running: bool

    @property
    def job(self) -> str:
        """Returns the id of the job that the row belongs to."""
        return self.fields[0].partition(".")[0]

    @property
    def is_step(self) -> bool:
        """Returns whether the row is about a step of a job."""
        return "." in self.fields[0]


@dataclass(slots=True)
class Run:
    """Holds one run of a job, to which rows are added while the file is read."""

    line: int
    row: Row | None = None
    steps: dict[str, Row] = field(default_factory=dict)
    """The steps of the run, by their ids."""

    @property
    def running(self) -> bool:
        """Returns whether one of the run's rows says that it has not ended."""
        rows = [*self.steps.values(), *([self.row] if self.row else [])]
        return any(one.running for one in rows)


@dataclass(slots=True)
class Job:
    """Holds all runs that have the same job id."""

    runs: list[Run] = field(default_factory=list)

    def add(self, row: Row) -> bool:
        """Adds a row to the run that it belongs to. Returns False if the row is a duplicate."""
        return self._add_step(row) if row.is_step else self._add_run(row)

    def _add_run(self, row: Row) -> bool:
        for run in self.runs:
            if run.row is None:
                # This run has steps, but no row of its own yet. The row is the run's.
                run.row = row
                return True
            if _is_same(run.row, row):
                # A job that ran across the end of a month is in the files of both months. Its two rows have
                # the same start. A row that says that the job ended replaces a row of the running job.
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
            # Of the runs that began before the step, the step belongs to the one that began last.
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
    """Returns whether two rows with the same id belong to the same run. They do if they have the same start,
    or, without start times, the same content."""
    if one.started and other.started:
        return one.started == other.started
    return one.fields == other.fields


def last_lines(jobs: Iterable[tuple[int, str]]) -> dict[str, int]:
    """Returns the jobs whose rows are not adjacent, with the line number of the last row of each. JOBS are
    the line number and job of every row."""
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
