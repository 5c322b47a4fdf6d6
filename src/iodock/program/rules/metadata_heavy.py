"""Finds files that are accessed repeatedly, and on which opens, stats, locks and similar calls take longer
than reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules import costs, counted
from iodock.program.rules.base import Candidate, Facts, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `metadata-heavy`."""

    least_count: int = 1000
    "Number of unnecessary metadata calls below which nothing is reported."
    least_share: float = 0.5
    "Minimum share of the time in I/O calls that metadata calls on these files take."
    free_calls: int = 4
    """Number of metadata calls of one process on one file that any program needs: open, stat, close,
    unlink. None for a name that a file got and lost again by renames."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all files with more metadata calls than a program needs to use a file."""
    faults = Faults(facts.rows(_sql(settings)))
    count, spent = faults.total("count"), faults.total("metadata_ns")
    if count < settings.least_count or not _dominates(facts, spent, faults, settings):
        return
    values = {
        "calls": faults.total("calls"),
        "files": faults.file_count,
        "transfers": faults.total("transfers"),
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=faults.time_ns,
        evidence={"count": count, "time_ns": faults.time_ns, "metadata_ns": spent, **values},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        confidence=0.6,
        gain=(0.3, 0.9),
    )


def _dominates(facts: Facts, spent: int, faults: Faults, settings: Settings) -> bool:
    if facts.durations and facts.summed_io_ns:
        return spent >= settings.least_share * facts.summed_io_ns
    return faults.total("calls") >= settings.least_share * facts.calls


def _sql(settings: Settings) -> str:
    free = f"(CASE WHEN s.file_id IS NULL THEN {settings.free_calls} ELSE 0 END)"
    return f"""WITH stations AS ({_STATIONS})
SELECT p.name, count(DISTINCT w.file_id) AS file_count,
  CAST(sum(w.metadata) AS BIGINT) AS calls, CAST(sum(w.metadata - {free}) AS BIGINT) AS count,
  CAST(sum(w.reads + w.writes) AS BIGINT) AS transfers,
  CAST(sum(w.metadata_ns - {_EMPTYING}) AS BIGINT) AS metadata_ns,
  CAST(sum(least((w.metadata_ns - {_EMPTYING}) * (w.metadata - {free}) / w.metadata,
    w.metadata_ns - {costs.unless_hung("w.longest_metadata_ns")})) AS BIGINT) AS time_ns
FROM file_work w JOIN places p ON p.file_id = w.file_id JOIN files f ON f.file_id = w.file_id
  LEFT JOIN programs g ON g.upid = w.upid LEFT JOIN stations s ON s.file_id = w.file_id
WHERE w.metadata > {free} AND (f.file_id IN (FROM data_files) OR {_MADE_AGAIN} OR {costs.data_links("f")})
  AND g.is_tool IS NOT TRUE
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


_STATIONS = """SELECT u.file_id FROM uses u JOIN calls c ON c.id = u.call_id
WHERE c.family = 'rename' AND u.errno_id IS NULL AND u.file_id IS NOT NULL
GROUP BY u.file_id HAVING bool_or(u.side = 3) AND bool_or(u.side = 4)"""
# SQL for the time of opens that truncate a file which this process wrote before. They take long because the
# file system frees that data, so they are not counted as a metadata fault.
_EMPTYING = """CASE WHEN w.opens > 1 AND w.written_bytes >= 65536 * w.opens
  THEN coalesce(w.open_ns, 0) ELSE 0 END"""
# SQL condition: a process creates and removes a folder repeatedly. It uses the folder as a lock, or as a
# temporary folder for each step.
_MADE_AGAIN = "(f.kind = 'directory' AND w.metadata - w.opens - w.stats - w.closes > w.metadata / 2)"
_QUERY = """SELECT file, call, count(*) AS count, sum(dur) AS time_ns FROM call_ends
WHERE class = 'metadata' GROUP BY file, call ORDER BY time_ns DESC"""
_MESSAGE = N_(
    "There were {calls} metadata calls (open, stat, lock, rename, ...) for {transfers} reads and writes; "
    "files: {files}. They take more time than the data."
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for all files together, if metadata calls take more time than reads and writes.
    If there are few calls, the run was short, so the candidate is at most a note. If there are very few,
    nothing is yielded."""
    faults = counted.files(facts, "t.meta_ns > 0", together=True)
    spent = faults.total("meta_ns")
    if not facts.summed_io_ns or spent < settings.least_share * facts.summed_io_ns:
        return
    calls = sum(faults.total(name) for name in ("opens", "stats", "seeks"))
    if 100 * calls < settings.least_count:
        return
    values: dict[str, Scalar] = {
        "calls": calls, "files": faults.file_count, "transfers": faults.total("transfers"),
    }  # fmt: skip
    yield counted.candidate(
        facts, faults, _MESSAGE, values, cost_ns=spent, count=calls, gain=(0.3, 0.9),
        at_most=Severity.NOTE if calls < settings.least_count else Severity.HIGH,
    )  # fmt: skip


RULE = Rule(
    name="metadata-heavy",
    title=N_("More time for metadata than for data"),
    looks_for=N_("Files on which metadata calls dominate the I/O time, many more than a file needs."),
    why=N_(
        "Metadata calls go to one server that all users share; they become slower with each additional "
        "process, however fast the storage is."
    ),
    advice=advise(
        any=N_(
            "Check which calls repeat on the same file (iodock show summary --by file,family), and "
            "make each of them once."
        ),
        c=N_("Keep descriptors and struct stat; set owner, mode and times once, when the file is complete."),
        fortran=N_("Avoid INQUIRE, OPEN and CLOSE in each step; keep the unit connected."),
        python=N_("Keep files open, and libraries that lock or rename on each update out of inner loops."),
        shell=N_("Work in a folder on the node's own disk or in memory, and copy the result once."),
        mpi_io=N_("Let one rank do the opens, renames and deletes, or open collectively."),
        hdf5=N_(
            "HDF5_USE_FILE_LOCKING=FALSE where no one else writes; collective metadata "
            "(H5Pset_all_coll_metadata_ops)."
        ),
    ),
    fine_when=N_(
        "The task consists of metadata operations: listing, searching, unpacking, version control, compiling."
    ),
    settings=Settings,
    find=find,
    counters=in_counters,
    views=("file_work", "places", "programs", "uses", "data_files", "counted_files"),
    yields_to=(
        *("open-close-loop", "stat-storm", "failed-xattr", "failed-open-storm", "process-storm", "slow-call"),
        *("tiny-file-flood", "file-per-process", "directory-scan-storm", "slow-close", "sync-heavy"),
        *("shared-file-contention", "straggler", "redundant-writes", "read-after-write", "unused-output"),
    ),
    case="tiny-files",
)
