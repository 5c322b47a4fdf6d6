"""Stores the results of the engine's steps in a file during a check-up, and combines them into cells."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from iodock import _native
from iodock.file_system.health.busy import load_of
from iodock.file_system.health.classes import TESTS, Cell, Step
from iodock.file_system.health.measurements import Cache, Latency, Unit, repeated
from iodock.file_system.health.measurements import Cell as Measured
from iodock.shared.bounded import files
from iodock.shared.bounded.documents import from_json
from iodock.shared.bounded.limits import KEPT_RESULTS
from iodock.shared.errors import IodockError, RequestError

FORMAT = "iodock-health-partial-1"
_ORDER = (*TESTS, "workload")
_OPERATIONS = ("write", "read", "reread", "file-create", "file-stat", "file-open", "file-remove")
_QUANTILES = (0.5, 0.99, 0.999)

Result = Mapping[str, Any]
"""Result of a step, in the form of crates/iodock-load/src/result.rs."""


@dataclass(frozen=True)
class Plan:
    """Everything that was decided before the first step. A resumed run needs it to execute the remaining
    steps."""

    directory: str
    name: str
    """Name of the class: S, M, L or workload."""
    repeats: int
    seed: int
    ranks: int
    started: str
    steps: Sequence[Step]
    notes: tuple[str, ...] = ()


class Partial:
    """The file with partial results. It has the plan in its first line, and a line for each completed
    step."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._out: IO[str] | None = None

    def begin(self, plan: Plan) -> None:
        """Creates the file, and replaces that of an earlier run. Raises IodockError if the file can't be
        written, or if the existing file is not a file with partial results."""
        if os.path.lexists(self.path) and not self._is_own():
            raise IodockError(
                f"{self.path}: is not the saved state of an interrupted check-up, so it is not replaced",
                "remove it yourself, or choose where results are kept with -o",
            )
        try:
            self._out = self.path.open("w", encoding="utf-8")
            self._line({"format": FORMAT, **asdict(plan)})
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _is_own(self) -> bool:
        if self.path.is_symlink() or not self.path.is_file():
            return False
        with suppress(OSError, ValueError, IodockError), files.opened(self.path) as file:
            first = from_json(next(files.lines(file, self.path), b""))
            return isinstance(first, dict) and first.get("format") == FORMAT
        return False

    def go_on(self) -> tuple[Plan, list[Result]]:
        """Reads the plan and the results so far. Results of further steps are then appended. Raises
        RequestError if there is no file with partial results."""
        plan, results, length = _read(self.path)
        try:
            self._out = self.path.open("r+", encoding="utf-8")
            # If the previous run was killed while it wrote, the last line is incomplete and is cut off.
            self._out.truncate(length)
            self._out.seek(0, 2)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        return plan, results

    def add(self, result: Result) -> None:
        """Appends the result of one step. If writing fails, it raises OSError, and the file remains valid up
        to the previous step."""
        self._line(result)

    def _line(self, content: Mapping[str, Any]) -> None:
        assert self._out is not None
        self._out.write(json.dumps(content) + "\n")
        self._out.flush()

    def close(self, remove: bool) -> None:
        """Closes the file. REMOVE also removes it. The caller sets REMOVE when all steps were completed and
        their results are stored elsewhere."""
        if self._out is not None:
            self._out.close()
        if remove:
            self.path.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> IodockError:
    return IodockError(f"{path}: can't be written: {error.strerror}", "choose where results are kept with -o")


def _read(path: Path) -> tuple[Plan, list[Result], int]:
    try:
        content = files.content(path, KEPT_RESULTS)
    except FileNotFoundError as error:
        hint = "leave out --resume to begin a new run; -o must be the same as before"
        raise RequestError(f"{path}: there is no run to resume", hint) from error
    whole = content[: content.rfind(b"\n") + 1]
    try:
        first, *rest = (from_json(line) for line in whole.splitlines())
        plan = _plan_in(first)
    except (ValueError, KeyError, TypeError) as error:
        raise RequestError(
            f"{path}: is not the saved state of an interrupted check-up", "remove it"
        ) from error
    return plan, rest, len(whole)


def _plan_in(first: Mapping[str, Any]) -> Plan:
    if first["format"] != FORMAT:
        raise ValueError(first["format"])
    fields = {name: value for name, value in first.items() if name not in ("format", "steps", "notes")}
    steps = [Step(one["id"], Cell(**one["cell"])) for one in first["steps"]]
    return Plan(**fields, steps=steps, notes=tuple(first["notes"]))


def folded(plan: Plan, results: Iterable[Result]) -> tuple[Measured, ...]:
    """Combines the repeats of all steps into cells. The cells are sorted by test, variant, operation, size
    and processes."""
    cells = {step.id: step.cell for step in plan.steps}
    gathered: dict[tuple[Any, ...], list[tuple[Result, Mapping[str, Any]]]] = {}
    grid: dict[tuple[Any, ...], Cell] = {}
    for result in results:
        cell = cells[result["id"]]
        for done in result["done"]:
            key = (
                cell.test,
                cell.size_bytes,
                cell.processes,
                *sorted(cell.variant.items()),
                done["operation"],
            )
            grid[key] = cell
            gathered.setdefault(key, []).append((result, done))
    keys = sorted(
        gathered, key=lambda key: (_ORDER.index(key[0]), *key[3:-1], _place(key[-1]), key[1] or 0, key[2])
    )
    # If the clock shows no time for a repeat, it has no rate and is left out.
    timed = {key: [one for one in gathered[key] if one[1]["seconds"] > 0] for key in keys}
    return tuple(_measured(grid[key], timed[key]) for key in keys if timed[key])


def _place(operation: str) -> tuple[int, str]:
    known = _OPERATIONS.index(operation) if operation in _OPERATIONS else len(_OPERATIONS)
    return known, operation


def _measured(cell: Cell, several: Sequence[tuple[Result, Mapping[str, Any]]]) -> Measured:
    done = [one for _, one in several]
    moves = cell.pattern["kind"] == "data"
    unit = Unit.BYTES_PER_S if moves else Unit.OPERATIONS_PER_S
    counted = "bytes" if moves else "operations"
    values = [one[counted] / one["seconds"] for one in done]
    seconds = sum(one["seconds"] for one in done) / len(done)
    labels = {(one["cache"], one["cache_reason"]) for one in done}
    cache, reason = labels.pop() if len(labels) == 1 else _most_careful(labels)
    measured = Measured(
        test=cell.test,
        operation=done[0]["operation"],
        size_bytes=cell.size_bytes,
        processes=cell.processes,
        nodes=max(result["machines"] for result, _ in several),
        value=values[0],
        unit=unit,
        repeats=len(values),
        spread=None,
        cache=None if cache is None else Cache(cache),
        cache_reason=reason,
        latency_ns=_latency([one["latencies"] for one in done]),
        variant=dict(cell.variant),
        volume_bytes=round(sum(one["bytes"] for one in done) / len(done)) or None,
        seconds=seconds,
        load=load_of([result["busy"] for result, _ in several if result.get("busy")]),
    )
    return repeated(measured, values)


def _most_careful(labels: Iterable[tuple[str | None, str | None]]) -> tuple[str | None, str | None]:
    """Chooses the cache label of a cell whose repeats have different labels. Repeats without a label are
    ignored. If the others still differ, the label is `unknown`."""
    given = sorted((label, reason) for label, reason in labels if label is not None)
    if not given:
        return None, None
    different = {label for label, _ in given}
    if len(different) == 1:
        return given[0]
    return Cache.UNKNOWN.value, "repeats found the cache differently"


def _latency(several: Sequence[Mapping[str, Any]]) -> Latency | None:
    text = _native.load_merge([json.dumps(one) for one in several])
    merged = json.loads(text)
    count = merged["count"]
    if not count:
        return None
    p50, p99, p99_9 = _native.load_quantiles(text, list(_QUANTILES))
    return Latency(p50, p99, p99_9, merged["max_ns"], merged["min_ns"], merged["sum_ns"] / count, count)
