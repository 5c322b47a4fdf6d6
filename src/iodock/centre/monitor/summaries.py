"""Computes summaries of a store's files, which make queries over weeks faster. There are summaries of file
systems by step, of owners by hour and of jobs by day.

A summary belongs to one file. Neither the file nor its summary ever changes. The path of a summary is
`STORE/summaries/KIND/FILE-CHECKSUM.parquet`, where CHECKSUM is the checksum of the summary itself. If the
summary of a file is missing or damaged, queries read the file itself, which gives the same result but takes
longer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from iodock import _native
from iodock.centre.monitor.own_files import is_summary
from iodock.centre.monitor.questions.counted import (
    ASKED_OF_SERVERS,
    OF_METADATA,
    PLACES,
    PROCESSES,
    SERVERS,
    known,
    metadata,
    of_place,
)
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import DAY, HOUR, SECOND, Span, overlap
from iodock.centre.monitor.questions.steps import ENDS, IS_SAMPLE, IS_TOTAL, RUNNING
from iodock.centre.store import RESOLUTIONS, MonitorStore, MonitorTables, StoredFile
from iodock.shared.engine import checksums
from iodock.shared.engine.need import EVERYTHING, Need
from iodock.shared.errors import StoreError

COARSEST = RESOLUTIONS[-1]
_STEPS = {"fine": 10 * SECOND, "minute": 60 * SECOND, COARSEST: 600 * SECOND}
_MOVED = ("read_bytes", "write_bytes")
_OF_OWNERS = (*_MOVED, "reads", "writes", "call_read_bytes", "call_write_bytes")
_ASKED = ("opens", "creates", "object_creates")
_OF_JOBS = ("reads", "writes", "metadata", *_ASKED)
"""Columns with requests of jobs in the summaries of jobs."""

Rows = str
"""SQL text of a SELECT."""


@dataclass(frozen=True)
class Kind:
    """One kind of summary of a `job_io` file."""

    name: str
    """Name of the folder with these summaries. It ends with the letter of the version."""
    select: Callable[[Rows, str], Rows]
    """Returns the SELECT of a summary, given a SELECT of the file's rows and their resolution."""
    resolutions: tuple[str, ...] = (COARSEST,)
    """Resolutions whose files have summaries."""


def _systems(rows: Rows, resolution: str) -> Rows:
    """Returns SQL that sums the rows of file servers by file system and step. Its columns are begin_ts and
    end_ts (of one step of the resolution), file_system, host (of metadata servers, else NULL), exact,
    read_bytes, write_bytes, metadata, and those of ASKED_OF_SERVERS."""
    step = _STEPS[resolution]
    sums = ", ".join(f'sum({known(name)})::DOUBLE AS "{name}"' for name in _MOVED)
    asked = ", ".join(f"sum({value})::DOUBLE AS {name}" for name, value in ASKED_OF_SERVERS.items())
    names = (*_MOVED, "metadata", *ASKED_OF_SERVERS)
    shares = ", ".join(f'sum("{name}" * share)::DOUBLE AS "{name}"' for name in names)
    return f"""
        WITH brief AS (
            SELECT least(begin_ts, end_ts - 1) AS b, end_ts AS e, file_system,
                CASE WHEN {OF_METADATA} THEN host END AS host, bool_and(exact) AS exact,
                {sums}, sum({metadata()})::DOUBLE AS metadata, {asked}
            FROM ({rows}) WHERE {of_place(SERVERS)} AND file_system IS NOT NULL GROUP BY ALL
        ), steps AS (
            SELECT *, unnest(range(b // {step}, (e - 1) // {step} + 1)) AS step FROM brief
        ), shared AS (
            SELECT *, (least(e, (step + 1) * {step}) - greatest(b, step * {step})) / (e - b) AS share
            FROM steps
        )
        SELECT step * {step} AS begin_ts, (step + 1) * {step} AS end_ts, file_system, host,
            bool_and(exact) AS exact, {shares}
        FROM shared GROUP BY step, file_system, host
    """


def _owners(rows: Rows, _resolution: str = COARSEST) -> Rows:
    """Returns SQL that sums rows by owner and hour. Its columns are begin_ts and end_ts (the earliest begin
    and the latest end of the rows that end in the hour), host, source, file_system, job, user, session,
    command, exact, running_ts (see steps.py) and the sums."""
    keys = 'host, source, file_system, job, "user", session, command'
    sums = ", ".join(f'sum({known(name)})::BIGINT AS "{name}"' for name in _OF_OWNERS)
    asked = ", ".join(f"sum({ASKED_OF_SERVERS[name]})::BIGINT AS {name}" for name in _ASKED)
    return f"""
        SELECT min(begin_ts) AS begin_ts, max(end_ts) AS end_ts, {keys}, bool_and(exact) AS exact,
            {RUNNING}, {sums}, sum({metadata()})::BIGINT AS metadata, {asked}
        FROM (SELECT * REPLACE (CASE WHEN {of_place(SERVERS)} THEN NULL ELSE host END AS host) FROM ({rows}))
        GROUP BY (end_ts - 1) // {HOUR}, {keys} ORDER BY job, end_ts
    """


# The letter at the end of a kind's name is the version of its columns and their meaning. If the letter of a
# kind changes, the collector computes the summaries again.
SYSTEMS = Kind("systems-c", _systems, RESOLUTIONS)
OWNERS = Kind("owners-d", _owners)


def of_jobs(ids: JobIds) -> Kind:
    """Returns the kind of summaries of jobs. Its name contains a hash of IDS, so summaries that parsed job
    ids differently are not used."""
    form = hashlib.sha256(repr(ids).encode()).hexdigest()[:12]
    return Kind(f"jobs-e{form}", lambda rows, _: _jobs(ids, _owners(rows), "1"))


def _jobs(ids: JobIds, owners: Rows, share: str) -> Rows:
    """Returns SQL that sums the rows of `_owners` by job and day. Its columns are begin_ts and end_ts (the
    earliest begin and the latest end of the rows that end in the day), place, job, is_job (false for a
    session), user, command, file_system, exact (samples of steps count as exact), open_steps (list of the
    steps with samples whose total is not in these rows), totals (list of the steps whose total is),
    totals_begin (earliest begin of a total), the columns that `steps.ended` needs, read_bytes and write_bytes
    as the place counts them, reads, writes, metadata, opens, creates, object_creates, ids and clients
    (lists). SHARE is SQL for the part of each row that counts, from 0 to 1."""
    moved = ", ".join(
        f"""sum(CASE WHEN place = '{PROCESSES}' THEN "call_{name}" ELSE "{name}" END)::DOUBLE AS "{name}" """
        for name in _MOVED
    )
    ends = ", ".join(
        f"max({name}) AS {name}" for name in ("step_batch_ended", "step_extern_ended", "running_ts")
    )
    # Rows are summed by id before the ids are parsed, because parsing an id takes longer than adding a row.
    return f"""
        SELECT min(begin_ts) AS begin_ts, max(end_ts) AS end_ts, place, name AS job, is_job,
            owner AS "user", min(command) AS command, file_system,
            bool_and(exact) AS exact, list(step) FILTER (is_open) AS open_steps,
            list(step) FILTER (is_total) AS totals, min(total_begin) AS totals_begin,
            {ends}, bool_or(has_batch) AS has_batch, {moved},
            {", ".join(f"sum({name}) AS {name}" for name in _OF_JOBS)},
            list(DISTINCT id) AS ids, list(DISTINCT client) AS clients
        FROM (
            SELECT *, job AS id, host || '/' || session AS step,
                coalesce(last_sample >= coalesce(total_ts, 0), false) AS is_open,
                total_ts IS NOT NULL AND coalesce(first_sample > total_begin, true) AS is_total,
                coalesce("user", {ids.user()}) AS owner, job IS NOT NULL AS is_job,
                coalesce({ids.number()}, session, '') AS name,
                CASE WHEN place = '{SERVERS}' THEN {ids.host()} ELSE host END AS client
            FROM ({_by_id(owners, share)})
        ) WHERE place IS NOT NULL
        GROUP BY day, place, name, is_job, owner, file_system ORDER BY job, end_ts
    """


def _by_id(owners: Rows, share: str) -> Rows:
    """Returns SQL that sums rows by id, place, day and step of Slurm. `first_sample` and `last_sample` are
    the begins of the first and last sample of the step, which is a lower bound until the step's total
    arrives. `total_begin` and `total_ts` are the begin and end of the total."""
    cases = " ".join(f"WHEN {of_place(place)} THEN '{place}'" for place in PLACES)
    sums = ", ".join(
        f'sum("{name}" * {share})::DOUBLE AS "{name}"' for name in (*_OF_OWNERS, "metadata", *_ASKED)
    )
    sample, total = f"{IS_SAMPLE} AND NOT exact", f"{IS_TOTAL} AND ({share}) = 1"
    return f"""
        SELECT (end_ts - 1) // {DAY} AS day, host, CASE {cases} END AS place, file_system, job, "user",
            session, command, min(begin_ts) AS begin_ts, max(end_ts) AS end_ts,
            bool_and(exact OR {IS_SAMPLE}) AS exact,
            min(begin_ts) FILTER ({sample}) AS first_sample, max(begin_ts) FILTER ({sample}) AS last_sample,
            min(begin_ts) FILTER ({total}) AS total_begin, max(end_ts) FILTER ({total}) AS total_ts,
            {ENDS}, max(running_ts) AS running_ts, {sums}
        FROM ({owners}) GROUP BY day, host, place, file_system, job, "user", session, command
    """


def summarise(store: MonitorStore, ids: JobIds) -> int:
    """Writes missing summaries and removes those whose file is no longer in the catalogue. Returns the number
    of new ones. Only the collector's process calls this function. Raises StoreError."""
    made, wanted = 0, set()
    for kind in (SYSTEMS, OWNERS, of_jobs(ids)):
        there = _there(store, kind)
        for resolution in kind.resolutions:
            for file in store.catalogue.of("job_io", resolution):
                path = there.get(_stem(file))
                # The upkeep will soon replace a file that is not yet summed into a coarser one, so this file
                # gets no summary.
                if path is None and (file.rolled or resolution == COARSEST) and not store.is_damaged(file):
                    path = _written(store, kind, file, resolution)
                    made += path is not None
                wanted.add(path)
    for path in (store.folder / "summaries").glob("*/*"):
        if path not in wanted and is_summary(path.relative_to(store.folder).as_posix()):
            path.unlink(missing_ok=True)
    return made


def _written(store: MonitorStore, kind: Kind, file: StoredFile, resolution: str) -> Path | None:
    """Writes one summary and returns its path, or None if the summary has no rows and is not written. A
    complete file is renamed to the path, so no incomplete summary appears there."""
    begun = _folder(store, kind) / f"{_stem(file)}.part"
    try:
        begun.parent.mkdir(parents=True, exist_ok=True)
        if store.write(kind.select(store.rows([file]), resolution), begun) is None:
            return None
        checksum = _native.file_checksum(begun).removeprefix(_FORM)
        path = begun.with_name(f"{_stem(file)}-{checksum}.parquet")
        begun.rename(path)
    except OSError as error:
        raise StoreError(f"{begun}: {error}") from error
    return path


_FORM = "xxh3:"
"""Prefix of checksums in the catalogue. Names of summaries contain checksums without it."""


def _folder(store: MonitorStore, kind: Kind) -> Path:
    return store.folder / "summaries" / kind.name


def _stem(file: StoredFile) -> str:
    """Returns the prefix of the name of a file's summary."""
    return file.name.removesuffix(".parquet").replace("/", "-")


def _there(store: MonitorStore, kind: Kind) -> dict[str, Path]:
    """Returns the existing summaries of a kind, by the prefix of their names."""
    return {path.stem.rpartition("-")[0]: path for path in _folder(store, kind).glob("*-*.parquet")}


def _is_whole(path: Path) -> bool:
    return not checksums.is_damaged(path, _FORM + path.stem.rpartition("-")[2])


def kept(store: MonitorTables, resolution: str) -> MonitorStore | None:
    """Returns the store if it has summaries of owners and jobs that a query at this resolution can use, else
    None. These summaries exist only for the coarsest resolution."""
    has_some = isinstance(store, MonitorStore) and (store.folder / "summaries").exists()
    return store if isinstance(store, MonitorStore) and has_some and resolution == COARSEST else None


def asked(
    store: MonitorTables,
    kind: Kind,
    within: Span,
    sql: Callable[[str], str],
    resolution: str = COARSEST,
    need: Need = EVERYTHING,
) -> pa.Table:
    """Runs a query over all rows of one kind and returns its result. SQL is a function that takes the FROM
    clause and returns the query. Raises StoreError, QueryError."""
    if isinstance(store, MonitorStore):
        return _asked(store, within, lambda: sql(f"({_rows(store, kind, within, resolution)})"), resolution)
    rows = kind.select("SELECT * FROM job_io", resolution)
    return store.table(sql(f"({rows})"), begin=within.begin, end=within.end, resolution=resolution, need=need)


def asked_of_jobs(
    store: MonitorTables,
    ids: JobIds,
    within: Span,
    sql: Callable[[str], str],
    need: Need = EVERYTHING,
    cut_days: bool = False,
) -> pa.Table:
    """Runs a query over rows with the columns of `_jobs`, cut to the span, and returns its result. SQL is a
    function that takes the FROM clause and returns the query. If CUT_DAYS is true, the I/O of a job on a day
    that lies only partly in the span is multiplied by the share of the job's time on this day that lies in
    the span. This is faster than summing the hours of the day, and less precise. Raises StoreError,
    QueryError."""
    if isinstance(store, MonitorStore):
        rows_of = _shares_of_days if cut_days else _rows_of_jobs
        return _asked(store, within, lambda: sql(f"({rows_of(store, ids, within)})"), COARSEST)
    rows = _jobs(ids, _owners("SELECT * FROM job_io"), overlap(within))
    return store.table(sql(f"({rows})"), begin=within.begin, end=within.end, resolution=COARSEST, need=need)


def rows_of(store: MonitorTables, kind: Kind, within: Span) -> Rows:
    """Returns SQL for all rows of one kind of summary at the coarsest resolution. A query that combines two
    kinds uses it. Raises StoreError."""
    if isinstance(store, MonitorStore):
        return _rows(store, kind, within, COARSEST)
    return kind.select("SELECT * FROM job_io", COARSEST)


def _asked(store: MonitorStore, within: Span, sql: Callable[[], str], resolution: str) -> pa.Table:
    def once() -> pa.Table:
        return store.table(sql(), begin=within.begin, end=within.end, resolution=resolution)

    try:
        return once()
    except StoreError:
        # The upkeep may have replaced a file after the catalogue was read, so the query runs once more with
        # the new catalogue.
        return once()


def _shares_of_days(store: MonitorStore, ids: JobIds, within: Span) -> Rows:
    share = overlap(within)
    shares = ", ".join(f"{name} * {share} AS {name}" for name in (*_MOVED, *_OF_JOBS))
    return f"SELECT * REPLACE ({shares}) FROM ({_rows(store, of_jobs(ids), within, COARSEST)})"


def _rows_of_jobs(store: MonitorStore, ids: JobIds, within: Span) -> Rows:
    """Returns SQL for rows of jobs. Days that lie completely in the span are read from the summaries of jobs,
    and the rest of the span from the hourly summaries of owners. A row belongs to the day in which it ends,
    so that adjacent spans together count each row exactly once."""
    day = f"(end_ts - 1) // {DAY}"
    first, behind = -(-within.begin // DAY), within.end // DAY
    edges = [(within.begin, within.end)]
    parts = []
    if first < behind:
        edges = [(within.begin, first * DAY), (behind * DAY, within.end)]
        whole = replace(within, begin=first * DAY, end=behind * DAY)
        rows = _rows(store, of_jobs(ids), whole, COARSEST)
        parts = [f"SELECT * FROM ({rows}) WHERE {day} BETWEEN {first} AND {behind - 1}"]
    for begin, end in edges:
        if begin < end:
            owners = _rows(store, OWNERS, replace(within, begin=begin, end=end), COARSEST)
            of_edge = f"SELECT * FROM ({owners}) WHERE {day} BETWEEN {begin // DAY} AND {(end - 1) // DAY}"
            parts.append(_jobs(ids, of_edge, overlap(within)))
    return " UNION ALL BY NAME ".join(f"SELECT * FROM ({part})" for part in parts)


def _rows(store: MonitorStore, kind: Kind, within: Span, resolution: str) -> Rows:
    """Returns SQL for the rows of one kind of summary. It reads intact summaries, and computes the rows of
    files that have none."""
    files = store.catalogue.chosen("job_io", resolution, within.begin, within.end)
    summed = {file.name for level in kind.resolutions for file in store.catalogue.of("job_io", level)}
    every = _there(store, kind)
    paths = {file.name: every.get(_stem(file)) for file in files if file.name in summed}
    there = {name: path for name, path in paths.items() if path and _is_whole(path)}
    plain = [file for file in files if file.name not in there]
    parts = [store.rows_at(there.values())] if there else []
    parts += [kind.select(store.rows(plain), resolution)] if plain else []
    if not parts:
        parts = [kind.select("SELECT * FROM job_io", resolution)]
    together = " UNION ALL BY NAME ".join(f"SELECT * FROM ({part})" for part in parts)
    return f"SELECT * FROM ({together}) WHERE end_ts > {within.begin} AND begin_ts <= {within.end}"
