"""Collects the sums of one run that a comparison needs: by file and call, and by size. It also adds the
diagnosis of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iodock.program.analyses.overview import PART
from iodock.program.diagnosis import diagnosis_of, facts_of
from iodock.program.findings import Diagnosis
from iodock.program.relations.filters import PATH_KINDS
from iodock.program.relations.io_time import IO_CALLS
from iodock.program.relations.sites import BASE, LINES, keep_lines
from iodock.program.store import Manifest, Store
from iodock.shared.engine.sql import quoted
from iodock.shared.settings import Settings

PLACED = f"kind IN ({', '.join(map(quoted, PATH_KINDS))})"
# A call on two files has two rows. Only the first one counts, so that sums over files equal sums over calls.
_FIRST = "u.side IN (0, 1, 3)"
_SUMS = f"""SELECT u.file_id, c.name AS call, c.class, {PART} AS part,
  CAST(coalesce(sum(u.time_ns) FILTER (WHERE {_FIRST}), 0) AS DOUBLE) AS total_time_ns,
  CAST(coalesce(sum(u.count) FILTER (WHERE {_FIRST}), 0) AS DOUBLE) AS count,
  CAST(coalesce(sum(u.count) FILTER (WHERE {_FIRST} AND u.errno_id IS NOT NULL), 0) AS DOUBLE) AS failed,
  CAST(coalesce(sum(u.bytes) FILTER (WHERE u.direction = 1), 0) AS DOUBLE) AS read_bytes,
  CAST(coalesce(sum(u.bytes) FILTER (WHERE u.direction = 2), 0) AS DOUBLE) AS written_bytes
FROM uses u JOIN calls c ON c.id = u.call_id LEFT JOIN files f ON f.file_id = u.file_id
WHERE u.file_id IS NOT NULL OR {IO_CALLS} GROUP BY ALL"""
_SIZES = """SELECT direction, size_bin, CAST(sum(count) AS DOUBLE) AS count,
  CAST(sum(time_ns) AS DOUBLE) AS total_time_ns FROM transfers GROUP BY ALL"""
# This SQL computes the amount of work of the run: the number of files that existed, the bytes moved, and the
# sizes of the files that the run read.
_WORK = f"""WITH used AS (SELECT file_id, sum(count) FILTER (WHERE errno_id IS NULL) AS good,
    sum(bytes) FILTER (WHERE direction = 1) AS read, sum(bytes) FILTER (WHERE direction = 2) AS written
  FROM uses GROUP BY 1)
SELECT count(*) AS files, CAST(coalesce(sum(u.read), 0) AS BIGINT) AS read_bytes,
  CAST(coalesce(sum(u.written), 0) AS BIGINT) AS written_bytes,
  CAST(coalesce(sum(f.size_bytes) FILTER (WHERE u.read > 0), 0) AS BIGINT) AS size_bytes,
  CAST(coalesce(sum(u.read) FILTER (WHERE f.size_bytes IS NOT NULL), 0) AS BIGINT) AS sized_read_bytes
FROM used u JOIN files f ON f.file_id = u.file_id WHERE u.good > 0 AND {PLACED}"""


_LINES = f"""SELECT {BASE.format("l.file")} AS file, l.function, l.source_line AS line,
  list(DISTINCT c.name) AS calls,
  CAST(coalesce(sum(e.dur) FILTER (WHERE e.side IN (0, 1, 3)), 0) AS DOUBLE) AS total_time_ns,
  CAST(count(*) FILTER (WHERE e.side IN (0, 1, 3)) AS DOUBLE) AS count,
  CAST(count(e.errno_id) FILTER (WHERE e.side IN (0, 1, 3)) AS DOUBLE) AS failed,
  CAST(coalesce(sum(e.bytes) FILTER (WHERE e.direction = 1), 0) AS DOUBLE) AS read_bytes,
  CAST(coalesce(sum(e.bytes) FILTER (WHERE e.direction = 2), 0) AS DOUBLE) AS written_bytes
FROM events e JOIN {LINES} l ON l.site_id = e.site_id JOIN calls c ON c.id = e.call_id
WHERE l.source_line IS NOT NULL AND l.file IS NOT NULL AND e.file_id IS NOT NULL GROUP BY 1, 2, 3"""


@dataclass(frozen=True, slots=True)
class RunSums:
    """Holds the sums of one run."""

    name: str
    manifest: Manifest
    overview: Mapping[str, Any]
    """Numbers of the whole run, such as wall time and I/O time, from the analysis `overview`."""
    time: str | None
    """Kind of times: `elapsed` or `system-cpu`; None: no call has a time."""
    work: Mapping[str, int]
    """Amounts of work, for files on a file system that existed: `files`, `read_bytes`, `written_bytes`,
    `size_bytes` (of files read), `sized_read_bytes` (read from files whose size is known)."""
    diagnosis: Diagnosis
    files: pa.Table
    """`file_id`, `name`, `pattern` and `kind` of every file."""
    sums: pa.Table
    """`MEASURES`, by `file_id`, `call`, `class` and `part`."""
    sizes: tuple[Mapping[str, Any], ...]
    """`count` and `total_time_ns`, by `direction` and `size_bin` (see the derived table `transfers`)."""
    lines: tuple[Mapping[str, Any], ...] = ()
    """Sums of calls on files by `file` (without its folder), `function` and `line`: `calls` (their names) and
    `MEASURES`."""

    @property
    def captured(self) -> Mapping[str, Any]:
        """Returns the part of the manifest that says how the run was captured: `how`, `command` and
        others."""
        found: Mapping[str, Any] = self.manifest.raw.get("captured") or {}
        return found

    @property
    def command(self) -> str:
        """Returns the command line, or an empty text if it is not known."""
        return " ".join(map(str, self.captured.get("command") or []))


def sums_of(path: str, settings: Settings) -> RunSums:
    """Computes the sums of one store. Raises StoreError or QueryError."""
    with Store.open(path) as store:
        facts = facts_of(store, settings)
        diagnosis = diagnosis_of(facts)
        facts.profile.need(("uses", "transfers"))
        (work,) = store.rows(_WORK)
        return RunSums(
            name=store.name,
            manifest=store.manifest,
            overview=facts.overview,
            time=_time(store),
            work=work,
            diagnosis=diagnosis,
            files=store.table("SELECT file_id, name, coalesce(pattern, name) AS pattern, kind FROM files"),
            sums=store.table(_SUMS),
            sizes=tuple(store.rows(_SIZES)),
            lines=_lines(store),
        )


def _lines(store: Store) -> tuple[Mapping[str, Any], ...]:
    if not store.rows_of("sites"):
        return ()
    keep_lines(store)
    return tuple(store.rows(_LINES))


def _time(store: Store) -> str | None:
    if store.manifest.durations:
        return "elapsed"
    # The store has no durations. In this case `uses` has times only if the source is truss -E, which reports
    # CPU time.
    timed = store.rows("SELECT 1 FROM uses WHERE time_ns IS NOT NULL LIMIT 1")
    return "system-cpu" if timed else None
