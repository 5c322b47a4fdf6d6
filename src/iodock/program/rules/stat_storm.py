"""The same files asked for their state again and again, far more often than they are opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `stat-storm`."""

    least_count: int = 500
    """Fewer stats beyond the needed ones than this are not worth a word."""
    least_repeats: int = 3
    """Stats of one file by one process from which on it is asked too often."""
    least_repeats_elsewhere: int = 20
    """The same for folders, for what belongs to the system or to a program, and for tools (make, tar)."""
    least_ratio: float = 3.0
    """Stats for each open: a program that opens as often has another problem."""
    most_folders: int = 500
    """So many folders, those asked most often, may be steps on the paths of files that are opened."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: all files that a process asked too often. The first question about each is free."""
    faults = Faults(facts.rows(_sql(settings)))
    count = faults.total("count")
    if count < settings.least_count or not costs.worth_a_word(facts, faults.time_ns, count):
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


# At each import Python asks every folder of its search path: its own library as often as the others.
_IMPORTS = r"""SELECT w.upid, 2 * max(w.stats) AS stats FROM file_work w JOIN files f ON f.file_id = w.file_id
WHERE f.kind = 'directory' AND regexp_matches(f.name, '/lib(64)?/python3\.[0-9]+$') GROUP BY w.upid"""


# Who follows a path asks each folder on it, and does so to open what lies there: that is no question about
# the folder. A folder that alone is asked before each open is none of these.
def _walked(settings: Settings) -> str:
    return f"""opened AS (SELECT p.upid, rtrim(f.folder, '/') AS folder, sum(u.count) AS opens
  FROM uses u JOIN calls c ON c.id = u.call_id JOIN processes p ON p.utid = u.utid
    JOIN files f ON f.file_id = u.file_id
  WHERE c.family = 'open' GROUP BY ALL),
asked AS (SELECT w.upid, w.file_id, f.name, rtrim(f.folder, '/') AS folder, w.stats FROM file_work w
  JOIN files f ON f.file_id = w.file_id
  WHERE f.kind IN ('directory', 'symlink') AND w.stats >= {settings.least_repeats_elsewhere}
  ORDER BY w.stats DESC, w.file_id LIMIT {settings.most_folders}),
walked AS (SELECT a.upid, a.file_id FROM asked a JOIN asked b ON b.upid = a.upid
    AND (b.name = a.folder OR b.folder = a.name) AND 2 * b.stats >= a.stats
  WHERE a.stats < {settings.least_ratio} * (SELECT sum(o.opens) FROM opened o
    WHERE o.upid = a.upid AND (o.folder = a.name OR starts_with(o.folder, a.name || '/'))))"""


# A compiler follows the path of each file that it includes, folder by folder.
def _sql(settings: Settings) -> str:
    return f"""WITH imports AS ({_IMPORTS}),
{_walked(settings)}
SELECT p.name, count(DISTINCT w.file_id) AS file_count, CAST(sum(w.stats) AS BIGINT) AS asked,
  CAST(sum(w.stats - 1) AS BIGINT) AS count, CAST(sum(w.opens) AS BIGINT) AS opens,
  CAST(sum({costs.repeated_ns("w.stat_ns", "w.stats", "w.longest_stat_ns")}) AS BIGINT) AS time_ns
FROM file_work w JOIN places p ON p.file_id = w.file_id JOIN files f ON f.file_id = w.file_id
  LEFT JOIN programs g ON g.upid = w.upid LEFT JOIN imports i ON i.upid = w.upid
WHERE NOT (f.kind = 'directory' AND w.stats <= coalesce(i.stats, 0))
  AND (w.upid, w.file_id) NOT IN (SELECT (upid, file_id) FROM walked)
  AND w.stats >= {settings.least_repeats}
  AND (f.file_id IN (FROM plain_files) OR f.kind IN ('directory', 'symlink'))
  AND NOT (g.builds IS TRUE AND w.opens = 0)
  AND w.stats >= CASE WHEN g.is_tool IS TRUE OR NOT f.file_id IN (FROM data_files)
    THEN {settings.least_repeats_elsewhere}
    ELSE {settings.least_repeats} END AND w.stats >= {settings.least_ratio} * w.opens
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


_QUERY = """SELECT file, call, pid, count(*) AS count, sum(dur) AS time_ns FROM call_ends
WHERE family IN ('stat', 'access', 'readlink') GROUP BY file, call, pid ORDER BY count DESC"""
_MESSAGE = N_(
    "{asked} stats of files that were asked {mean} times on average; files: {files}. Opens of these "
    "files: {opens}."
)

RULE = Rule(
    name="stat-storm",
    title=N_("The same files asked for their state again and again"),
    looks_for=N_("Files that one process stats many times, far more often than it opens them."),
    why=N_(
        "Each stat may be a trip to the metadata server, which serves everybody; on many file systems it "
        "becomes slower the more processes ask."
    ),
    advice=advise(
        any=N_("Ask once and keep the answer; wait for a file with inotify, or with longer pauses."),
        c=N_("Keep the struct stat; use fstat on an open descriptor in place of stat on the name."),
        cpp=N_(
            "Keep a std::filesystem::directory_entry, which remembers the state, in place of asking by name."
        ),
        fortran=N_("INQUIRE once and keep the answer in a variable; don't ask before each OPEN."),
        python=N_(
            "Use os.scandir, whose entries remember the state, in place of os.path.exists, isfile and "
            "getsize on each name; open and catch FileNotFoundError in place of asking first."
        ),
        shell=N_("Don't test a file in each pass of a loop: let find select by age, size or kind in one go."),
        mpi_io=N_("Let rank 0 ask, and send the answer to the others with MPI_Bcast."),
    ),
    fine_when=N_("Each file is asked once (ls -l, git status, make), or a change must be noticed at once."),
    settings=Settings,
    find=find,
    views=("file_work", "places", "programs", "uses", "data_files", "plain_files"),
    yields_to=("process-storm", "slow-call", "failed-open-storm"),
    case="stat-storm",
)
