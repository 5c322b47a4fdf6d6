"""A file read whole again and again, for a few bytes each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.findings import Message
from iodock.language import N_
from iodock.rules import costs
from iodock.rules.base import Candidate, Facts, Rule, advise
from iodock.rules.places import Faults


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `whole-file-for-a-few-bytes`."""

    least_times: int = 10
    """So often a file must be read whole."""
    least_part: float = 0.25
    """Share of the file that a short command must read: some stop where they have found something."""
    least_size_bytes: int = 16384
    """Smaller files are read whole by any single read."""
    most_output: float = 0.01
    """What the readers may write, as a share of what they read."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: files that short commands read whole, each anew. All readings but one are the cost."""
    faults = Faults(facts.rows(_sql(settings)))
    count, cost = faults.total("count"), faults.time_ns
    if not faults or not costs.worth_a_word(facts, cost, count):
        return
    times, moved = faults.total("times"), faults.total("bytes")
    values = {
        "times": times, "read_bytes": moved, "written_bytes": faults.total("written"),
        "files": faults.file_count,
    }  # fmt: skip
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=cost,
        evidence={"count": count, "times": times, "read_bytes": moved, "time_ns": cost},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="read",
        gain=(0.4, 1.0),
    )


# A process that reads the file several times itself is the business of `redundant-reads`.
def _sql(settings: Settings) -> str:
    return f"""WITH work AS (SELECT u.file_id, q.upid, CAST(sum(u.count) AS BIGINT) AS count,
    sum(u.bytes) AS bytes, sum(u.time_ns) AS time_ns FROM uses u JOIN processes q ON q.utid = u.utid
  WHERE u.direction = 1 AND u.bytes > 0 AND u.side = 0 GROUP BY u.file_id, q.upid),
output AS (SELECT q.upid, coalesce(sum(u.bytes) FILTER (WHERE u.direction = 2), 0) AS written,
    coalesce(sum(u.bytes) FILTER (WHERE u.direction = 1), 0) AS taken
  FROM uses u JOIN processes q ON q.utid = u.utid GROUP BY q.upid),
sizes AS (SELECT w.file_id, max(coalesce(f.size_bytes, w.bytes)) AS size FROM work w
  JOIN files f ON f.file_id = w.file_id GROUP BY w.file_id HAVING size >= {settings.least_size_bytes}),
readers AS (SELECT w.file_id, w.upid, w.count, w.bytes, w.time_ns, o.written
  FROM work w JOIN sizes s ON s.file_id = w.file_id JOIN output o ON o.upid = w.upid
    JOIN programs g ON g.upid = w.upid
  WHERE w.bytes BETWEEN {settings.least_part} * s.size AND 1.9 * s.size
    AND o.written <= {settings.most_output} * o.taken AND g.own)
SELECT p.name, count(DISTINCT r.file_id) AS file_count, CAST(sum(r.count) AS BIGINT) AS count,
  count(*) AS times, CAST(sum(r.bytes) AS BIGINT) AS bytes,
  CAST(sum(r.written) AS BIGINT) AS written,
  CAST(sum(r.time_ns) * (1 - count(DISTINCT r.file_id) / count(*)) AS BIGINT) AS time_ns
FROM readers r JOIN places l ON l.file_id = r.file_id JOIN place_names p ON p.place = l.place
  LEFT JOIN processes k ON k.utid = r.upid
WHERE {costs.data_files("p")} AND k.rank IS NULL GROUP BY p.place, p.name
HAVING count(*) >= {settings.least_times} * count(DISTINCT r.file_id)
ORDER BY time_ns DESC NULLS LAST, bytes DESC, p.name"""


_QUERY = """SELECT e.file, e.pid, any_value(c.path) AS program,
  sum(e.bytes) AS read_bytes, sum(e.dur) AS time_ns
FROM calls_seen e LEFT JOIN processes p ON p.tid = e.tid LEFT JOIN commands c ON c.utid = p.utid
WHERE e.direction = 'read' GROUP BY e.file, e.pid ORDER BY read_bytes DESC"""
_MESSAGE = N_(
    "Read {times} times from the beginning, {read_bytes} in all, by processes that wrote {written_bytes}; "
    "files: {files}"
)

RULE = Rule(
    name="whole-file-for-a-few-bytes",
    title=N_("A whole file is read for a few bytes"),
    looks_for=N_(
        "Files that short commands read from beginning to end again and again, each of them anew, while less "
        "than a hundredth of it is written."
    ),
    why=N_("The time grows with the records times the size of the file, where one pass over it would do."),
    advice=advise(
        any=N_("Go through the file once and answer all questions on the way, or build an index first."),
        c=N_("Read the table once into a hash table or sorted array (bsearch), and look up there."),
        python=N_("Read the file once into a dict, and look up in it within the loop."),
        shell=N_(
            "Replace grep, awk or sed per record by one pass: `grep -F -f keys file`, `join`, or one awk "
            "script that keeps the keys in an array."
        ),
    ),
    fine_when=N_("The file changes between the readings, or the questions come from different users."),
    settings=Settings,
    find=find,
    tables=("uses", "places", "place_names", "programs"),
    case="shell-loop",
)
