"""Maintains a monitor store: sums finer rows into coarser ones, merges small files and removes old ones.

Every step replaces the catalogue once, so a concurrent query sees either all files from before the step or
all files from after it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from iodock.centre.store import MOMENTS, RESOLUTIONS, TABLES, Catalogue, MonitorStore, StoredFile, counters

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
STEPS = {"minute": 60 * SECOND, "ten_minutes": 600 * SECOND}
"""Length of the periods whose finer rows are summed, ns."""
PERIODS = {
    "fine": (3600 * SECOND,),
    "minute": (3600 * SECOND, DAY),
    "ten_minutes": (3600 * SECOND, DAY, 30 * DAY),
}
"""Lengths of periods, ns. After the end of a period, the files that end in it are merged. Rows of single
moments are not summed, and are merged as in the coarsest resolution."""
_MOST_ROWS = 20_000_000
"""Largest number of rows of a merged file. With larger files merging takes long, and a query about an hour
would read a month."""
_MANY = 8
_SMALL_ROWS = 250_000
"""If a period that is not over has `_MANY` files with fewer rows than this, they are merged: a query takes as
long to open a file as to read some ten thousand rows."""
_LATE = 900 * SECOND
"""Time after a period's end before its files are merged: by then most late data has arrived."""
_MOST = 1 << 62
"""Sums are cut at this value."""
_PLACE = ("host", "source", "file_system", "target")
_OWNER = ("job", "user", "session", "command", "known_by")
_METRIC = ("metric", "unit", "bucket", "is_level")
_ORDER = {
    "job_io": "job, user, command, file_system, target, end_ts",
    "targets": "file_system, target, metric, bucket, end_ts",
    "losses": "ts",
    "events": "ts, host",
    "job_names": 'job, "user", ts',
}
_TIMES = {"losses": ("ts", "ts"), "events": ("ts", "last_ts"), "job_names": ("ts", "ts")}

New = tuple[str, str, str, int, int, int, bool]
"""A new file: table, resolution, name, begin, end, number of rows, and whether its rows are already summed
into coarser ones."""


@dataclass(frozen=True)
class Keep:
    """Retention times of rows in days, by resolution or table."""

    fine: float = 1
    minute: float = 7
    ten_minutes: float = 400
    job_names: float = 400
    events: float = 400

    def until(self, table: str, resolution: str, now: int) -> int:
        """Returns the time before which rows are no longer kept, ns since the epoch."""
        own = {"job_names": self.job_names, "events": self.events, "losses": self.ten_minutes}
        days: float = own.get(table, getattr(self, resolution))
        return now - int(days * DAY)


class Writer(Protocol):
    """The interface of the object that writes the catalogue. `_native.MonitorIntake` implements it."""

    def new_file(self, table: str, resolution: str, time: int) -> tuple[str, Path]:
        """Returns the name of a new file in the catalogue and its path. TIME is in ns since the epoch."""

    def replace(self, replaced: list[str], rolled: list[str], new: list[New]) -> None:
        """Changes the catalogue once. REPLACED has the files to remove, ROLLED the files whose rows are now
        summed into coarser ones, and NEW the new files."""


def roll(store: MonitorStore, writer: Writer, now: int) -> int:
    """Sums the rows of `job_io` and `targets` that are not yet summed into the next coarser resolution.
    Damaged files are left out. Rows of minutes wait until the oldest of them is an hour old. Returns the
    number of rows read. NOW is in ns since the epoch. Raises StoreError."""
    rows = 0
    for table in ("job_io", "targets"):
        for finer, coarser in pairwise(RESOLUTIONS):
            unrolled = (file for file in store.catalogue.of(table, finer) if not file.rolled)
            files = [file for file in unrolled if not store.is_damaged(file)]
            if files and (finer == "fine" or now - min(file.begin for file in files) >= 3600 * SECOND):
                _roll(store, writer, table, finer, coarser, files)
                rows += sum(file.rows for file in files)
    return rows


def _roll(
    store: MonitorStore, writer: Writer, table: str, finer: str, coarser: str, files: list[StoredFile]
) -> None:
    names = [file.name for file in files]
    new = []
    if len(files) > 1:
        merged = _written(store, writer, table, finer, _sorted(table, store.rows(files)), files)
        new += [(*entry, True) for entry in merged]
    summed = _summed(table, store.rows(files), STEPS[coarser])
    new += [(*entry, False) for entry in _written(store, writer, table, coarser, summed, files)]
    replaced, rolled = (names, []) if len(files) > 1 else ([], names)
    writer.replace(replaced, rolled, new)


def _written(
    store: MonitorStore, writer: Writer, table: str, resolution: str, sql: str, files: list[StoredFile]
) -> Iterator[tuple[str, str, str, int, int, int]]:
    name, path = writer.new_file(table, resolution, max(file.end for file in files))
    times = _TIMES.get(table, ("begin_ts", "end_ts"))
    written = store.write(sql, path, times)
    if written:
        rows, begin, end = written
        yield table, resolution, name, begin, end, rows


def _sorted(table: str, rows: str) -> str:
    if table == "job_names":
        # Every node of a job reports the job's name, and repeats it with each full reading. Only the first
        # report is kept.
        rows = (
            'SELECT min(ts) AS ts, arg_min(host, ts) AS host, job, "user", name '
            f'FROM ({rows}) GROUP BY job, "user", name'
        )
    return f"SELECT * FROM ({rows}) ORDER BY {_ORDER[table]}"


def _summed(table: str, rows: str, step: int) -> str:
    """Returns SQL that combines rows of one owner (or metric) on one target that end in the same step. STEP
    is in ns. A row that is longer than the step, because the agent was not running, stays separate, because
    it does not say at which time within the row the growth happened."""
    keys = (*_PLACE, *(_OWNER if table == "job_io" else _METRIC))
    columns = ", ".join(f'"{key}"' for key in keys)
    return (
        f"SELECT min(begin_ts) AS begin_ts, max(end_ts) AS end_ts, {columns}, {_sums(table)} FROM ({rows}) "
        f"GROUP BY (end_ts - 1) // {step}, CASE WHEN end_ts - begin_ts > {step} THEN begin_ts END, "
        f"{columns} "
        f"ORDER BY {_ORDER[table]}"
    )


def _sums(table: str) -> str:
    """Returns SQL for the columns after the keys, which are sums, or means for levels."""
    if table == "job_io":
        sums = (_bounded(f'sum("{name}")') + f' AS "{name}"' for name in counters())
        return ", ".join(["bool_and(exact) AS exact", *sums])
    level, total = _bounded("round(avg(value))"), _bounded("sum(value)")
    value = f"CASE WHEN is_level THEN {level} ELSE {total} END"
    return f"{value} AS value, max(greatest) AS greatest, bool_and(exact) AS exact"


def _bounded(sum_of_it: str) -> str:
    """Returns SQL that limits a sum to `_MOST`. Without the limit, an absurd value of a damaged counter would
    overflow the column and stop the upkeep of all counters."""
    return f"least({sum_of_it}, {_MOST})::BIGINT"


def tidy(store: MonitorStore, writer: Writer, now: int) -> int:
    """Merges the files of each completed period. If a period that is not over has many small files, these are
    merged as well. Damaged files are left out. Returns the number of files by which the store shrank. Raises
    StoreError."""
    fewer = 0
    for table in TABLES:
        for resolution in RESOLUTIONS:
            for period in PERIODS[RESOLUTIONS[-1] if table in MOMENTS else resolution]:
                for group in _over(store.catalogue, table, resolution, period, now):
                    files = [file for file in group if not store.is_damaged(file)]
                    if len(files) > 1:
                        fewer += len(files) - 1
                        _merge(store, writer, table, resolution, files)
    return fewer


def _over(
    catalogue: Catalogue, table: str, resolution: str, period: int, now: int
) -> Iterable[list[StoredFile]]:
    groups: dict[tuple[int, bool], list[StoredFile]] = defaultdict(list)
    for file in catalogue.of(table, resolution):
        groups[file.end // period, file.rolled].append(file)
    for (number, is_rolled), group in sorted(groups.items()):
        # If the files are not summed yet, `roll` will merge them when it sums them.
        is_settled = is_rolled or resolution == RESOLUTIONS[-1] or table in MOMENTS
        if not is_settled or now <= (number + 1) * period + _LATE:
            group = [file for file in group if file.rows < _SMALL_ROWS]
            if len(group) < _MANY:
                continue
        yield from (files for files in _in_parts(group) if len(files) > 1)


def _in_parts(files: list[StoredFile]) -> Iterator[list[StoredFile]]:
    """Splits files into groups in the order of time. Each group has at most _MOST_ROWS rows, or is a single
    file."""
    part: list[StoredFile] = []
    for file in sorted(files, key=lambda file: (file.end, file.name)):
        if part and sum(other.rows for other in part) + file.rows > _MOST_ROWS:
            yield part
            part = []
        part.append(file)
    yield part


def _merge(store: MonitorStore, writer: Writer, table: str, resolution: str, files: list[StoredFile]) -> None:
    names = [file.name for file in files]
    sql = _sorted(table, store.rows(files))
    merged = _written(store, writer, table, resolution, sql, files)
    writer.replace(names, [], [(*entry, files[0].rolled) for entry in merged])


def expire(store: MonitorStore, writer: Writer, keep: Keep, now: int) -> int:
    """Removes files if all their rows are older than the retention time. Returns the number of removed files.
    Raises StoreError."""
    old = [
        file.name
        for (table, resolution), files in store.catalogue.files.items()
        for file in files
        if file.end < keep.until(table, resolution, now)
        # A file whose rows are not summed yet is kept, because no coarser file contains them.
        and (file.rolled or resolution == RESOLUTIONS[-1] or table in MOMENTS)
    ]
    if old:
        writer.replace(old, [], [])
    return len(old)
