"""Compares runs before and after a change, or runs of a fast and a slow day."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from iodock.program.comparison import listing
from iodock.program.comparison.data import Change, Comparison, RunLabel, SizeChange, Work
from iodock.program.comparison.finding_changes import finding_changes
from iodock.program.comparison.listing import Table, table_of
from iodock.program.comparison.noise import least_of
from iodock.program.comparison.remarks import remarks_on
from iodock.program.comparison.source_lines import line_changes
from iodock.program.comparison.sums import RunSums, sums_of
from iodock.program.comparison.verdict import headline, sentences
from iodock.program.comparison.work import check, unequal_work, work_of
from iodock.program.store.engine import Engine
from iodock.shared.errors import RequestError
from iodock.shared.settings import Settings, load

MOST_FILES = 10
MOST_CALLS = 12
STORES_AT_ONCE = 2


def compare(
    before: Sequence[str],
    after: Sequence[str],
    *,
    per: str | None = None,
    settings: Settings | None = None,
    most_files: int = MOST_FILES,
    every_file: bool = False,
    by_pattern: bool = True,
) -> Comparison:
    """Returns the changes between the stores BEFORE and the stores AFTER. There are one or more stores on
    each side. PER is the unit of work, as in `--per`. EVERY_FILE adds the table of all files. With
    BY_PATTERN, files with similar names share a row. Raises StoreError, QueryError or RequestError."""
    chosen = settings or load()
    check(per)
    _check_distinct("before", before)
    _check_distinct("after", after)
    # The same store may be on both sides, but needs to be read only once.
    paths = list(dict.fromkeys((*before, *after)))
    # Stores are read in parallel: the engine runs without Python's lock, and reading one store would leave
    # cores idle.
    with ThreadPoolExecutor(STORES_AT_ONCE) as pool:
        read = dict(zip(paths, pool.map(lambda path: sums_of(path, chosen), paths), strict=True))
    sides = [read[path] for path in before], [read[path] for path in after]
    engine = Engine(None)
    try:
        return _compared(engine, *sides, per, most_files, every_file, by_pattern)
    finally:
        engine.close()


def _check_distinct(side: str, stores: Sequence[str]) -> None:
    """Raises RequestError if a side contains the same run twice. A copy of a run would make the spread of the
    runs seem smaller than it is."""
    seen: dict[str, str] = {}
    for store in stores:
        place = os.path.realpath(store)
        if place in seen:
            message = (
                f"{store} is named twice among the runs before"
                if side == "before"
                else f"{store} is named twice among the runs after"
            )
            raise RequestError(message, "give each run once: a copy does not count as a second run")
        seen[place] = store


def _compared(
    engine: Engine,
    before: Sequence[RunSums],
    after: Sequence[RunSums],
    per: str | None,
    most_files: int,
    every_file: bool,
    by_pattern: bool,
) -> Comparison:
    work = work_of(per, before, after)
    time, timed = _time(before, after)
    units = (*work.before, *work.after) if work else (1.0,) * (len(before) + len(after))
    least = least_of(time, before, after, units)
    table = table_of(engine, before, after, timed, units, least, by_pattern)
    totals = _totals(table, before, after, work)
    faster, slower = (listing.changed_files(table, most_files, faster) for faster in (True, False))
    remarks = [*(unequal_work(before, after) if per is None else ()), *remarks_on(before, after)]
    return Comparison(
        before=tuple(map(_label, before)),
        after=tuple(map(_label, after)),
        headline=headline(totals, work),
        sentences=tuple(sentences(totals, faster, slower, time)),
        remarks=tuple(remarks),
        time=time,
        work=work,
        totals=totals,
        parts=listing.parts(table),
        calls=listing.calls(table, MOST_CALLS),
        faster=faster,
        slower=slower,
        same_files=listing.unchanged_files(table),
        noise=listing.noise(table),
        sizes=tuple(_sizes(table, before, after, work)),
        findings=finding_changes(before, after, work),
        lines=line_changes(before, after, units, "total_time_ns" if time else "count", least, most_files),
        files=tuple(listing.every_file(table)) if every_file else (),
    )


def _time(before: Sequence[RunSums], after: Sequence[RunSums]) -> tuple[str | None, list[bool]]:
    """Returns the kind of all times (`elapsed` or `system-cpu`), or None if they are not comparable. Also
    returns for each run whether it has times of the most useful kind."""
    kinds = [run.time for run in (*before, *after)]
    kind = next((kind for kind in ("elapsed", "system-cpu") if kind in kinds), None)
    timed = [kind is not None and one == kind for one in kinds]
    return kind if all(timed) else None, timed


def _totals(
    table: Table, before: Sequence[RunSums], after: Sequence[RunSums], work: Work | None
) -> Mapping[str, Change]:
    units = (*work.before, *work.after) if work else (1.0,) * table.runs
    runs = [*before, *after]
    of_runs = {
        # A run of length 0 has a clock that is of no use, so its length counts as unknown.
        "wall_time_ns": [run.manifest.wall_ns or None for run in runs],
        "io_time_ns": [run.overview["io_time_ns"] for run in runs],
        "waiting_time_ns": [run.overview["waiting_time_ns"] for run in runs],
        "rest_time_ns": [_rest(run) for run in runs],
        "files": [run.work["files"] for run in runs],
    }
    changes = {
        name: _change(
            [None if one is None else one / unit for one, unit in zip(values, units, strict=True)], table
        )
        for name, values in of_runs.items()
    }
    return {**changes, **listing.totals(table)}


def _change(values: Sequence[float | None], table: Table) -> Change:
    from iodock.program.comparison.significance import change

    return change(values[: table.before], values[table.before :])


def _rest(run: RunSums) -> int | None:
    wall, io, waiting = (run.manifest.wall_ns, run.overview["io_time_ns"], run.overview["waiting_time_ns"])
    return None if not wall or io is None else max(0, wall - io - (waiting or 0))


def _label(run: RunSums) -> RunLabel:
    return RunLabel(
        store=run.name,
        command=run.command,
        captured=str(run.captured.get("how") or ""),
        losses=run.manifest.losses,
    )


def _sizes(
    table: Table, before: Sequence[RunSums], after: Sequence[RunSums], work: Work | None
) -> Iterator[SizeChange]:
    units = (*work.before, *work.after) if work else (1.0,) * table.runs
    found = [{(row["direction"], row["size_bin"]): row for row in run.sizes} for run in (*before, *after)]
    for direction, bin_ in sorted({key for sizes in found for key in sizes}):
        rows = [sizes.get((direction, bin_), {}) for sizes in found]
        count, time = (
            [(row.get(name) or 0.0) / unit for row, unit in zip(rows, units, strict=True)]
            for name in ("count", "total_time_ns")
        )
        yield SizeChange(
            direction="read" if direction == 1 else "write",
            upper_bytes=0 if bin_ < 0 else 1 << bin_,
            count=table.change(count),
            total_time_ns=table.change(time, "total_time_ns"),
        )
