"""A forced write to the disk after each small piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Advice
from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.engine.sql import quoted
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `sync-heavy`."""

    least_count: int = 20
    """Fewer syncs than this are not worth a word."""
    most_bytes: int = 4194304
    """Written between two syncs on average; more makes a sync worth its time."""
    most_once_bytes: int = 65536
    """Written to each of many files that are synced once."""
    least_commits: int = 100
    """Syncs of a database and its journal, from which on it may be rows of one batch that are committed one
    by one."""
    most_commit_bytes: int = 65536
    """Written to a database between two syncs on average."""
    least_commit_share: float = 0.2
    """Of the run's wall time that a database's syncs must take: a batch that does little else."""


_NONE = Faults([])


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: all places with many syncs and little written for each; one for databases that commit a
    little again and again and do hardly anything else."""
    plain = Faults(facts.rows(_sql(_PLAIN, settings.most_bytes, settings)))
    if plain.total("count") >= settings.least_count and _is_worth(facts, plain):
        named = any(row["name"] is not None for row in plain.rows)
        yield _candidate(plain, _MESSAGE if named else _MESSAGE_MAPPED, 0.9)
    kept = Faults(facts.rows(_sql(_OF_DATABASES, settings.most_commit_bytes, settings)))
    if kept.total("count") >= settings.least_commits and _is_worth(facts, kept):
        spent = facts.wall_of(kept.time_ns)
        if spent is None or spent >= settings.least_commit_share * (facts.wall_seconds or 0):
            yield _candidate(kept, _COMMITS, 0.6, _COMMITS_ADVICE, _beside(facts, kept))


def _is_worth(facts: Facts, faults: Faults) -> bool:
    return costs.worth_a_word(facts, faults.time_ns, faults.total("count"))


def _beside(facts: Facts, kept: Faults) -> Faults:
    """What else each commit does to its journal: it is made, written and deleted. One commit needs that."""
    journals = ", ".join(quoted(f"{name}{end}") for name in kept.files for end in ("", "-journal", "-wal"))
    share = 1 - 1 / kept.total("count")
    return Faults(
        facts.rows(
            f"""SELECT CAST(sum(u.count) * {share} AS BIGINT) AS count,
  CAST(sum(u.time_ns) * {share} AS BIGINT) AS time_ns
FROM uses u JOIN calls c ON c.id = u.call_id JOIN files f ON f.file_id = u.file_id
WHERE c.class <> 'sync' AND u.side IN (0, 1, 3) AND regexp_matches(f.name, '-(journal|wal)$')
  AND f.name IN ({journals})"""
        )
    )


def _candidate(
    faults: Faults,
    message: str,
    confidence: float,
    advice: tuple[Advice, ...] | None = None,
    beside: Faults = _NONE,
) -> Candidate:
    count, moved = faults.total("count"), faults.total("bytes")
    time_ns = faults.time_ns
    return Candidate(
        message=Message(message, {"count": count, "files": faults.file_count, "mean_bytes": moved / count}),
        count=count + beside.total("count"),
        time_ns=None if time_ns is None else time_ns + beside.total("time_ns"),
        evidence={"count": count, "time_ns": time_ns, "written_bytes": moved},
        query=_QUERY,
        files=faults.files,
        file_count=sum(int(row["file_count"]) for row in faults.rows),
        call=faults.rows[0]["call"],
        confidence=confidence,
        gain=costs.CALLS_GO,
        pieces=Pieces.CALLS,
        advice=advice,
    )


# A folder is synced so that a new name in it is safe; databases do that too.
_PLAIN = """u.file_id IS NULL OR f.file_id IN (FROM plain_files) OR f.kind = 'directory' AND f.name NOT IN (
  SELECT rtrim(d.folder, '/') FROM files d WHERE d.file_id IN (FROM database_files))"""


_OF_DATABASES = "f.file_id IN (FROM database_files)"


# msync and sync name no file. One sync of a file, or folder, is free, unless little is in each of many files.
def _sql(wanted: str, most_bytes: int, settings: Settings) -> str:
    return f"""WITH synced AS (SELECT p.place, p.name, u.file_id, arg_max(c.name, u.count) AS call,
    sum(u.count) AS count, sum(u.time_ns) AS time_ns
  FROM uses u JOIN calls c ON c.id = u.call_id LEFT JOIN places p ON p.file_id = u.file_id
    LEFT JOIN files f ON f.file_id = u.file_id
  WHERE c.class = 'sync' AND ({wanted}) GROUP BY p.place, p.name, u.file_id),
written AS (SELECT file_id, sum(written_bytes) AS bytes FROM file_work GROUP BY file_id)
SELECT s.name, count(s.file_id) AS file_count, any_value(s.call) AS call,
  CAST(sum(s.count) AS BIGINT) AS count, CAST(sum(coalesce(w.bytes, 0)) AS BIGINT) AS bytes,
  CAST(sum(CASE WHEN s.count > 1 THEN s.time_ns * ((s.count - 1) / s.count) ELSE s.time_ns END) AS BIGINT)
    AS time_ns
FROM synced s LEFT JOIN written w ON w.file_id = s.file_id
WHERE s.count > 1 OR w.bytes <= {settings.most_once_bytes}
GROUP BY s.place, s.name
HAVING sum(coalesce(w.bytes, 0)) <= {most_bytes} * sum(s.count)
ORDER BY time_ns DESC NULLS LAST, count DESC, s.name NULLS LAST"""


_QUERY = """SELECT file, call, count(*) AS count, sum(dur) AS time_ns, max(dur) AS longest_ns FROM call_ends
WHERE class = 'sync' GROUP BY file, call ORDER BY time_ns DESC"""
_MESSAGE = N_("{count} syncs, with {mean_bytes} written between two of them on average; files: {files}")
_MESSAGE_MAPPED = N_("{count} syncs of mapped memory or of everything")
_COMMITS = N_(
    "{count} syncs of a database and its journal, with {mean_bytes} written between two of them on average: "
    "each change seems to be committed by itself; files: {files}"
)
_COMMITS_ADVICE = advise(
    any=N_(
        "Put many changes into one transaction: BEGIN before the loop, COMMIT after it, for a thousand rows "
        "or all of a step. If each must be committed by itself, SQLite's PRAGMA journal_mode=WAL and "
        "synchronous=NORMAL need a sync for each checkpoint only."
    ),
    python=N_(
        "sqlite3: connection.commit() once after the loop. With isolation_level=None it does nothing: write "
        'connection.execute("BEGIN") before the loop and connection.execute("COMMIT") after it.'
    ),
    shell=N_("Give sqlite3 one script that begins with BEGIN; and ends with COMMIT;."),
)

RULE = Rule(
    name="sync-heavy",
    title=N_("Forced to the disk after each small piece"),
    looks_for=N_("Many calls of fsync, fdatasync, msync or sync with little written between them."),
    why=N_(
        "A sync waits until the disk has the data, some milliseconds each time; a write alone only fills "
        "memory and goes on."
    ),
    advice=advise(
        any=N_("Sync once at the end, or after each checkpoint; let the system write in between."),
        c=N_("Take fsync out of the loop; fflush is enough for others on the same node to see the data."),
        cpp=N_("Take fsync out of the loop; std::flush is enough for others to see the data."),
        fortran=N_("FLUSH(unit) less often; it need not follow each WRITE."),
        python=N_("Take os.fsync out of the loop; file.flush() is enough for others to see the data."),
        shell=N_("Take sync, and dd's oflag=sync or conv=fsync, out of the loop."),
        mpi_io=N_("MPI_File_sync once after all writes of a step, not after each one."),
        hdf5=N_("H5Fflush once per checkpoint, not after each H5Dwrite."),
    ),
    fine_when=N_("Each record must survive a power cut: databases, mail, journals."),
    settings=Settings,
    find=find,
    views=("uses", "places", "file_work", "database_files", "plain_files"),
    case="sync",
)
