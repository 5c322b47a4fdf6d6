"""Finds thousands of small files, each of which is opened to be created or read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, counted, file_per_process
from iodock.program.rules.base import Candidate, Facts, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.engine.sql import quoted
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `tiny-file-flood`."""

    least_files: int = 500
    "Number of small files below which nothing is reported."
    most_bytes: int = 65536
    "Maximum number of bytes transferred for each open of a file by one process, for the file to be small."
    most_opens: int = 19
    "Maximum number of opens of a file by one process: more opens are an `open-close-loop`."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: the small files of all places that have numbers in their names. Source trees,
    whose files have individual names, are left out, and so are tools that traverse trees."""
    faults = Faults(facts.rows(_sql(settings, _of_workers(facts, settings))))
    if faults.file_count < settings.least_files:
        return
    opens = faults.total("count")
    if not costs.worth_a_word(facts, faults.time_ns, faults.total("calls")):
        return
    values = {
        "files": faults.file_count,
        "mean_bytes": faults.total("needed_bytes") / faults.file_count,
        "opens": opens,
        "calls": faults.total("calls"),
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=faults.total("calls") + faults.total("others"),
        time_ns=faults.time_ns,
        evidence={"count": faults.total("calls"), "time_ns": faults.time_ns, **values},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="open",
        confidence=0.75,
        gain=costs.CALLS_GO,
        pieces=Pieces.OPENS,
    )


def _of_workers(facts: Facts, settings: Settings) -> str:
    """Returns an SQL list of the name patterns that have many files only because there are many workers.
    `file-per-process` reports these."""
    chosen = facts.settings.of_rule("file-per-process", file_per_process.Settings)
    few = [
        str(row["name"])
        for row in file_per_process.faults_of(facts, chosen).rows
        if int(row["file_count"]) < settings.least_files * int(row["workers"])
    ]
    return ", ".join(quoted(name) for name in few) or "NULL"


# Files of one folder with names of equal length count as numbered, even if the numbers are letters, as in the
# output of `split`. Files in numbered folders count as well if their names are similar. In a single file, a
# buffer would combine the small pieces, so their calls would be saved, but not all of their time.
def _sql(settings: Settings, of_workers: str) -> str:
    return f"""WITH lengths AS (SELECT file_id, count(*) OVER (PARTITION BY length(name), {_FOLDER}) AS alike
  FROM files f WHERE f.file_id IN (FROM plain_files)),
folders AS (SELECT file_id, count(*) OVER (PARTITION BY pattern, length({_LAST})) AS alike FROM files f
  WHERE f.file_id IN (FROM plain_files) AND {_IN_NUMBERED}),
series AS (SELECT file_id FROM lengths WHERE alike >= {settings.least_files}
  UNION SELECT file_id FROM folders WHERE alike >= {settings.least_files}),
small AS (SELECT w.file_id, sum(w.opens) AS opens, sum(w.metadata) AS calls,
    sum(w.seeks + w.others + w.reads + w.writes) AS others, sum(w.read_bytes + w.written_bytes) AS bytes,
    sum(w.metadata_ns + coalesce(w.seek_ns, 0) + coalesce(w.other_ns, 0) + {_FETCHING}) AS time_ns
  FROM file_work w JOIN files f ON f.file_id = w.file_id LEFT JOIN programs g ON g.upid = w.upid
  WHERE w.opens BETWEEN 1 AND {settings.most_opens} AND w.reads + w.writes > 0
    AND w.read_bytes + w.written_bytes <= {settings.most_bytes} * w.opens
    AND f.file_id IN (FROM data_files) AND ({_NUMBERED} OR w.file_id IN (FROM series))
    AND g.is_tool IS NOT TRUE
    AND coalesce(coalesce(f.pattern, f.name) NOT IN ({of_workers}), true)
  GROUP BY w.file_id)
SELECT p.name, count(*) AS file_count, CAST(sum(s.opens) AS BIGINT) AS count,
  CAST(sum(s.calls) AS BIGINT) AS calls, CAST(sum(s.others) AS BIGINT) AS others,
  CAST(sum(least(s.bytes / s.opens, f.size_bytes)) AS BIGINT) AS needed_bytes,
  CAST(sum(s.time_ns) AS BIGINT) AS time_ns
FROM small s JOIN places p ON p.file_id = s.file_id JOIN files f ON f.file_id = s.file_id
GROUP BY p.place, p.name ORDER BY file_count DESC, time_ns DESC NULLS LAST, p.name"""


# Lowest rate of a device, in bytes/s. The kernel does not read ahead from one file to the next, so each file
# waits for its device again. If all data were in one file, it would be read at the device's rate. Files that
# were read faster than this came from the page cache.
_DEVICE_BYTES_PER_S = 200_000_000
_FETCHING = f"greatest(0, coalesce(w.read_ns, 0) - 1e9 * w.read_bytes / {_DEVICE_BYTES_PER_S})"
_NUMBERED = r"regexp_matches(f.name, '[0-9][^/]*$')"
_IN_NUMBERED = r"regexp_matches(f.name, '[0-9][^/]*/[^/]*$')"
_LAST = r"regexp_extract(f.name, '[^/]*$')"
_FOLDER = r"regexp_extract(f.name, '^(.*)/', 1)"
_QUERY = """SELECT folder, count(DISTINCT file) AS files, sum(bytes) AS bytes, sum(dur) AS time_ns
FROM call_ends WHERE kind IN ('file', 'regular') GROUP BY folder ORDER BY files DESC"""
_MESSAGE = N_(
    "{files} small files, {mean_bytes} each on average, were opened {opens} times; calls that opened, "
    "checked, closed or removed them: {calls}."
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for tiny files in counters: many files with few bytes transferred for each
    open."""
    moved = "t.read_bytes + t.written_bytes"
    few = f"t.opens BETWEEN 1 AND {settings.most_opens} * t.ranks * t.files"
    faults = counted.files(facts, f"{few} AND {moved} <= {settings.most_bytes} * t.opens", together=True)
    calls, spent = faults.total("opens") + faults.total("stats"), faults.total("meta_ns")
    if faults.file_count < settings.least_files or not counted.matters(facts, spent, calls):
        return
    size = faults.total("read_bytes") + faults.total("written_bytes")
    values: dict[str, Scalar] = {
        "files": faults.file_count, "mean_bytes": size / faults.file_count, "opens": faults.total("opens"),
        "calls": calls,
    }  # fmt: skip
    yield counted.candidate(
        facts, faults, _MESSAGE, values, cost_ns=spent, count=calls, call="open", gain=costs.CALLS_GO
    )


RULE = Rule(
    name="tiny-file-flood",
    title=N_("A flood of tiny files"),
    looks_for=N_("Many hundreds of numbered small files that are each created or read."),
    why=N_(
        "Each file costs several calls to the metadata server, however small it is, and later slows down "
        "listing, copying and backup, too."
    ),
    advice=advise(
        any=N_("Put the records into one file, or an archive that is read from one end to the other."),
        c=N_("Append all records to one file with an index of offsets, or use HDF5, NetCDF or SQLite."),
        cpp=N_("Append all records to one file with an index of offsets, or use HDF5, NetCDF or SQLite."),
        fortran=N_(
            "Write all steps into one direct-access or stream file, or use NetCDF with a time dimension."
        ),
        python=N_(
            "Use h5py, zarr with large chunks, numpy.savez or SQLite; read training data from shards (tar)."
        ),
        numpy=N_("numpy.save one stack of all arrays; numpy.load(file, mmap_mode='r') reads parts of it."),
        pandas=N_("Write pandas.concat(tables).to_parquet(...), with a column for each table's name."),
        zarr=N_(
            "Each chunk is a file: give zarr.create_array chunks= of 1 MiB or more or, in zarr 3, shards= "
            "that hold many chunks."
        ),
        shell=N_("Let one command write one file, with the record's name in a column."),
        mpi_io=N_("Write all ranks' pieces into one shared file with MPI_File_write_at_all."),
        hdf5=N_("One file with many datasets, or one dataset that can grow (H5Dset_extent)."),
    ),
    fine_when=N_("The files are needed one by one, and they are few at a time."),
    settings=Settings,
    find=find,
    counters=in_counters,
    views=("file_work", "places", "programs", "workers", "data_files", "plain_files", "counted_files"),
    yields_to=("process-storm", "sync-heavy", "slow-call"),
    case="tiny-files",
)
