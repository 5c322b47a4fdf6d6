"""Makes the table of jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa

from iodock.program.jobs import rows
from iodock.program.jobs.found import Found, find
from iodock.program.relations.ordering import ordered
from iodock.shared.answer import Answer, Column
from iodock.shared.errors import RequestError

COLUMNS = (
    Column("log", "str", None, "key", "path of the log or store, relative to the given folder"),
    Column("job", "str", None, "key", "id of the job, where known"),
    Column("user_id", "int", None, "detail", "number of the user, in logs of Darshan", importance="usual"),
    Column("executable", "str", None, "key", "the program"),
    Column("processes", "int", None, "measure", "processes of the job, if known"),
    Column(
        "start_ts",
        "int",
        "ns",
        "time",
        "start of the job, ns since the epoch",
        importance="usual",
        own_heading="start",
    ),
    Column(
        "run_time_ns",
        "int",
        "ns",
        "measure",
        "duration of the run",
        importance="first",
        own_heading="run time",
    ),
    Column("read_bytes", "int", "bytes", "measure", "bytes read by POSIX calls and C streams"),
    Column("written_bytes", "int", "bytes", "measure", "bytes written by them"),
    Column(
        "io_share",
        "float",
        None,
        "measure",
        "share of the run time in I/O: for counters the mean of its processes (POSIX, C streams; MPI-IO "
        "for files that it used), for calls the time in which at least one process was in I/O; 0 to 1, "
        "more if threads of a process were in I/O at the same time",
        own_heading="share in I/O",
    ),
    Column("files", "int", "files", "measure", "different files that were counted"),
    Column("losses", "str", None, "detail", "missing data, by its name in iodock explain", "first"),
    Column("problem", "str", None, "detail", "reason why nothing could be read", importance="first"),
)
DOC = """A row for each job of a folder and the folders in it: logs of Darshan, which are read where they are,
and stores. Values that a log does not have are empty. A damaged log is a row with the reason, or with what is
missing. In logs, single accesses (DXT), heatmaps and layouts are skipped, and not checked for damage."""
_TYPES = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
_SCHEMA = pa.schema([(column.name, _TYPES[column.type]) for column in COLUMNS])

Tell = Callable[[int, int], None]
"""Reports progress: called with the number of finished jobs and the number of all jobs."""


def jobs_of(folder: Path, options: dict[str, Any], tell: Tell = lambda done, of: None) -> Answer:
    """Returns the jobs below a folder, sorted by the option `sort` and limited by `top`. Raises RequestError
    if there are none."""
    found = find(folder)
    of = len(found.logs) + len(found.stores)
    if not of and not found.unread:
        message = f"{folder}: holds no log of Darshan and no store"
        raise RequestError(message, "logs must end in .darshan, or be the text of darshan-parser")
    listed = []
    for row in _rows(folder, found):
        listed.append(row)
        tell(len(listed), of)
    table = pa.Table.from_pylist(listed, schema=_SCHEMA)
    notes = [f"{found.others:,} other files are not logs of Darshan"] if found.others else []
    failed = sum(1 for row in listed if "problem" in row)
    if failed:
        notes.append(f"{failed:,} of {len(listed):,} could not be read: see problem")
    answer = Answer(
        analysis="jobs",
        title="Jobs",
        columns=COLUMNS,
        table=table,
        clock="epoch",
        source={},
        notes=tuple(notes),
        keys=("log",),
        options={name: value for name, value in options.items() if value is not None},
    )
    return ordered(answer, options)


def _rows(folder: Path, found: Found) -> Iterator[dict[str, Any]]:
    def named(path: Path, row: dict[str, Any]) -> dict[str, Any]:
        # The name of a file may contain any bytes, but text columns must be UTF-8.
        name = os.fsencode(os.path.relpath(path, folder)).decode("utf-8", "backslashreplace")
        return {"log": name, **row}

    # Logs are read in parallel, because the Rust code that reads them runs without Python's lock.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from map(named, found.logs, pool.map(rows.of_log, found.logs))
    yield from map(named, found.stores, map(rows.of_store, found.stores))
    yield from (named(path, rows.of_problem(reason)) for path, reason in found.unread)
