"""Finds files that a run writes, never reads, and deletes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `unused-output`."""

    least_bytes: int = 1048576
    "Minimum number of bytes that are written and never used, in all files together."
    least_small_bytes: int = 262144
    "The same threshold if creating and deleting the files costs more than writing them."
    least_small_each: int = 512
    "Minimum mean number of bytes in each file in that case: a lock file or a marker file contains less."
    least_small_share: float = 0.05
    "Minimum share of the run's wall time that all calls on these files take in that case."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all files that no process can have read. The cost is the time of all calls on
    them."""
    facts.keep("moved_on", _MOVED_SQL if facts.rows(_HAS_MOVES) else _NONE_MOVED)
    faults = Faults(facts.rows(_sql()))
    moved, count, cost = faults.total("bytes"), faults.total("count"), faults.time_ns
    if not _is_much(facts, faults, settings) or not costs.worth_a_word(facts, cost, count):
        return
    values = {"written_bytes": moved, "files": faults.file_count}
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=cost,
        evidence={"count": count, "written_bytes": moved, "files": faults.file_count, "time_ns": cost},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="write",
        confidence=0.85,
        gain=(0.5, 1.0),
        # For small files the cost is the time to create and delete them, which the program may do for another
        # reason, such as locking. The severity is therefore low at most.
        at_most=Severity.HIGH if moved >= settings.least_bytes else Severity.LOW,
    )


def _is_much(facts: Facts, faults: Faults, settings: Settings) -> bool:
    moved = faults.total("bytes")
    spent = facts.wall_of(faults.time_ns)
    if moved >= settings.least_bytes or spent is None:
        return moved >= settings.least_bytes
    are_small = moved >= max(settings.least_small_bytes, settings.least_small_each * faults.file_count)
    return are_small and spent >= settings.least_small_share * (facts.wall_seconds or 0.0)


# SQL for calls after which a file is kept, or by which it is read without a read call, because it is linked,
# mapped or executed. A rename also keeps a file, unless the new name is deleted.
_READ_ELSEWHERE = "('mmap', 'link', 'exec', 'sendfile', 'splice', 'copy_file_range')"
_KEPT = f"""(c.family IN {_READ_ELSEWHERE}
  OR c.family = 'rename' AND u.file_id NOT IN (SELECT source FROM moved_on))"""
_HAS_MOVES = """SELECT 1 FROM uses u JOIN calls c ON c.id = u.call_id
WHERE c.family = 'rename' AND u.errno_id IS NULL LIMIT 1"""
_NONE_MOVED = "SELECT CAST(0 AS UINTEGER) AS source WHERE false"
# SQL for renamed files whose later names were all deleted after the last rename, without being read or kept.
_MOVED_SQL = f"""WITH ends AS (SELECT u.file_id, max(u.last_ts) FILTER (WHERE c.family = 'unlink') AS deleted,
    coalesce(sum(u.bytes) FILTER (WHERE u.direction = 1), 0) AS read_bytes,
    count(*) FILTER (WHERE c.family IN {_READ_ELSEWHERE}
      OR c.family = 'rename' AND u.side = 3) AS kept
  FROM uses u JOIN calls c ON c.id = u.call_id
  WHERE u.errno_id IS NULL AND u.file_id IN (SELECT target FROM renamed_files) GROUP BY u.file_id),
arrived AS (SELECT source, target, max(ts) AS ts FROM renamed_files GROUP BY source, target)
SELECT a.source FROM arrived a JOIN ends e ON e.file_id = a.target GROUP BY a.source
HAVING bool_and(coalesce(e.deleted > a.ts, false) AND e.read_bytes = 0 AND e.kept = 0)"""


def _sql() -> str:
    return f"""WITH fate AS (SELECT u.file_id, CAST(sum(u.count) AS BIGINT) AS count,
    CAST(sum(u.time_ns) AS BIGINT) AS time_ns,
    CAST(sum(u.bytes) FILTER (WHERE u.direction = 2) AS BIGINT) AS bytes,
    max(u.last_ts) FILTER (WHERE u.direction = 2) AS written,
    max(u.last_ts) FILTER (WHERE c.family = 'unlink') AS deleted,
    max(u.last_ts) FILTER (WHERE c.family = 'open') AS opened,
    max(u.last_ts) FILTER (WHERE c.family IN ('open', 'truncate')) AS emptied,
    count(*) FILTER (WHERE c.family = 'unlink') AS unlinks
  FROM uses u JOIN calls c ON c.id = u.call_id WHERE u.file_id IS NOT NULL AND u.errno_id IS NULL
  GROUP BY u.file_id
  HAVING bytes > 0
    AND coalesce(sum(u.bytes) FILTER (WHERE u.direction = 1), 0) = 0
    AND count(*) FILTER (WHERE {_KEPT}) = 0),
{_NAMELESS}
SELECT p.name, count(*) AS file_count, CAST(sum(t.count) AS BIGINT) AS count,
  CAST(sum(t.time_ns) AS BIGINT) AS time_ns, CAST(sum(t.bytes) AS BIGINT) AS bytes
FROM fate t JOIN places l ON l.file_id = t.file_id JOIN place_names p ON p.place = l.place
  JOIN files f ON f.file_id = t.file_id
WHERE p.place IN (FROM plain_places) AND (t.file_id IN (SELECT file_id FROM nameless)
  OR t.file_id IN (SELECT source FROM moved_on)
  OR f.size_bytes = 0 AND t.emptied >= t.written
  OR t.unlinks > 0 AND (t.written IS NULL OR t.deleted IS NULL OR t.deleted >= t.written
    OR t.opened <= t.deleted))
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, bytes DESC, p.name"""


# If a program deletes a file's name while the file is open, as users of tempfile and mkstemp do, the kernel
# deletes the file when its last descriptor is closed. Data written after the deletion is then lost, too, if
# no open followed. A file opened with O_TMPFILE (tmpfile() in C) never has a name. The store has it under the
# name of its folder. It stays if a link gives it a name.
_O_TMPFILE = 0o20200000
# The highest bit of O_TMPFILE, 1 << 22, is the highest open flag of Linux. The first condition lets the
# engine skip row groups without such flags.
_NAMELESS = f"""nameless AS (SELECT e.file_id FROM events e
  WHERE e.flags >= {1 << 22} AND e.flags & {_O_TMPFILE} = {_O_TMPFILE} AND e.errno_id IS NULL
    AND NOT EXISTS (SELECT 1 FROM uses k JOIN calls n ON n.id = k.call_id
      WHERE n.family = 'link' AND k.errno_id IS NULL)
  GROUP BY e.file_id)"""
_QUERY = """SELECT file, sum(bytes) FILTER (WHERE direction = 'write') AS written_bytes,
  sum(bytes) FILTER (WHERE direction = 'read') AS read_bytes,
  count(*) FILTER (WHERE family = 'unlink') AS deleted, sum(dur) AS time_ns
FROM call_ends WHERE errno IS NULL GROUP BY file
HAVING written_bytes > 0 AND deleted > 0 AND coalesce(read_bytes, 0) = 0 ORDER BY written_bytes DESC"""
_MESSAGE = N_(
    "{written_bytes} were written into files that no process read and that were deleted or emptied in "
    "the end; files: {files}"
)

RULE = Rule(
    name="unused-output",
    title=N_("Output that is never used"),
    looks_for=N_("Files that are written, never read, and deleted or emptied within the same run."),
    why=N_("All this time is lost, and the bytes take memory and bandwidth from other programs."),
    advice=advise(
        any=N_("Switch this output off: look for an option such as checkpoint, debug or keep-temporary."),
        python=N_("Don't write the temporary file, or use io.BytesIO where a library insists on a file."),
        shell=N_("Redirect what is not needed to /dev/null, or use the command's quiet option."),
        fortran=N_("Remove the WRITE statements of the scratch unit, or guard them by a debug flag."),
    ),
    fine_when=N_("The files are a safety net (checkpoints, journals) that is deleted after success."),
    settings=Settings,
    find=find,
    views=("uses", "places", "place_names", "plain_places", "renamed_files"),
)
