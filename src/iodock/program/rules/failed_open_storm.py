"""Finds opens of missing files: those of a loader or interpreter with a long search path, and those of
names that a program tries repeatedly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, search_path
from iodock.program.rules.base import Candidate, Facts, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `failed-open-storm`."""

    least_count: int = 300
    "Minimum number of failed look-ups of one process; fewer are part of its start."
    least_folders: int = 20
    """Number of folders in which one process searches for one name: from this number on the search path is
    too long. The system's own path is shorter."""
    waiting_count: int = 20
    """Number of stats of one missing file by one process, from which on the process may be waiting for the
    file: that is `stat-storm`."""
    most_waited: int = 10
    """Number of missing files that a process may wait for. A process that queries more is searching."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for search paths of many folders, and one for all other failed look-ups."""
    yield from _along_paths(facts, settings)
    faults = Faults(facts.rows(_sql(settings)))
    count = faults.total("count")
    if count < settings.least_count or not costs.worth_a_word(facts, faults.time_ns, count):
        return
    most = faults.rows[0]
    # The longest call is not part of the cost. It waits for the disk or server, and the others find the
    # folder in the cache.
    cold_ns = max(int(row["longest_ns"] or 0) for row in faults.rows)
    time_ns = None if faults.time_ns is None else faults.time_ns - cold_ns
    values: dict[str, Scalar] = {
        "count": count,
        "files": faults.file_count,
        "name": str(most["name"]),
        "name_count": int(most["count"]),
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=time_ns,
        evidence={"count": count, "time_ns": time_ns, "missing_files": faults.file_count},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call=most["call"],
        confidence=0.85,
        gain=(0.4, 1.0),
    )


def _along_paths(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    faults = Faults(facts.rows(_folders_sql(settings)))
    count = faults.total("count")
    if count < settings.least_count or not costs.worth_a_word(facts, faults.time_ns, count):
        return
    variable = str(max(faults.rows, key=lambda row: int(row["count"]))["variable"])
    values: dict[str, Scalar] = {
        "count": count,
        "folders": len(faults.rows),
        "never": sum(bool(row["never"]) for row in faults.rows),
        "variable": variable,
        "processes": max(int(row["processes"]) for row in faults.rows),
        "name": str(faults.rows[0]["base"]),
    }
    yield Candidate(
        message=Message(search_path.MESSAGE, values),
        count=count,
        time_ns=faults.time_ns,
        evidence={"time_ns": faults.time_ns, **values},
        query=_QUERY,
        files=faults.files,
        file_count=len(faults.rows),
        confidence=0.85,
        gain=(0.4, 1.0),
        advice=search_path.advice(variable),
    )


def _folders_sql(settings: Settings) -> str:
    return f"""WITH had AS (SELECT DISTINCT rtrim(f.folder, '/') AS folder FROM uses u
  JOIN calls c ON c.id = u.call_id JOIN files f ON f.file_id = u.file_id
  WHERE c.family IN ('open', 'execve') AND u.errno_id IS NULL AND f.kind <> 'directory')
SELECT folder AS name, CAST(sum(count) AS BIGINT) AS count, CAST(sum(time_ns) AS BIGINT) AS time_ns,
  count(DISTINCT upid) AS processes, arg_max(variable, count) AS variable, min(base) AS base,
  folder NOT IN (FROM had) AS never
FROM search_paths WHERE folders >= {settings.least_folders}
GROUP BY folder ORDER BY never DESC, time_ns DESC NULLS LAST, count DESC, name"""


def _sql(settings: Settings) -> str:
    return f"""WITH missed AS (SELECT u.file_id, s.upid, c.name AS call, sum(u.count) AS count,
    sum(u.time_ns) AS time_ns, max(u.longest_ns) AS longest_ns, c.family IN ('stat', 'access') AS asks
  FROM uses u JOIN calls c ON c.id = u.call_id JOIN errnos x ON x.id = u.errno_id
    JOIN processes s ON s.utid = u.utid LEFT JOIN programs g ON g.upid = s.upid
  WHERE c.family IN ('open', 'access', 'stat', 'execve', 'readlink') AND x.name IN ('ENOENT', 'ENOTDIR')
    AND g.is_tool IS NOT TRUE AND (u.file_id, u.utid) NOT IN (
      SELECT (file_id, utid) FROM search_paths WHERE folders >= {settings.least_folders}) GROUP BY ALL),
waited AS (SELECT file_id, upid FROM missed WHERE asks AND count >= {settings.waiting_count}
  QUALIFY count(*) OVER (PARTITION BY upid) <= {settings.most_waited}
    OR file_id IN (SELECT file_id FROM uses WHERE errno_id IS NULL))
SELECT p.name, count(DISTINCT m.file_id) AS file_count, arg_max(m.call, m.count) AS call,
  CAST(sum(m.count) AS BIGINT) AS count, CAST(sum(m.time_ns) AS BIGINT) AS time_ns,
  max({costs.unless_hung("m.longest_ns")}) AS longest_ns
FROM missed m JOIN places p ON p.file_id = m.file_id
WHERE (NOT m.asks OR (m.file_id, m.upid) NOT IN (SELECT (file_id, upid) FROM waited))
  AND m.upid IN (SELECT upid FROM missed GROUP BY upid HAVING sum(count) >= {settings.least_count})
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


_QUERY = """SELECT file, call, errno, count(*) AS count, sum(dur) AS time_ns FROM call_ends
WHERE errno IN ('ENOENT', 'ENOTDIR') AND family IN ('open', 'access', 'stat', 'execve', 'readlink')
GROUP BY file, call, errno ORDER BY count DESC"""
_MESSAGE = N_(
    "{count} calls looked for files that do not exist; different names: {files}. The most frequent, "
    "{name_count} times, was {name}."
)

RULE = Rule(
    name="failed-open-storm",
    title=N_("Searches for files that do not exist"),
    looks_for=N_(
        "Many opens and look-ups of names that do not exist: long search paths, or the same name again."
    ),
    why=N_(
        "Each failed look-up is a trip to the metadata server: clients rarely cache names that do not "
        "exist. With many processes it becomes a storm."
    ),
    advice=advise(
        any=N_("Name the file by its full path, or put the folder that has it first in the search path."),
        c=N_(
            "Remember where a file was found, and open it there; take unneeded folders out of "
            "LD_LIBRARY_PATH."
        ),
        cpp=N_(
            "Remember where a file was found, and open it there; take unneeded folders out of "
            "LD_LIBRARY_PATH."
        ),
        fortran=N_("Give OPEN the full path, and remember the folder in which the first file was found."),
        python=N_(
            "Shorten sys.path and PYTHONPATH, or pack the modules into one zip file or a container image."
        ),
        shell=N_("Call programs by their full path, or shorten PATH."),
        administrator=N_(
            "Short search paths in modules; an empty configuration file stops a loader's search for it."
        ),
    ),
    fine_when=N_("A program looks for optional settings once when it starts."),
    settings=Settings,
    find=find,
    views=("uses", "places", "programs", "search_paths"),
    yields_to=("process-storm", "slow-call"),
    case="shell-loop",
)
