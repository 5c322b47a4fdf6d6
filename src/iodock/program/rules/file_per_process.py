"""Finds files that each rank writes for itself, so that their number is ranks times steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, counted, workers
from iodock.program.rules.base import Candidate, Facts, Need, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `file-per-process`."""

    least_workers: int = 3
    "Ranks, or parallel processes, that each write their own files."
    least_files: int = 200
    "Number of files, multiplied by the stripe count if it is known, below which nothing is reported."
    least_balance: float = 0.5
    """Number of files of the worker with the fewest, divided by that of the worker with the most."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all places in which each file is written by only one worker."""
    faults = faults_of(facts, settings)
    count = faults.total("count")
    if not faults or not costs.worth_a_word(facts, faults.time_ns, count):
        return
    stripes = max(_stripes(facts, row["mount_point"]) or 1 for row in faults.rows)
    values: dict[str, Scalar] = {
        "files": faults.file_count,
        "workers": max(int(row["workers"]) for row in faults.rows),
        "mean_bytes": faults.total("bytes") / faults.file_count,
        "calls": count,
        "stripes": stripes,
        "objects": sum(_objects(facts, row) for row in faults.rows),
    }
    yield Candidate(
        message=Message(_STRIPED if stripes > 1 else _MESSAGE, values),
        count=count,
        time_ns=faults.time_ns,
        evidence={"count": count, "time_ns": faults.time_ns, "bytes": faults.total("bytes"), **values},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="open",
        confidence=0.75,
        gain=costs.CALLS_GO,
        pieces=Pieces.OPENS,
    )


def faults_of(facts: Facts, settings: Settings) -> Faults:
    """Returns the name patterns that have many files, each written by one worker, with the number of
    `workers`. Needs the derived tables `file_work` and `workers`."""
    if not workers.side_by_side(facts):
        return Faults([])
    rows = facts.rows(_sql(settings))
    return Faults([row for row in rows if _objects(facts, row) >= settings.least_files])


def _stripes(facts: Facts, mount_point: str | None) -> int | None:
    system = facts.settings.file_system(mount_point)
    return system.stripe_count if system else None


def _objects(facts: Facts, row: dict[str, object]) -> int:
    """Returns the number of objects on the storage servers. Each file has as many objects as stripes."""
    mount = row["mount_point"]
    return int(str(row["file_count"])) * (_stripes(facts, str(mount) if mount is not None else None) or 1)


def _sql(settings: Settings) -> str:
    return f"""WITH written AS (SELECT w.file_id, any_value(k.team) AS team, any_value(k.worker) AS worker,
    sum(w.metadata) AS calls, sum(w.metadata_ns) AS time_ns, sum(w.written_bytes) AS bytes
  FROM file_work w JOIN workers k ON k.upid = w.upid JOIN files f ON f.file_id = w.file_id
  WHERE w.writes > 0 AND w.opens > 0 AND f.file_id IN (FROM data_files) AND f.name NOT LIKE '/dev/%'
  GROUP BY w.file_id HAVING min(k.worker) = max(k.worker)),
patterns AS (SELECT w.*, coalesce(f.pattern, f.name) AS name, f.mount_point FROM written w
  JOIN files f ON f.file_id = w.file_id),
each AS (SELECT name, team, worker, count(*) AS files FROM patterns GROUP BY ALL),
even AS (SELECT name, team, count(*) AS workers FROM each GROUP BY ALL
  HAVING count(*) >= {settings.least_workers} AND min(files) >= {settings.least_balance} * max(files))
SELECT p.name, any_value(p.mount_point) AS mount_point, count(*) AS file_count,
  any_value(e.workers) AS workers,
  CAST(sum(p.calls) AS BIGINT) AS count, CAST(sum(p.time_ns) AS BIGINT) AS time_ns,
  CAST(sum(p.bytes) AS BIGINT) AS bytes
FROM patterns p JOIN even e ON e.name = p.name AND e.team = p.team
GROUP BY p.name ORDER BY time_ns DESC NULLS LAST, file_count DESC, p.name"""


_QUERY = """SELECT rank, pid, count(DISTINCT file) AS files, sum(bytes) AS bytes, sum(dur) AS time_ns
FROM call_ends WHERE kind IN ('file', 'regular') GROUP BY rank, pid ORDER BY files DESC"""
_MESSAGE = N_(
    "Each of {workers} ranks or processes wrote files of its own, {files} in all with {mean_bytes} on "
    "average; creating and closing them took {calls} calls."
)
_STRIPED = N_(
    "Each of {workers} ranks or processes wrote files of its own, {files} in all with {mean_bytes} on "
    "average; with {stripes} stripes each these are {objects} objects on the servers."
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for files that one rank alone wrote, found in counters over all ranks."""
    faults = counted.files(facts, "t.rank IS NOT NULL AND t.written_bytes > 0")
    own = Counter(row["rank"] for row in faults.rows)
    is_even = bool(own) and min(own.values()) >= settings.least_balance * max(own.values())
    if len(own) < settings.least_workers or len(faults.rows) < settings.least_files or not is_even:
        return
    calls = sum(faults.total(name) for name in ("opens", "stats"))
    if not counted.matters(facts, faults.total("meta_ns"), calls):
        return
    values: dict[str, Scalar] = {
        "files": faults.file_count, "workers": len(own), "calls": calls,
        "mean_bytes": faults.total("written_bytes") / faults.file_count,
    }  # fmt: skip
    yield counted.candidate(
        facts, faults, _MESSAGE, values, cost_ns=faults.total("meta_ns"), count=calls, call="open",
        gain=costs.CALLS_GO,
    )  # fmt: skip


RULE = Rule(
    name="file-per-process",
    title=N_("A flood of files, some for each rank"),
    looks_for=N_("Ranks, or parallel processes, that each write many files of their own."),
    why=N_(
        "All ranks create their files at the same moment, on one metadata server; and the number of files, "
        "times their stripes, grows with the job."
    ),
    advice=advise(
        any=N_("Write one file for all ranks, or one for each node; and keep one file for all steps."),
        c=N_("Keep the rank's file open over all steps and append, or write one shared file with MPI-IO."),
        fortran=N_("Keep the rank's unit open over all steps, or write one shared file with MPI-IO or HDF5."),
        python=N_("Write one HDF5 or zarr file for all workers, or let one process collect the results."),
        mpi_io=N_(
            "MPI_File_open on the whole communicator, and MPI_File_write_at_all; or one file per node "
            "(SIONlib)."
        ),
        hdf5=N_("One file with H5Pset_fapl_mpio; a dataset per variable with a time dimension."),
        administrator=N_("Set a stripe count of 1 on folders of such files (lfs setstripe -c 1)."),
    ),
    fine_when=N_("There are few ranks, or few large files, or the files are on a disk of the node."),
    settings=Settings,
    find=find,
    counters=in_counters,
    counters_need=(Need.RANKS,),
    needs=(
        Need.EVERY_RANK,
        Need.RANKS_OWN,
    ),
    views=("file_work", "workers", "data_files", "counted_files"),
    yields_to=("open-close-loop", "sync-heavy"),
    case="shared-file",
)
