"""Summaries of the coarsest files, for questions over weeks: what file systems did in every ten minutes, and
owners in every hour.

A summary belongs to one file and never changes, as its file does not: `STORE/summaries/KIND/FILE.parquet`. A
file without one is read itself, so nothing is wrong while one is missing, only slower."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from iodock.errors import StoreError
from iodock.monitor.questions.counted import SERVERS, metadata, of_place
from iodock.monitor.questions.spans import HOUR, SECOND, Span
from iodock.store.monitored import MonitorStore, MonitorTables, StoredFile
from iodock.store.need import EVERYTHING, Need

COARSEST = "ten_minutes"
STEP = 600 * SECOND
_MOVED = ("read_bytes", "write_bytes")
_OF_OWNERS = (*_MOVED, "reads", "writes", "call_read_bytes", "call_write_bytes")


def _systems(rows: str) -> str:
    """begin_ts, end_ts (ten minutes), file_system, exact, read_bytes, write_bytes, metadata: of servers."""
    sums = ", ".join(f'sum("{name}" * share)::DOUBLE AS "{name}"' for name in (*_MOVED, "metadata"))
    return f"""
        SELECT step * {STEP} AS begin_ts, (step + 1) * {STEP} AS end_ts, file_system,
            bool_and(exact) AS exact, {sums}
        FROM (
            SELECT *, (least(end_ts, (step + 1) * {STEP}) - greatest(begin_ts, step * {STEP}))
                / greatest(end_ts - begin_ts, 1) AS share
            FROM (
                SELECT least(begin_ts, end_ts - 1) AS begin_ts, end_ts, file_system, exact,
                    read_bytes, write_bytes, {metadata()} AS metadata,
                    unnest(range(least(begin_ts, end_ts - 1) // {STEP}, (end_ts - 1) // {STEP} + 1)) AS step
                FROM ({rows}) WHERE {of_place(SERVERS)} AND file_system IS NOT NULL
            )
        ) GROUP BY step, file_system
    """


def _owners(rows: str) -> str:
    """begin_ts, end_ts (first and last of the rows that end in one hour), host, source, file_system, job,
    user, session, command, exact and sums."""
    keys = 'host, source, file_system, job, "user", session, command'
    sums = ", ".join(f'sum("{name}")::BIGINT AS "{name}"' for name in _OF_OWNERS)
    return f"""
        SELECT min(begin_ts) AS begin_ts, max(end_ts) AS end_ts, {keys}, bool_and(exact) AS exact, {sums},
            sum({metadata()})::BIGINT AS metadata
        FROM (SELECT * REPLACE (CASE WHEN {of_place(SERVERS)} THEN NULL ELSE host END AS host) FROM ({rows}))
        GROUP BY (end_ts - 1) // {HOUR}, {keys} ORDER BY job, end_ts
    """


KINDS: dict[str, Callable[[str], str]] = {"systems": _systems, "owners": _owners}
"""Kind -> the SELECT that makes it of a file's rows."""


def summarise(store: MonitorStore) -> int:
    """Makes the summaries that are missing and removes those whose file is gone. Returns how many were made.
    One process only: the collector. Raises StoreError."""
    made, wanted = 0, set()
    for file in store.catalogue.of("job_io", COARSEST):
        for kind, select in KINDS.items():
            path = _path(store, kind, file)
            wanted.add(path)
            if not path.exists():
                made += _written(store, select(store.rows([file.name])), path)
    for path in (store.folder / "summaries").glob("*/*"):
        if path not in wanted:
            path.unlink(missing_ok=True)
    return made


def _written(store: MonitorStore, sql: str, path: Path) -> int:
    """A summary is there whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        begun = path.with_suffix(".part")
        if store.write(sql, begun) is None:
            return 0
        begun.rename(path)
    except OSError as error:
        raise StoreError(f"{path}: {error}") from error
    return 1


def _path(store: MonitorStore, kind: str, file: StoredFile) -> Path:
    return store.folder / "summaries" / kind / file.name.replace("/", "-")


def serve(store: MonitorTables, resolution: str) -> bool:
    """Are there summaries, and are they fine enough for a question at this resolution?"""
    is_kept = isinstance(store, MonitorStore) and (store.folder / "summaries").exists()
    return is_kept and resolution == COARSEST


def asked(
    store: MonitorTables, kind: str, within: Span, sql: Callable[[str], str], need: Need = EVERYTHING
) -> pa.Table:
    """The answer to a question over the rows of a kind; SQL gets a FROM clause. Raises StoreError,
    QueryError."""
    if not isinstance(store, MonitorStore):
        rows = f"({KINDS[kind]('SELECT * FROM job_io')})"
        return store.table(sql(rows), begin=within.begin, end=within.end, resolution=COARSEST, need=need)
    try:
        return _asked(store, kind, within, sql)
    except StoreError:
        # A file that was replaced since the catalogue was read.
        return _asked(store, kind, within, sql)


def _asked(store: MonitorStore, kind: str, within: Span, sql: Callable[[str], str]) -> pa.Table:
    return store.table(
        sql(_rows(store, kind, within)), begin=within.begin, end=within.end, resolution=COARSEST
    )


def _rows(store: MonitorStore, kind: str, within: Span) -> str:
    """Of summaries where there are some, else of the files."""
    files = store.catalogue.chosen("job_io", COARSEST, within.begin, within.end)
    coarse = {file.name for file in store.catalogue.of("job_io", COARSEST)}
    paths = {file.name: _path(store, kind, file) for file in files if file.name in coarse}
    there = {name: path for name, path in paths.items() if path.exists()}
    plain = [file.name for file in files if file.name not in there]
    parts = [store.rows([str(path.relative_to(store.folder)) for path in there.values()])] if there else []
    parts += [KINDS[kind](store.rows(plain))] if plain else []
    if not parts:
        parts = [KINDS[kind]("SELECT * FROM job_io")]
    together = " UNION ALL BY NAME ".join(f"SELECT * FROM ({part})" for part in parts)
    return f"(SELECT * FROM ({together}) WHERE end_ts > {within.begin} AND begin_ts <= {within.end})"
