"""Finds programs that force data to the disk after each small piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Advice
from iodock.program.rules import costs, counted
from iodock.program.rules.base import Candidate, Facts, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `sync-heavy`."""

    least_count: int = 20
    "Number of syncs below which they are considered checkpoints of a program."
    least_commits: int = 100
    """Number of syncs of a database and its journal, from which on they may be rows of one batch that are
    committed one by one."""
    least_commit_share: float = 0.2
    """Minimum share of the run's wall time that a database's syncs take: a batch that commits row by row
    does little else, while a program that only keeps its data safe spends less."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for all places that are synced often, with few bytes written for each sync.
    Yields another for databases that often commit few bytes, in runs that do hardly anything else."""
    rows = facts.rows(_SQL)
    plain = Faults([row for row in rows if not row["is_kept"]])
    if plain.total("count") >= settings.least_count and _is_worth(facts, plain):
        named = any(row["name"] is not None for row in plain.rows)
        yield _candidate(plain, _MESSAGE if named else _MESSAGE_MAPPED, 0.9)
    kept = Faults([row for row in rows if row["is_kept"]])
    if kept.total("count") >= settings.least_commits and _is_worth(facts, kept):
        spent = facts.wall_of(kept.time_ns)
        if spent is None or spent >= settings.least_commit_share * (facts.wall_seconds or 0):
            yield _candidate(kept, _COMMITS, 0.6, _COMMITS_ADVICE)


def _is_worth(facts: Facts, faults: Faults) -> bool:
    return costs.worth_a_word(facts, faults.time_ns, faults.total("count"))


def _candidate(
    faults: Faults, message: str, confidence: float, advice: tuple[Advice, ...] | None = None
) -> Candidate:
    count, moved = faults.total("count"), faults.total("bytes")
    return Candidate(
        message=Message(message, {"count": count, "files": faults.file_count, "mean_bytes": moved / count}),
        count=count,
        time_ns=faults.time_ns,
        evidence={"count": count, "time_ns": faults.time_ns, "written_bytes": moved},
        query=_QUERY,
        confidence=confidence,
        gain=costs.CALLS_GO,
        pieces=Pieces.CALLS,
        advice=advice,
        **faults.where,
    )


# A program syncs a folder to make a new file name in it permanent; databases do that, too. msync and sync
# name no file. If a file is synced several times, only the last sync is needed. Few bytes means less than one
# large request for each sync.
_SQL = f"""WITH kept AS (SELECT file_id FROM files WHERE file_id IN (FROM database_files)
  OR name IN (SELECT rtrim(folder, '/') FROM files WHERE file_id IN (FROM database_files))),
written AS (SELECT file_id, sum(written_bytes) AS bytes FROM file_work GROUP BY file_id),
synced AS (SELECT u.file_id, coalesce(u.file_id IN (FROM kept), false) AS is_kept,
    arg_max(c.name, u.count) AS call, sum(u.count) AS count, sum(u.time_ns) AS time_ns
  FROM uses u JOIN calls c ON c.id = u.call_id WHERE c.class = 'sync' GROUP BY u.file_id)
SELECT p.name, s.is_kept, count(s.file_id) AS file_count, any_value(s.call) AS call,
  CAST(sum(s.count) AS BIGINT) AS count, CAST(sum(coalesce(w.bytes, 0)) AS BIGINT) AS bytes,
  CAST(sum(s.time_ns * greatest(1, s.count - 1) / s.count) AS BIGINT) AS time_ns
FROM synced s LEFT JOIN places p ON p.file_id = s.file_id LEFT JOIN written w ON w.file_id = s.file_id
GROUP BY p.place, p.name, s.is_kept HAVING sum(coalesce(w.bytes, 0)) < {costs.PIECE_BYTES} * sum(s.count)
ORDER BY time_ns DESC NULLS LAST, count DESC, p.name NULLS LAST"""
_QUERY = """SELECT file, call, count(*) AS count, sum(dur) AS time_ns, max(dur) AS longest_ns FROM call_ends
WHERE class = 'sync' GROUP BY file, call ORDER BY time_ns DESC"""
_MESSAGE = N_("{count} syncs, with {mean_bytes} written between two of them on average; files: {files}")
_MESSAGE_MAPPED = N_("{count} syncs of mapped memory or of all file systems")
_COMMITS = N_(
    "{count} syncs of a database and its journal, with {mean_bytes} written between two of them on average: "
    "each change seems to be committed by itself; files: {files}"
)
_COMMITS_ADVICE = advise(
    any=N_(
        "Combine many changes in one transaction: BEGIN before the loop, COMMIT after it, for a thousand "
        "rows or all rows of a step. If each change must be committed separately, SQLite's PRAGMA "
        "journal_mode=WAL and synchronous=NORMAL need only one sync for each checkpoint."
    ),
    python=N_(
        "sqlite3: connection.commit() once after the loop. With isolation_level=None it does nothing: write "
        'connection.execute("BEGIN") before the loop and connection.execute("COMMIT") after it.'
    ),
    shell=N_("Give sqlite3 one script that begins with BEGIN; and ends with COMMIT;."),
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields files that were synced often, with few bytes written for each sync. Counters include the time
    of syncs in that of writes. If there are many writes for each sync, the time of the syncs is unknown."""
    faults = counted.files(facts, f"t.syncs > 1 AND t.written_bytes < {costs.PIECE_BYTES} * t.syncs")
    count = faults.total("syncs")
    if count < settings.least_count:
        return
    values: dict[str, Scalar] = {
        "count": count, "files": faults.file_count, "mean_bytes": faults.total("written_bytes") / count,
    }  # fmt: skip
    synced = counted.transfers(facts, f"t.direction = 2 AND t.interface = 'posix' AND t.{counted.IS_SYNCED}")
    cost = costs.beyond_large(synced.time_ns, synced.total("count"), synced.total("bytes"), 2)
    yield counted.candidate(facts, faults, _MESSAGE, values, cost_ns=cost, count=count, call="fsync")


RULE = Rule(
    name="sync-heavy",
    title=N_("Data forced to the disk after each small piece"),
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
    counters=in_counters,
    views=("uses", "places", "file_work", "database_files", "counted_files", "counted_transfers"),
    case="sync",
)
