"""Finds files whose attributes a process queries repeatedly, far more often than it opens files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, counted
from iodock.program.rules.base import Candidate, Facts, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `stat-storm`."""

    least_repeats: int = 3
    """Number of stats of one file by one process: from this number on there are too many."""
    least_repeats_elsewhere: int = 20
    "The same threshold for folders, and for files of the system or of a program."
    least_ratio: float = 3.0
    """Number of stats for each open of the file: a program with as many opens has another problem. Following
    a path queries each folder on it, in order to open a file below it: for folders and links the number is
    for each open of any file."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all files that a process queried too often. The first query of each file is
    not counted."""
    faults = Faults(facts.rows(_sql(settings)))
    count = faults.total("count")
    if not faults or not costs.worth_a_word(facts, faults.time_ns, count):
        return
    asked = faults.total("asked")
    values = {
        "asked": asked,
        "files": faults.file_count,
        "mean": asked / max(1, asked - count),
        "opens": faults.total("opens"),
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=faults.time_ns,
        evidence={"count": count, "asked": asked, "time_ns": faults.time_ns, "opens": values["opens"]},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="stat",
        gain=costs.CALLS_GO,
        pieces=Pieces.CALLS,
    )


# The SQL excludes tools, because they do what the user requested: make examines each file, and a compiler
# follows the path of each included file.
def _sql(settings: Settings) -> str:
    return f"""WITH opened AS (SELECT p.upid, sum(u.count) AS opens
  FROM uses u JOIN calls c ON c.id = u.call_id JOIN processes p ON p.utid = u.utid
  WHERE c.family = 'open' GROUP BY p.upid)
SELECT p.name, count(DISTINCT w.file_id) AS file_count, CAST(sum(w.stats) AS BIGINT) AS asked,
  CAST(sum(w.stats - 1) AS BIGINT) AS count, CAST(sum(w.opens) AS BIGINT) AS opens,
  CAST(sum({costs.repeated_ns("w.stat_ns", "w.stats", "w.longest_stat_ns")}) AS BIGINT) AS time_ns
FROM file_work w JOIN files f ON f.file_id = w.file_id JOIN places p ON p.file_id = w.file_id
  LEFT JOIN programs g ON g.upid = w.upid LEFT JOIN opened o ON o.upid = w.upid
WHERE (f.file_id IN (FROM plain_files) OR f.kind IN ('directory', 'symlink')) AND g.is_tool IS NOT TRUE
  AND w.stats >= CASE WHEN f.file_id IN (FROM data_files) THEN {settings.least_repeats}
    ELSE {settings.least_repeats_elsewhere} END
  AND w.stats >= {settings.least_ratio}
    * CASE WHEN f.kind IN ('directory', 'symlink') THEN coalesce(o.opens, 0) ELSE w.opens END
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


_QUERY = """SELECT file, call, pid, count(*) AS count, sum(dur) AS time_ns FROM call_ends
WHERE family IN ('stat', 'access', 'readlink') GROUP BY file, call, pid ORDER BY count DESC"""
_MESSAGE = N_(
    "The attributes of files were checked {asked} times, {mean} times each on average; files: {files}. "
    "Opens of these files: {opens}."
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for stats in counters. Their time is estimated as their share of the time of
    metadata calls."""
    faults = counted.files(
        facts,
        f"t.stats >= {settings.least_repeats} * t.ranks AND t.stats >= {settings.least_ratio} * t.opens",
    )
    asked = faults.total("stats")
    count = asked - sum(int(row["ranks"]) for row in faults.rows)
    if not faults or not counted.matters(facts, None, count):
        return
    values: dict[str, Scalar] = {
        "asked": asked, "files": faults.file_count, "mean": asked / max(1, asked - count),
        "opens": faults.total("opens"),
    }  # fmt: skip
    cost = round(sum(row["meta_ns"] * row["stats"] / counted.metadata(row) for row in faults.rows))
    yield counted.candidate(
        facts, faults, _MESSAGE, values, cost_ns=cost, count=count, call="stat", gain=costs.CALLS_GO
    )


RULE = Rule(
    name="stat-storm",
    title=N_("Attributes of the same files checked again and again"),
    looks_for=N_(
        "Files whose attributes one process checks many times (stat), far more often than it opens them."
    ),
    why=N_(
        "Each stat may be a trip to the metadata server, which serves all users; on many file systems "
        "it becomes slower the more processes send them."
    ),
    advice=advise(
        any=N_("Check once and keep the result; wait for a file with inotify, or with longer pauses."),
        c=N_("Keep the struct stat; use fstat on an open descriptor in place of stat on the name."),
        cpp=N_(
            "Keep a std::filesystem::directory_entry, which caches the attributes, instead of "
            "checking by name."
        ),
        fortran=N_(
            "Call INQUIRE once and keep the result in a variable, instead of repeating it before each OPEN."
        ),
        python=N_(
            "Use os.scandir, whose entries cache the attributes, instead of os.path.exists, isfile and "
            "getsize on each name; open and catch FileNotFoundError instead of checking first."
        ),
        shell=N_(
            "Don't test a file in each iteration of a loop: let find select all files by age, size "
            "or type in one run."
        ),
        mpi_io=N_("Let rank 0 check, and send the result to the others with MPI_Bcast."),
    ),
    fine_when=N_("Each file is checked once (ls -l, git status, make), or a change must be noticed at once."),
    settings=Settings,
    find=find,
    counters=in_counters,
    views=("file_work", "places", "programs", "uses", "data_files", "plain_files", "counted_files"),
    yields_to=("slow-call", "failed-open-storm"),
    case="stat-storm",
)
