"""A file copied by reading and writing it, where the kernel or file system could do it alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `copy-through-user-space`."""

    least_bytes: int = 1048576
    """Less than this, in all copies together, is copied as quickly by hand."""
    least_file_bytes: int = 131072
    """Smaller files are copied as quickly by hand, however many they are."""
    most_pairs: int = 2000
    """So many pairs of files are looked at, the largest first."""
    most_joined: int = 50
    """So many files that were put together of others, or taken apart into others, are looked at."""
    least_same: float = 0.9
    """Share of what is written that must be written before much more is read."""
    least_commands: int = 3
    """Copies by dd or cat, which are told from so many on: one was asked for, a script that makes all of its
    copies so can call cp."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: files of which one process read as much as it wrote into others, piece by piece. What
    copying in the kernel leaves out, the reads, is the cost."""
    facts.keep("copied_files", _files_sql(settings))
    facts.keep("copied", _copied_sql(settings))
    (seen,) = facts.rows(_SEEN_SQL)
    # Whether it is a copy shows only in the order of all calls on the files.
    if not seen["calls"] or not costs.worth_a_word(facts, seen["time_ns"], seen["calls"]):
        return
    faults = Faults(facts.rows(_sql(settings)))
    count, cost = faults.total("count"), faults.time_ns
    moved = faults.total("bytes")
    if moved < settings.least_bytes or not costs.worth_a_word(facts, cost, count):
        return
    yield Candidate(
        message=Message(_MESSAGE, {"copied_bytes": moved, "copies": len(faults.rows)}),
        count=count,
        time_ns=cost,
        evidence={"count": count, "copied_bytes": moved, "copies": len(faults.rows), "time_ns": cost},
        query=_QUERY,
        files=faults.files,
        file_count=len(faults.rows),
        call="read",
        confidence=0.7,
        gain=(0.35, 1.0),
    )


_BUFFER_BYTES = 131072
"""From one buffer of a library to another go pieces of up to this size; larger ones go straight."""
_STREAM_BYTES = 32768
"""Smaller pieces are those of a library's buffers."""
# Programs that are made to do it so, or that change the bytes on the way without changing their number.
_COMMANDS = r"(^|/)(dd|cat)$"
_TOOLS = (
    r"/(tee|tr|sed|awk|gawk|mawk|sort|shuf|tac|rev|openssl|gpg|rsync|pv|head|tail|split|csplit|cp|mv|install"
    r"|tar|bsdtar|cpio|zip|unzip|iconv)$"
)


def _files_sql(settings: Settings) -> str:
    """Files that a process only read or only wrote, and which of both, of processes that did both. `begun` is
    the first transfer: a list of all files is often made before the first is copied."""
    return f"""WITH first AS (SELECT q.upid, u.file_id, min(u.first_ts) AS begun
  FROM uses u JOIN processes q ON q.utid = u.utid WHERE u.direction > 0 AND u.bytes > 0 GROUP BY ALL),
moved AS (SELECT w.upid, w.file_id, w.read_bytes > 0 AS is_source, w.read_ns, w.reads,
    w.read_bytes + w.written_bytes AS bytes, coalesce(w.first_ts, 0) AS since,
    coalesce(w.last_ts, 0) AS until, coalesce(o.begun, 0) AS begun,
    coalesce(regexp_matches(r.program, '{_COMMANDS}'), false) AS is_command
  FROM file_work w JOIN files f ON f.file_id = w.file_id
    LEFT JOIN first o ON o.upid = w.upid AND o.file_id = w.file_id
    LEFT JOIN programs r ON r.upid = w.upid
  WHERE (w.read_bytes = 0) <> (w.written_bytes = 0) AND f.file_id IN (FROM plain_files)
    AND w.read_bytes + w.written_bytes >= {settings.least_file_bytes}
    AND NOT coalesce(regexp_matches(r.program, '{_TOOLS}'), false)),
converters AS (SELECT q.upid FROM commands c JOIN processes q ON q.utid = c.utid
  WHERE contains(array_to_string(c.argv, chr(10)), chr(10) || 'conv='))
SELECT * FROM moved WHERE NOT (is_command AND upid IN (FROM converters))
QUALIFY count(*) FILTER (WHERE is_source) OVER (PARTITION BY upid) > 0
  AND count(*) FILTER (WHERE NOT is_source) OVER (PARTITION BY upid) > 0"""


def _copied_sql(settings: Settings) -> str:
    """Members of each possible copy: a target and a source of its size, of those read before it the last; a
    target and the sources that were read meanwhile, together as large; or a source and such targets."""

    def joined(one: str, many: str) -> str:
        return f"""SELECT a.upid, a.file_id AS whole, b.file_id AS part
  FROM (SELECT * FROM {one} ORDER BY bytes DESC, file_id LIMIT {settings.most_joined}) a
    JOIN {many} b ON b.upid = a.upid AND b.since < a.until AND b.until > a.since
  QUALIFY sum(b.bytes) OVER (PARTITION BY a.upid, a.file_id) = a.bytes"""

    return f"""WITH taken AS (FROM copied_files WHERE is_source),
given AS (FROM copied_files WHERE NOT is_source),
near AS (SELECT g.upid, t.file_id AS source, g.file_id AS target, g.bytes, g.is_command,
    g.begun - t.begun AS apart
  FROM given g ASOF JOIN taken t ON t.upid = g.upid AND t.bytes = g.bytes AND t.begun <= g.begun),
pairs AS (SELECT * FROM near
  QUALIFY row_number() OVER (PARTITION BY upid, source ORDER BY apart, target) = 1),
told AS (SELECT * FROM pairs
  WHERE NOT is_command OR (SELECT count(*) FROM pairs WHERE is_command) >= {settings.least_commands}
  ORDER BY bytes DESC, upid, source LIMIT {settings.most_pairs}),
others AS (SELECT * FROM copied_files WHERE NOT is_command AND (upid, file_id) NOT IN
  (SELECT (upid, source) FROM near UNION ALL SELECT (upid, target) FROM near)),
sources AS (FROM others WHERE is_source), targets AS (FROM others WHERE NOT is_source),
merged AS ({joined("targets", "sources")}),
divided AS ({joined("sources", "targets")})
SELECT upid, target AS copy, source AS file_id, 1 AS direction FROM told
UNION ALL SELECT upid, target, target, 2 FROM told
UNION ALL SELECT upid, whole, part, 1 FROM merged
UNION ALL SELECT DISTINCT upid, whole, whole, 2 FROM merged
UNION ALL SELECT DISTINCT upid, whole, whole, 1 FROM divided WHERE (upid, part) NOT IN
  (SELECT (upid, whole) FROM merged)
UNION ALL SELECT upid, whole, part, 2 FROM divided WHERE (upid, part) NOT IN
  (SELECT (upid, whole) FROM merged)"""


_SEEN_SQL = """SELECT CAST(sum(f.reads) AS BIGINT) AS calls, CAST(sum(f.read_ns) AS BIGINT) AS time_ns
FROM copied c JOIN copied_files f ON f.upid = c.upid AND f.file_id = c.file_id WHERE c.direction = 1"""


def _sql(settings: Settings) -> str:
    # A change to the bytes shows in the time between the read and the write, more than round about them;
    # where libraries have buffers on both sides, in both, of which copying takes less than 1 ns a byte. What
    # lies in the program when a piece was written is a buffer or two, unless it reads all before it writes;
    # of a library's small buffers it can't be told what happens between. Opening the target once its source
    # was read is no change. Parts of a file follow each other: what takes from them by turns sorts.
    return f"""WITH called AS (SELECT c.upid, c.copy, e.file_id, e.ts, e.dur, e.bytes,
    CASE WHEN e.bytes > 0 THEN e.direction ELSE 0 END AS direction FROM events e
  JOIN processes q ON q.utid = e.utid
  JOIN copied c ON c.upid = q.upid AND c.file_id = e.file_id
  WHERE e.side = 0 AND (e.direction = c.direction AND e.bytes > 0 OR e.direction = 0)),
passed AS (SELECT *, coalesce(sum(dur) FILTER (WHERE direction = 0)
    OVER (PARTITION BY upid, copy ORDER BY ts, direction), 0) AS beside_ns FROM called),
seen AS (SELECT * FROM passed WHERE direction > 0),
steps AS (SELECT *, lag(direction) OVER w AS before, lag(bytes) OVER w AS size,
    lag(file_id) OVER (PARTITION BY upid, copy, direction ORDER BY ts) <> file_id AS is_turn,
    ts - lag(ts + coalesce(dur, 0)) OVER w - (beside_ns - lag(beside_ns) OVER w) AS pause,
    sum(CASE direction WHEN 1 THEN bytes ELSE -bytes END) OVER w AS ahead,
    max(bytes) OVER (PARTITION BY upid, copy) AS largest
  FROM seen WINDOW w AS (PARTITION BY upid, copy ORDER BY ts, direction
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
copies AS (SELECT copy, upid, count(*) AS count, count(dur) > 0 AS timed,
    sum(bytes) FILTER (WHERE direction = 1) AS bytes, sum(dur) FILTER (WHERE direction = 1) AS time_ns,
    sum(bytes) FILTER (WHERE direction = 2 AND CASE WHEN largest >= {_STREAM_BYTES}
        THEN ahead BETWEEN 0 AND 2 * largest ELSE before = 1 AND size = bytes END)
      / sum(bytes) FILTER (WHERE direction = 2) AS same,
    count(*) FILTER (WHERE is_turn) AS turns, count(DISTINCT file_id) AS members,
    median(pause) FILTER (WHERE direction = 2 AND before = 1) AS between_ns,
    coalesce(median(pause) FILTER (WHERE direction = 1 AND before = 2), 20000) AS round_ns,
    count(*) FILTER (WHERE direction = 1 AND before = 2) AS rounds,
    least(median(bytes), {_BUFFER_BYTES}) AS piece
  FROM steps GROUP BY copy, upid)
SELECT f.name, CAST(c.count AS BIGINT) AS count, CAST(c.time_ns AS BIGINT) AS time_ns,
  CAST(c.bytes AS BIGINT) AS bytes
FROM copies c JOIN files f ON f.file_id = c.copy
WHERE c.same >= {settings.least_same} AND c.turns <= c.members - 2
  AND c.between_ns <= 2 * c.round_ns + 2000 + 0.1 * c.piece
  AND (c.rounds = 0 OR NOT c.timed OR c.between_ns + c.round_ns <= 3000 + c.piece)
ORDER BY time_ns DESC NULLS LAST, bytes DESC, f.name"""


_QUERY = """SELECT file, pid, direction, count(*) AS count, sum(bytes) AS bytes, sum(dur) AS time_ns
FROM call_ends WHERE direction IS NOT NULL GROUP BY file, pid, direction ORDER BY bytes DESC"""
_MESSAGE = N_("Copied by reading and writing: {copied_bytes}; copies: {copies}")

RULE = Rule(
    name="copy-through-user-space",
    title=N_("A copy that passes through the program"),
    looks_for=N_(
        "Processes that read a file piece by piece and write the same number of bytes into another one."
    ),
    why=N_(
        "Each byte is copied into the program and out again. The kernel copies it once, and some file "
        "systems only note that two files share it."
    ),
    advice=advise(
        any=N_(
            "Let the kernel copy; on XFS, Btrfs, NFS 4.2 and some parallel file systems it moves no data."
        ),
        c=N_(
            "Call copy_file_range(in, NULL, out, NULL, size, 0) in a loop, or sendfile(out, in, NULL, size)."
        ),
        cpp=N_("Call std::filesystem::copy_file(from, to) in place of the loop."),
        python=N_("Call shutil.copyfile(source, target), or os.sendfile / os.copy_file_range for a part."),
        shell=N_("Use `cp --reflink=auto` in place of cat, dd or a loop."),
    ),
    fine_when=N_("The bytes are changed or checked on the way, or come from different file systems."),
    settings=Settings,
    find=find,
    needs=(Need.TIMES,),
    views=("uses", "file_work", "programs", "plain_files"),
)
