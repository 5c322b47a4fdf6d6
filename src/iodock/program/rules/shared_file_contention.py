"""Several processes write one file in small pieces that lie between each other's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar

APPEND = 0o2000


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `shared-file-contention`."""

    least_count: int = 200
    """Fewer writes to shared files than this are not worth a word."""
    least_each: int = 20
    """Writes of one process to the file, from which on it counts as a writer."""
    most_bytes: int = 262144
    """A write's size on average; larger pieces seldom meet."""
    least_scattered: float = 0.5
    """Share of the writes that must not follow the process's own one before."""
    least_together: float = 0.2
    """How much longer the writers' times are together than the time in which anyone writes: they overlap."""
    least_lock_ns: int = 50000
    """A lock's time on average, from which on processes wait for each other."""
    least_lock_share: float = 0.2
    """Or of the time in which they use the file: so much of it they must wait for locks. Most locks are free
    where a process takes many in a row, and on few processors."""
    least_lock_times: float = 8.0
    """How much longer than what a quarter of the calls take a lock must take, to have been waited for."""
    least_quick_ns: int = 2000
    """What a lock that is free takes at least: questions about descriptors are quicker."""
    least_refused: int = 20
    """Locks of a file that were refused, from which on processes ask again and again."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for files that several processes wrote at the same time in interleaved pieces, and one
    for those whose locks they waited for."""
    written = Faults(facts.rows(_sql(settings)))
    names = set(written.files)
    locked = _locked(facts, settings, names)
    for faults, call in ((written, "write"), (locked, "fcntl")):
        count = faults.total("count")
        if count >= settings.least_count and costs.worth_a_word(facts, faults.time_ns, count):
            yield _candidate(facts, faults, call)
    yield from _asked_again(facts, settings, names | set(locked.files))


def _asked_again(facts: Facts, settings: Settings, known: set[str]) -> Iterator[Candidate]:
    """One candidate for files whose locks were refused, so that processes slept and asked again: the time
    until the next call on the file is the cost, shared by those who wait at the same time."""
    if not facts.sees(Need.TIMES) or not facts.rows(f"{_refused_sql(settings)} SELECT 1 FROM asked LIMIT 1"):
        return
    faults = Faults([row for row in facts.rows(_waits_sql(settings)) if row["name"] not in known])
    waited = sum(int(row["waited_ns"] or 0) // int(row["writers"]) for row in faults.rows)
    if not faults or not costs.worth_a_word(facts, waited, faults.total("count")):
        return
    values: dict[str, Scalar] = {
        "count": faults.total("count"),
        "writers": max(int(row["writers"]) for row in faults.rows),
        "mean_ns": faults.total("waited_ns") // faults.total("count"),
        "files": faults.file_count,
    }
    yield Candidate(
        message=Message(_REFUSED, values),
        count=faults.total("count"),
        time_ns=faults.time_ns,
        evidence={"time_ns": faults.time_ns, "waited_ns": faults.total("waited_ns"), **values},
        query=_LOCKS_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="fcntl",
        confidence=0.7,
        wall_seconds=waited / 1e9,
        gain=(0.35, 1.0),
        advice=_LOCKS_ADVICE,
    )


def _candidate(facts: Facts, faults: Faults, call: str) -> Candidate:
    count = faults.total("count")
    values: dict[str, Scalar] = {
        "count": count,
        "writers": max(int(row["writers"]) for row in faults.rows),
        "mean_bytes": faults.total("bytes") / count,
        "mean_ns": faults.time_ns // count if faults.time_ns is not None else None,
        "files": faults.file_count,
    }
    message = _MESSAGE if facts.durations else _MESSAGE_UNTIMED
    return Candidate(
        message=Message(message if call == "write" else _LOCKS, values),
        count=count,
        time_ns=faults.time_ns,
        evidence={"time_ns": faults.time_ns, "bytes": faults.total("bytes"), **values},
        query=_QUERY if call == "write" else _LOCKS_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call=call,
        confidence=0.75,
        gain=(0.4, 1.0),
        advice=None if call == "write" else _LOCKS_ADVICE,
    )


# Workers that take turns on few processors write in groups, one after the other: between these nobody does.
def _after(table: str) -> str:
    """Each row of TABLE and until when those that began before it were at its file."""
    return f"""SELECT *, max(last_ts) OVER (PARTITION BY file_id ORDER BY first_ts, last_ts
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ts FROM {table}"""


def _overlap(settings: Settings) -> str:
    any_of_them = "sum(greatest(0, last_ts - greatest(first_ts, coalesce(before_ts, first_ts))))"
    return f"""{any_of_them} > 0
    AND sum(last_ts - first_ts) >= {1 + settings.least_together} * {any_of_them}"""


# Locks of the file belong to it: whoever shares a file by small pieces takes them.
def _sql(settings: Settings) -> str:
    return f"""WITH writers AS (SELECT * FROM file_work
  WHERE writes >= {settings.least_each} AND written_bytes <= {settings.most_bytes} * writes),
after AS ({_after("writers")}),
shared AS (SELECT w.file_id, count(*) AS writers, sum(w.writes) AS writes, sum(w.written_bytes) AS bytes,
    sum(w.write_ns + coalesce(w.metadata_ns, 0) - coalesce(w.open_ns, 0)) AS time_ns
  FROM after w JOIN files f ON f.file_id = w.file_id WHERE f.file_id IN (FROM plain_files)
  GROUP BY w.file_id HAVING count(*) >= 2 AND {_overlap(settings)}),
places_of AS (SELECT p.place, p.name, count(*) AS file_count, max(s.writers) AS writers,
    sum(s.writes) AS count, sum(s.bytes) AS bytes, sum(s.time_ns) AS time_ns
  FROM shared s JOIN places p ON p.file_id = s.file_id GROUP BY p.place, p.name),
order_of AS (SELECT place, sum(count) AS known, sum(count) FILTER (WHERE pattern >= 3) AS scattered
  FROM transfers WHERE direction = 2 AND pattern > 1 GROUP BY place),
appended AS (SELECT DISTINCT p.place FROM opens o JOIN places p ON p.file_id = o.file_id
  WHERE o.flags & {APPEND} <> 0 AND o.errno_id IS NULL)
SELECT s.name, s.file_count, s.writers, CAST(s.count AS BIGINT) AS count, CAST(s.bytes AS BIGINT) AS bytes,
  CAST(s.time_ns AS BIGINT) AS time_ns
FROM places_of s LEFT JOIN order_of o ON o.place = s.place LEFT JOIN appended a ON a.place = s.place
WHERE a.place IS NOT NULL OR o.scattered >= {settings.least_scattered} * o.known
ORDER BY time_ns DESC NULLS LAST, count DESC, s.name"""


def _locked(facts: Facts, settings: Settings, written: set[str]) -> Faults:
    """Files whose locks processes waited for, beside those WRITTEN in small pieces."""
    waited = facts.rows(_waited_sql(settings)) if facts.rows(_often_sql(settings)) else []
    rows = facts.rows(_locks_sql(settings, [int(row["file_id"]) for row in waited]))
    return Faults([row for row in rows if row["name"] not in written])


# Who takes a lock that is free has it at once. A lock is given back at once in any case, which is half of the
# calls: the quicker half of these says how long one takes that nobody waits for.
def _waited_sql(settings: Settings) -> str:
    return f"""WITH asked AS (SELECT e.file_id, q.upid, e.ts, e.dur,
    greatest({settings.least_quick_ns}, quantile_cont(e.dur, 0.25) OVER (PARTITION BY e.file_id)) AS quick
  FROM events e JOIN processes q ON q.utid = e.utid
  WHERE e.file_id IN (SELECT file_id FROM ({_often_sql(settings)})) AND e.dur IS NOT NULL
    AND e.call_id IN (SELECT id FROM calls WHERE family IN ('fcntl', 'flock'))),
each AS (SELECT file_id, upid, max(ts + dur) - min(ts) AS span,
    sum(dur - quick) FILTER (WHERE dur >= {settings.least_lock_times} * quick) AS waited
  FROM asked GROUP BY file_id, upid)
SELECT file_id FROM each GROUP BY file_id HAVING sum(waited) >= {settings.least_lock_share} * sum(span)"""


def _often_sql(settings: Settings) -> str:
    return f"""SELECT file_id FROM ({_lockers_sql(settings)}) GROUP BY file_id
HAVING count(*) >= 2 AND sum(time_ns) >= {settings.least_lock_share} * sum(last_ts - first_ts)"""


def _lockers_sql(settings: Settings) -> str:
    return f"""SELECT u.file_id, q.upid, sum(u.count) AS count, sum(u.time_ns) AS time_ns,
    min(u.first_ts) AS first_ts, max(u.last_ts) AS last_ts
  FROM uses u JOIN calls c ON c.id = u.call_id JOIN processes q ON q.utid = u.utid
    JOIN files f ON f.file_id = u.file_id
  WHERE c.family IN ('fcntl', 'flock') AND f.file_id IN (FROM plain_files) GROUP BY u.file_id, q.upid
  HAVING sum(u.count) >= {settings.least_each}"""


def _locks_sql(settings: Settings, waited: list[int]) -> str:
    known = ", ".join(map(str, waited)) or "NULL"
    return f"""WITH locked AS ({_lockers_sql(settings)}),
after AS ({_after("locked")}),
shared AS (SELECT file_id, count(*) AS writers, sum(count) AS count, sum(time_ns) AS time_ns FROM after
  GROUP BY file_id HAVING count(*) >= 2 AND {_overlap(settings)}
    AND (file_id IN ({known}) OR sum(time_ns) >= {settings.least_lock_ns} * sum(count)))
SELECT p.name, count(*) AS file_count, max(s.writers) AS writers, CAST(sum(s.count) AS BIGINT) AS count,
  CAST(sum(s.time_ns) AS BIGINT) AS time_ns, CAST(0 AS BIGINT) AS bytes
FROM shared s JOIN places p ON p.file_id = s.file_id GROUP BY p.place, p.name
ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


# A lock file that is made with O_EXCL, or a folder, is a lock where it is removed again and again, too.
def _refused_sql(settings: Settings) -> str:
    return f"""WITH tried AS (SELECT u.file_id, q.upid, u.count, u.call_id, u.errno_id,
    c.family IN ('fcntl', 'flock') AND x.name IN ('EAGAIN', 'EACCES', 'EWOULDBLOCK') AS refused,
    c.family IN ('open', 'mkdir', 'link', 'symlink') AND x.name = 'EEXIST' AS there,
    c.family IN ('unlink', 'rmdir', 'rename') AND x.name IS NULL AS gone
  FROM uses u JOIN calls c ON c.id = u.call_id JOIN processes q ON q.utid = u.utid
    LEFT JOIN errnos x ON x.id = u.errno_id WHERE u.file_id IS NOT NULL),
asked AS (SELECT file_id, count(DISTINCT upid) FILTER (WHERE refused OR there) AS writers FROM tried
  GROUP BY file_id
  HAVING coalesce(sum(count) FILTER (WHERE refused OR there), 0) >= {settings.least_refused} AND writers >= 2
    AND (bool_or(refused) OR sum(count) FILTER (WHERE gone) >= {settings.least_each}))"""


def _waits_sql(settings: Settings) -> str:
    return f"""{_refused_sql(settings)},
kinds AS (SELECT DISTINCT call_id, errno_id FROM tried WHERE refused OR there),
calls_of AS (SELECT e.file_id, e.utid, e.ts, e.dur,
    (e.call_id, e.errno_id) IN (SELECT (call_id, errno_id) FROM kinds) AS refused,
    e.ts - lag(e.ts + coalesce(e.dur, 0)) OVER w AS pause
  FROM events e WHERE e.file_id IN (SELECT file_id FROM asked) AND e.side <> 4
  WINDOW w AS (PARTITION BY e.utid, e.file_id ORDER BY e.ts)),
steps AS (SELECT *, lag(refused) OVER w
    OR lag(refused, 2) OVER w AND lag(pause) OVER w < {_AT_ONCE_NS} AS after_refusal
  FROM calls_of WINDOW w AS (PARTITION BY utid, file_id ORDER BY ts))
SELECT p.name, count(DISTINCT s.file_id) AS file_count, CAST(max(a.writers) AS BIGINT) AS writers,
  count(*) FILTER (WHERE s.refused) AS count, CAST(sum(s.dur) FILTER (WHERE s.refused) AS BIGINT) AS time_ns,
  CAST(coalesce(sum(s.pause) FILTER (WHERE s.after_refusal), 0) AS BIGINT) AS waited_ns
FROM steps s JOIN asked a ON a.file_id = s.file_id JOIN places p ON p.file_id = s.file_id
GROUP BY p.place, p.name ORDER BY waited_ns DESC, count DESC, p.name"""


# Whoever is refused one lock may give back another one, at once, before sleeping: sqlite does.
_AT_ONCE_NS = 100_000
_QUERY = """SELECT file, pid, rank, count(*) AS writes, sum(bytes) AS bytes, avg(dur) AS mean_ns
FROM call_ends WHERE direction = 'write' AND kind IN ('file', 'regular') GROUP BY file, pid, rank
ORDER BY file, writes DESC"""
_LOCKS_QUERY = """SELECT file, pid, rank, call, count(*) AS locks, sum(dur) AS time_ns, max(dur) AS longest_ns
FROM call_ends WHERE family IN ('fcntl', 'flock') GROUP BY file, pid, rank, call ORDER BY time_ns DESC"""
_LOCKS = N_(
    "Up to {writers} processes at a time waited for each other's locks of the same file: {count} calls of "
    "{mean_ns} on average; files: {files}"
)
_REFUSED = N_(
    "Up to {writers} processes at a time asked again and again for locks of the same file: {count} were "
    "refused, and each time the next call came {mean_ns} later on average; files: {files}"
)
_LOCKS_ADVICE = advise(
    any=N_(
        "Let each process write a file or a region of its own, so that no lock is needed, or collect many "
        "records and lock once for all of them."
    ),
    c=N_("Lock only the bytes that are written (fcntl with l_start and l_len), and not while computing."),
    python=N_("Send the records to one process that writes, through a queue, in place of a lock for each."),
    shell=N_("Let each job write its own file in place of flock, and join them with cat at the end."),
    mpi_io=N_("Write collectively, and leave MPI_File_set_atomicity off."),
    hdf5=N_("Set HDF5_USE_FILE_LOCKING=FALSE where each process has its own file."),
)
_MESSAGE = N_(
    "Up to {writers} processes at a time wrote the same file in pieces of {mean_bytes} between each other's: "
    "{count} writes of {mean_ns} on average; files: {files}"
)
_MESSAGE_UNTIMED = N_(
    "Up to {writers} processes at a time wrote the same file in pieces of {mean_bytes} between each other's: "
    "{count} writes; files: {files}"
)

RULE = Rule(
    name="shared-file-contention",
    title=N_("Many writers, small pieces, one file"),
    looks_for=N_(
        "Files that several processes write at the same time, in small pieces that lie between each other's, "
        "or whose locks they wait for."
    ),
    why=N_(
        "The file system lets one writer at a time into a block or stripe, and hands the lock round with "
        "each piece: the more writers, the slower."
    ),
    advice=advise(
        any=N_(
            "Give each writer one large region of the file, or collect the pieces in one process that writes."
        ),
        c=N_(
            "Collect pieces of 1 MiB or more, and write them at offsets that are multiples of the stripe "
            "size."
        ),
        fortran=N_("Gather the records in some ranks that write long stretches, or use MPI-IO or HDF5."),
        python=N_("Let one process write what the others send through a queue; for logs use a QueueHandler."),
        shell=N_("Let each process write its own file, and join them with cat at the end."),
        mpi_io=N_(
            "On a parallel file system write collectively (MPI_File_write_all) with a file view: aggregators "
            "put the pieces together. On a local disk that costs more than it brings."
        ),
        hdf5=N_("Use collective transfers (H5FD_MPIO_COLLECTIVE), and chunks that belong to one rank each."),
        administrator=N_("For such files set the stripe size to the size of one process's piece."),
    ),
    fine_when=N_("A log of a few lines, or a database that keeps its own locks."),
    settings=Settings,
    find=find,
    needs=(Need.RANKS_OWN,),
    views=("file_work", "places", "transfers", "opens", "uses", "plain_files"),
    case="shared-file",
)
