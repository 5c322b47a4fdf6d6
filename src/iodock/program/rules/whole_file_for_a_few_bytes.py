"""Finds files that a program reads completely and repeatedly, although it needs a few bytes each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `whole-file-for-a-few-bytes`."""

    least_times: int = 10
    """Number of commands that must read a file, or number of files that one process reads in turn: a few
    of them may be needed completely."""
    most_output: float = 0.01
    """Maximum share of bytes written to bytes read by the readers: with more, they pass on what they read."""
    most_look: float = 0.25
    """Maximum computing time between files, as a share of the time to copy the bytes once in memory, or to
    read them if that is faster: even a sum over all bytes takes longer."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for files that short commands read repeatedly, and one for files that a process
    read completely and hardly examined."""
    yield from _read_anew(facts, settings)
    yield from _not_looked_at(facts, settings)


def _read_anew(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields files that commands read repeatedly. The cost is the time of all readings except one."""
    faults = Faults(facts.rows(_anew_sql(settings)))
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
        work_ns=cost or 0,
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="read",
        gain=(0.4, 1.0),
    )


def _not_looked_at(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields files that a process read completely but hardly examined. The cost is the time of all reads,
    except for the bytes that the system reads ahead after the first pages anyway."""
    if not facts.sees(Need.DURATIONS):
        return
    faults = Faults(facts.rows(_passed_sql(settings)))
    count, cost = faults.total("count"), faults.time_ns
    if not faults or not costs.worth_a_word(facts, cost, count):
        return
    moved = faults.total("bytes")
    values = {"read_bytes": moved, "written_bytes": _written(faults), "files": faults.file_count}
    yield Candidate(
        message=Message(_PASSED, values),
        count=count,
        time_ns=cost,
        evidence={"count": count, "time_ns": cost, **values},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="read",
        confidence=0.5,
        gain=(0.35, 1.0),
        at_most=Severity.MEDIUM,
        advice=_ADVICE_PASSED,
    )


def _written(faults: Faults) -> int:
    return sum({int(row["upid"]): int(row["written"] or 0) for row in faults.rows}.values())


# A command examines the data between its first and its last call on the file, so the cost includes this time.
def _anew_sql(settings: Settings) -> str:
    return f"""SELECT p.name, count(DISTINCT w.file_id) AS file_count, count(*) AS times,
  CAST(sum(w.reads) AS BIGINT) AS count, CAST(sum(w.read_bytes) AS BIGINT) AS bytes,
  CAST(sum(o.written_bytes) AS BIGINT) AS written,
  CAST(sum(greatest(w.read_ns, w.last_ts - w.first_ts))
    * (1 - count(DISTINCT w.file_id) / count(*)) AS BIGINT) AS time_ns
FROM file_work w JOIN siblings s ON s.upid = w.upid JOIN output o ON o.upid = w.upid
  JOIN processes k ON k.utid = w.upid
  JOIN places l ON l.file_id = w.file_id JOIN place_names p ON p.place = l.place
WHERE w.reads > 0 AND p.place IN (FROM data_places) AND s.program IS NOT NULL
  AND s.alike_of_owner >= {settings.least_times} AND k.rank IS NULL
  AND o.written_bytes <= {settings.most_output} * o.read_bytes
GROUP BY p.place, p.name HAVING count(*) >= {settings.least_times} * count(DISTINCT w.file_id)
ORDER BY time_ns DESC NULLS LAST, bytes DESC, p.name"""


_ONCE_NS = 1e9 / costs.READ_BYTES_PER_S


# A file was read completely if a read reached its end, or if a process read all bytes of its known size. Each
# thread reads files of its own, one after the other.
def _passed_sql(settings: Settings) -> str:
    return f"""WITH seen AS (SELECT p.upid, e.utid, e.file_id, min(e.ts) AS since, sum(e.bytes) AS bytes,
    max(e.ts + e.dur) FILTER (WHERE e.direction = 1) AS until,
    min(e.ts) FILTER (WHERE e.direction = 1) AS begun, sum(e.dur) FILTER (WHERE e.direction = 1) AS read_ns
  FROM events e JOIN processes p ON p.utid = e.utid JOIN files f ON f.file_id = e.file_id
  WHERE e.side = 0 AND f.file_id IN (FROM data_files) AND p.upid IN (SELECT upid FROM file_work
    WHERE read_bytes > 0 GROUP BY upid HAVING count(*) >= {settings.least_times})
  GROUP BY p.upid, e.utid, e.file_id, e.handle_id
  HAVING bool_or(e.direction = 1 AND e.bytes < e.requested_bytes)
    OR sum(e.bytes) FILTER (WHERE e.direction = 1) >= any_value(f.size_bytes)),
turns AS (SELECT upid, utid, file_id, least(read_ns, bytes * {_ONCE_NS}) AS copy_ns,
    greatest(lead(since) OVER w, until) - begun - read_ns AS look_ns
  FROM seen WINDOW w AS (PARTITION BY utid ORDER BY begun)),
hurried AS (SELECT DISTINCT upid FROM turns GROUP BY upid, utid
  HAVING count(DISTINCT file_id) >= {settings.least_times}
    AND median(look_ns / copy_ns) <= {settings.most_look})
SELECT p.name, w.upid, count(*) AS file_count, CAST(sum(w.reads) AS BIGINT) AS count,
  CAST(sum(w.read_bytes) AS BIGINT) AS bytes, CAST(any_value(o.written_bytes) AS BIGINT) AS written,
  CAST(sum(w.read_ns * greatest(0, 1 - {costs.READ_AHEAD_BYTES} / w.read_bytes)) AS BIGINT) AS time_ns
FROM file_work w JOIN hurried h ON h.upid = w.upid JOIN output o ON o.upid = w.upid
  JOIN places l ON l.file_id = w.file_id JOIN place_names p ON p.place = l.place
WHERE (w.upid, w.file_id) IN (SELECT (upid, file_id) FROM turns)
  AND o.written_bytes <= {settings.most_output} * o.read_bytes
GROUP BY p.place, p.name, w.upid ORDER BY time_ns DESC NULLS LAST, bytes DESC, p.name"""


_QUERY = """SELECT e.file, e.pid, any_value(c.path) AS program,
  sum(e.bytes) AS read_bytes, sum(e.dur) AS time_ns
FROM call_ends e LEFT JOIN processes p ON p.tid = e.tid LEFT JOIN commands c ON c.utid = p.utid
WHERE e.direction = 'read' GROUP BY e.file, e.pid ORDER BY read_bytes DESC"""
_MESSAGE = N_(
    "Processes read the contents {times} times from the beginning ({read_bytes} in total), but "
    "wrote only {written_bytes}; files: {files}"
)

_PASSED = N_(
    "Read completely, one after the other, with hardly any computing in between: {files} files, "
    "{read_bytes}; the same process wrote {written_bytes}"
)
_ADVICE_PASSED = advise(
    any=N_(
        "Where only a header or a few values of each file are needed, read the first pages (or seek to them) "
        "in place of the file."
    ),
    c=N_("Read the header with one pread of a few KiB; mmap loads only the pages that are accessed."),
    cpp=N_("Read the header with one std::ifstream::read, in place of the file into a string or vector."),
    fortran=N_("Open with ACCESS='STREAM' and read only the header's variables."),
    python=N_(
        "Call file.read(512), numpy.memmap or numpy.fromfile(..., count=n) in place of reading the file."
    ),
)

RULE = Rule(
    name="whole-file-for-a-few-bytes",
    title=N_("A whole file is read although only a few bytes are needed"),
    looks_for=N_(
        "Files that short commands read from beginning to end repeatedly, while less than a hundredth of "
        "the bytes is written; and many files that a process reads completely with hardly any computing in"
        " between."
    ),
    why=N_(
        "The time grows with the number of records times the size of the file, although one pass would "
        "be enough."
    ),
    advice=advise(
        any=N_("Read the file once and answer all queries in that pass, or build an index first."),
        c=N_("Read the table once into a hash table or sorted array (bsearch), and look up there."),
        python=N_("Read the file once into a dict, and look up in it within the loop."),
        shell=N_(
            "Replace grep, awk or sed per record by one pass: `grep -F -f keys file`, `join`, or one awk "
            "script that keeps the keys in an array."
        ),
    ),
    fine_when=N_(
        "The file changes between the readings, the questions come from different users, or what was read is "
        "kept in memory and used later, or is looked at as a whole, quickly: a sum or maximum of all values."
    ),
    settings=Settings,
    find=find,
    one_direction=True,
    views=("places", "place_names", "file_work", "siblings", "output", "data_files", "data_places"),
    case="shell-loop",
)
