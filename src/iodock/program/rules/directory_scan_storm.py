"""Finds folders that a process lists many times."""

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
    """Holds the thresholds of the rule `directory-scan-storm`."""

    least_scans: int = 5
    """Number of times that one process lists a folder: from this number on it is too many."""
    least_scans_elsewhere: int = 10
    """The same threshold for folders of the system, for tools (find, tar), and for processes that were
    started together to run the same program."""
    least_count: int = 50
    "Number of unnecessary listings below which nothing is reported."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all folders that a process listed too often. The first listing of each folder
    is not counted."""
    faults = Faults(facts.rows(_sql(settings)))
    count = faults.total("count")
    if count < settings.least_count or not costs.worth_a_word(facts, faults.time_ns, count):
        return
    scans, reads = faults.total("scans"), faults.total("reads")
    values = {"scans": scans, "folders": faults.file_count, "calls": reads}
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=faults.time_ns,
        evidence={"count": count, "time_ns": faults.time_ns, **values},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="getdents64",
        gain=(0.5, 1.0),
        pieces=Pieces.LISTINGS,
        again=count / scans,
    )


# A listing begins with an open, or with a seek back to the start (rewinddir). Libraries make more calls on
# the open folder: most make one fstat, and Go's runtime makes four fcntl.
def _sql(settings: Settings) -> str:
    return f"""WITH teams AS (SELECT upid, min(upid) OVER (PARTITION BY owner, program) AS first
  FROM siblings WHERE program IS NOT NULL AND alike_of_owner >= {settings.least_scans_elsewhere}),
listed AS (SELECT u.file_id, coalesce(t.first, s.upid) AS upid,
    bool_or(t.first IS NOT NULL OR g.is_tool IS TRUE OR {_SYSTEM}) AS elsewhere,
    sum(u.count) FILTER (WHERE c.family = 'getdents') AS reads,
    coalesce(sum(u.count) FILTER (WHERE c.family = 'open' AND u.errno_id IS NULL), 0)
      + coalesce(sum(u.count) FILTER (WHERE c.class = 'seek'), 0) AS scans,
    sum(u.time_ns) AS time_ns, max(u.longest_ns) AS longest_ns
  FROM uses u JOIN files f ON f.file_id = u.file_id JOIN calls c ON c.id = u.call_id
    JOIN processes s ON s.utid = u.utid
    LEFT JOIN teams t ON t.upid = s.upid AND NOT {_MODULES}
    LEFT JOIN programs g ON g.upid = s.upid
  WHERE f.kind = 'directory' GROUP BY u.file_id, coalesce(t.first, s.upid))
SELECT p.name, count(DISTINCT l.file_id) AS file_count, CAST(sum(l.scans) AS BIGINT) AS scans,
  CAST(sum(l.scans - 1) AS BIGINT) AS count, CAST(sum(l.reads) AS BIGINT) AS reads,
  CAST(sum({costs.repeated_ns("l.time_ns", "l.scans", "l.longest_ns")}) AS BIGINT) AS time_ns
FROM listed l JOIN places p ON p.file_id = l.file_id
WHERE l.scans >= CASE WHEN l.elsewhere THEN {settings.least_scans_elsewhere}
    ELSE {settings.least_scans} END AND l.reads >= l.scans
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


# In these folders, libraries search for processors, devices and modules when a program starts.
_SYSTEM = "regexp_matches(f.name, '^/(proc|sys|dev|usr|lib|lib32|lib64|etc|opt)(/|$)')"
# In these folders, each process looks for its modules when it starts, whatever it does later.
_MODULES = "regexp_matches(f.name, '/(s?bin|lib|lib32|lib64|libexec|site-packages|node_modules)(/|$)')"
_QUERY = """SELECT file, pid, call, count(*) AS count, sum(dur) AS time_ns FROM call_ends
WHERE kind = 'directory' AND family IN ('open', 'getdents', 'close') GROUP BY file, pid, call
ORDER BY count DESC"""
_MESSAGE = N_(
    "{scans} listings of folders that the same program had listed before, {calls} getdents calls; "
    "folders: {folders}"
)

RULE = Rule(
    name="directory-scan-storm",
    title=N_("The same folder listed again and again"),
    looks_for=N_("Folders that one process lists (getdents) many times."),
    why=N_(
        "A listing reads all names from the metadata server; a large folder takes seconds, and while "
        "others create files in it, it must be fetched again each time."
    ),
    advice=advise(
        any=N_(
            "List the folder once and keep the names; to wait for new files use inotify or longer pauses."
        ),
        c=N_("Keep the list of names, or build the name and open it; readdir only once."),
        python=N_("Call os.scandir or glob once before the loop. For a known name, try to open the file."),
        shell=N_("Expand the pattern once (set -- *.dat) before the loop, or let find -newer select."),
        mpi_io=N_("Let rank 0 list the folder, and send the names with MPI_Bcast."),
    ),
    fine_when=N_("A server or a queue that must notice new files, with pauses between."),
    settings=Settings,
    find=find,
    views=("uses", "places", "siblings", "programs"),
    yields_to=("slow-call",),
    case="stat-storm",
)
