"""Finds reads of one byte, as the shell's `read` and unbuffered getc make them, and reads of one line, as
bash makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, transfers
from iodock.program.rules.base import Candidate, Facts, Pieces, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `bytewise-read`."""

    least_count: int = 1000
    "Number of reads of one byte below which nothing is reported."
    least_share: float = 0.5
    """Minimum share of the reads of a file (or file pattern) that request one byte."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for all places that are mostly read byte by byte. Yields another for files that
    a shell reads line by line: after each read it seeks back to the end of the line."""
    for text, sql, query in ((_BYTES, _sql(settings), _BYTES_QUERY), (_LINES, _LINES_SQL, _LINES_QUERY)):
        faults = Faults(facts.rows(sql))
        count = faults.total("count")
        cost = costs.beyond_large(facts.typical(faults.sum_of("typical_ns"), faults.time_ns), count, count, 1)
        if count < settings.least_count or not costs.worth_a_word(facts, cost, count):
            continue
        yield Candidate(
            message=Message(text, {"count": count, "files": faults.file_count}),
            count=count,
            time_ns=cost,
            evidence={"count": count, "time_ns": faults.time_ns},
            query=query,
            **faults.where,
            confidence=0.95,
            gain=costs.CALLS_GO,
            pieces=Pieces.CALLS,
        )


# Reads from pipes are included, because the shell reads pipes byte by byte, too. A few long waits for data
# hardly change the typical time.
def _sql(settings: Settings) -> str:
    one = "t.size_bin = 0 AND t.pattern IN (0, 1, 2)"
    kinds = f"""(p.place IN (FROM plain_places) OR p.kind IN ('standard', 'pipe', 'fifo')
  OR {costs.descriptors("p")})"""
    return transfers.by_place(
        {name: f"sum(t.{name}) FILTER (WHERE {one})" for name in ("count", "time_ns", "typical_ns")},
        where=f"t.direction = 1 AND t.size_bin >= 0 AND {kinds}",
        having=f"""sum(t.count) FILTER (WHERE {one}) >= {settings.least_share} * sum(t.count)
  AND coalesce(sum(t.requested_bytes) FILTER (WHERE {one}), 0) <= 2 * sum(t.count) FILTER (WHERE {one})""",
        first="typical_ns",
    )


SHELLS = "/(ba|da|a|z|k|mk|c|tc|fi)?sh$"
"""Regular expression for programs that are shells. tclsh is not one."""


# If bash can seek in a file, it reads a block and then seeks back to the end of the line.
_LINES_SQL = f"""WITH work AS (SELECT u.file_id, sum(u.count) FILTER (WHERE u.direction = 1) AS reads,
    sum(u.count) FILTER (WHERE c.class = 'seek') AS seeks,
    sum(u.time_ns) FILTER (WHERE u.direction = 1 OR c.class = 'seek') AS time_ns
  FROM uses u JOIN calls c ON c.id = u.call_id JOIN processes q ON q.utid = u.utid
    JOIN programs g ON g.upid = q.upid
  WHERE regexp_matches(g.program, '{SHELLS}') GROUP BY u.file_id, q.upid HAVING seeks >= 0.9 * reads)
SELECT p.name, any_value(p.file_count) AS file_count, 'read' AS call, CAST(sum(w.reads) AS BIGINT) AS count,
  CAST(sum(w.time_ns) AS BIGINT) AS time_ns, CAST(sum(w.time_ns) AS BIGINT) AS typical_ns
FROM work w JOIN places l ON l.file_id = w.file_id JOIN place_names p ON p.place = l.place
WHERE p.place IN (FROM plain_places)
  AND p.place IN (SELECT place FROM transfers WHERE direction = 1 GROUP BY place
  HAVING sum(overlapping) >= 0.5 * sum(count))
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""
_LINES_QUERY = """SELECT file, pid, count(*) FILTER (WHERE direction = 'read') AS reads,
  count(*) FILTER (WHERE class = 'seek') AS seeks, sum(dur) AS time_ns
FROM call_ends GROUP BY file, pid HAVING reads > 0 AND seeks > 0 ORDER BY reads DESC"""
_BYTES_QUERY = """SELECT file, pid, count(*) AS count, sum(dur) AS time_ns
FROM call_ends WHERE direction = 'read' AND requested_bytes = 1 GROUP BY file, pid ORDER BY count DESC"""
_BYTES = N_("{count} reads of a single byte; files: {files}")
_LINES = N_("{count} reads by a shell that fetched one line each and went back to its end; files: {files}")

RULE = Rule(
    name="bytewise-read",
    title=N_("Reads of one byte or line at a time"),
    looks_for=N_(
        "Files that are mostly read in requests of a single byte, or by a shell that goes back after each "
        "line."
    ),
    why=N_("A system call for each byte costs a thousand times as much as reading the byte from a buffer."),
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
            "The shell's `read` must fetch single bytes, or go back to the end of each line. Replace the "
            "loop `while read` by one awk, sed or cut command that handles all lines."
        ),
    ),
    fine_when=N_("Only a few lines are read, as in configure scripts, or a terminal is read."),
    settings=Settings,
    find=find,
    one_direction=True,
    views=("uses", "transfers", "places", "place_names", "programs", "plain_places"),
    case="shell-loop",
)
