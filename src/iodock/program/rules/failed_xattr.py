"""Finds requests for extended attributes and access control lists that the file system always rejects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `failed-xattr`."""

    least_count: int = 1000
    "Number of failed queries below which nothing is reported."
    least_failed: float = 0.9
    "Minimum share of the queries that fail."
    quick_ns: int = 80000
    """Mean time of one query up to which there is only a note if ls, cp or a similar tool makes it: these
    tools always query."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for the failed requests on all files together."""
    faults = Faults(facts.rows(_SQL))
    failed, asked = faults.total("count"), faults.total("asked")
    if failed < settings.least_count or failed < settings.least_failed * asked:
        return
    longest = max(
        (int(row["longest_ns"]) for row in faults.rows if row["longest_ns"] is not None), default=None
    )
    values = {"failed": failed, "asked": asked, "files": faults.file_count, "longest_ns": longest}
    yield Candidate(
        message=Message(_MESSAGE if longest is not None else _MESSAGE_UNTIMED, values),
        count=failed,
        time_ns=faults.time_ns,
        evidence={"count": failed, "asked": asked, "time_ns": faults.time_ns, "longest_ns": longest},
        query=_QUERY,
        **faults.where,
        confidence=0.9,
        gain=costs.CALLS_GO,
        pieces=Pieces.CALLS,
        at_most=Severity.NOTE if _is_a_tools_habit(faults, failed, settings) else Severity.HIGH,
    )


def _is_a_tools_habit(faults: Faults, failed: int, settings: Settings) -> bool:
    """Returns whether only tools made the requests and each took little time. No change is worthwhile
    then."""
    quick = faults.time_ns is not None and faults.time_ns <= settings.quick_ns * failed
    return quick and faults.total("by_others") == 0


_SQL = """SELECT p.name, count(DISTINCT u.file_id) AS file_count, arg_max(c.name, u.count) AS call,
  CAST(sum(u.count) AS BIGINT) AS asked,
  CAST(coalesce(sum(u.count) FILTER (WHERE x.id IS NOT NULL), 0) AS BIGINT) AS count,
  CAST(sum(u.time_ns) FILTER (WHERE x.id IS NOT NULL) AS BIGINT) AS time_ns,
  max(u.longest_ns) FILTER (WHERE x.id IS NOT NULL) AS longest_ns,
  count(*) FILTER (WHERE g.walks IS NOT TRUE) AS by_others
FROM uses u JOIN calls c ON c.id = u.call_id JOIN places p ON p.file_id = u.file_id
  JOIN processes s ON s.utid = u.utid LEFT JOIN programs g ON g.upid = s.upid
  LEFT JOIN errnos x ON x.id = u.errno_id
    AND x.name IN ('EOPNOTSUPP', 'ENOTSUP', 'ENODATA', 'ENOSYS', 'ENOATTR', 'EPERM', 'EACCES')
WHERE c.family IN ('xattr', 'acl')
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""
_QUERY = """SELECT call, errno, count(*) AS count, sum(dur) AS time_ns, max(dur) AS longest_ns
FROM calls_seen WHERE family IN ('xattr', 'acl') GROUP BY call, errno ORDER BY time_ns DESC"""
_MESSAGE = N_(
    "{failed} of {asked} queries of extended attributes failed; files: {files}. The longest took "
    "{longest_ns}."
)
_MESSAGE_UNTIMED = N_("{failed} of {asked} queries of extended attributes failed; files: {files}.")

RULE = Rule(
    name="failed-xattr",
    title=N_("Queries of extended attributes that nearly all fail"),
    looks_for=N_(
        "Calls that query extended attributes or access lists (lgetxattr and the like), of which "
        "nearly all fail."
    ),
    why=N_(
        "The answer is always no (EOPNOTSUPP, ENODATA), but on a network file system each query may be "
        "a trip to the server, repeated for each file."
    ),
    advice=advise(
        any=N_(
            "Avoid options that query them: copy without -a or --preserve=xattr, list with ls -1 or "
            "\\ls in place of ls -l."
        ),
        c=N_("Query once for each file system, not for each file, and stop after EOPNOTSUPP."),
        python=N_("Query once for each file system; os.scandir lists a folder without querying attributes."),
        shell=N_("Use find -printf or ls -1 where sizes and access lists are not needed."),
        administrator=N_(
            "If access control lists are not used, mount with noacl, so that the client answers without a "
            "request to the server."
        ),
    ),
    fine_when=N_("This is a backup that must keep attributes, or there are only a few files."),
    settings=Settings,
    find=find,
    views=("uses", "places", "programs"),
    case="failed-attributes",
)
