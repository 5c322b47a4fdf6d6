"""Reads of one byte: the shell's `read`, and unbuffered getc."""

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
    """Thresholds of `bytewise-read`."""

    least_count: int = 1000
    """Fewer reads of one byte than this are not worth a word."""
    least_share: float = 0.5
    """Of a place's reads that must ask for one byte."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: all places that are mostly read a byte at a time."""
    faults = Faults(facts.rows(_sql(settings)))
    count = faults.total("count")
    cost = costs.beyond_large(faults.sum_of("typical_ns"), count, count, 1)
    if count < settings.least_count or not costs.worth_a_word(facts, cost, count):
        return
    yield Candidate(
        message=Message(_MESSAGE, {"count": count, "files": faults.file_count}),
        count=count,
        time_ns=cost,
        evidence={"count": count, "time_ns": faults.time_ns},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call=faults.rows[0]["call"],
        confidence=0.95,
        gain=(0.4, 1.0),
    )


# A pipe's reads too: the shell reads them alike, and what they wait for hardly counts in the typical time.
def _sql(settings: Settings) -> str:
    one = "t.size_bin = 0 AND t.pattern IN (0, 1, 2)"
    return f"""SELECT p.name, p.file_count, arg_max(c.name, t.count) AS call,
  CAST(sum(t.count) FILTER (WHERE {one}) AS BIGINT) AS count,
  CAST(sum(t.time_ns) FILTER (WHERE {one}) AS BIGINT) AS time_ns,
  CAST(sum(t.typical_ns) FILTER (WHERE {one}) AS BIGINT) AS typical_ns
FROM transfers t JOIN place_names p ON p.place = t.place JOIN calls c ON c.id = t.call_id
WHERE t.direction = 1 AND t.size_bin >= 0 AND ({costs.files("p")} OR p.kind IN ('standard', 'pipe', 'fifo'))
GROUP BY p.place, p.name, p.file_count
HAVING sum(t.count) FILTER (WHERE {one}) >= {settings.least_share} * sum(t.count)
  AND coalesce(sum(t.requested_bytes) FILTER (WHERE {one}), 0) <= 2 * sum(t.count) FILTER (WHERE {one})
ORDER BY typical_ns DESC NULLS LAST, count DESC, p.name"""


_QUERY = """SELECT file, pid, count(*) AS count, sum(dur) AS time_ns
FROM calls_seen WHERE direction = 'read' AND requested_bytes = 1 GROUP BY file, pid ORDER BY count DESC"""
_MESSAGE = N_("{count} reads of a single byte; files: {files}")

RULE = Rule(
    name="bytewise-read",
    title=N_("Reads of one byte at a time"),
    looks_for=N_("Files that are mostly read in requests of a single byte."),
    why=N_("A system call for each byte costs a thousand times what reading it from a buffer costs."),
    advice=advise(
        any=N_("Read through a buffer: the library's buffered functions fetch thousands of bytes per call."),
        c=N_(
            "Use fread, fgets or getc on a FILE that is buffered; don't call setvbuf(file, NULL, _IONBF, 0)."
        ),
        cpp=N_("Read with std::getline or stream.read from a std::ifstream that keeps its buffer."),
        fortran=N_(
            "Read whole records or arrays; stream access with one character per READ is the slow form."
        ),
        python=N_("Open without buffering=0, and loop over the file's lines in place of os.read(fd, 1)."),
        shell=N_(
            "The shell's `read` must fetch single bytes. Replace the loop `while read` by one awk, sed or "
            "cut command that handles all lines."
        ),
    ),
    fine_when=N_("A few lines are read, as by configure scripts, or a terminal is."),
    settings=Settings,
    find=find,
    tables=("transfers", "place_names"),
    case="shell-loop",
)
