"""A file read whole again and again, for a few bytes each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.bytewise_read import SHELLS
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


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
    look_ns: float = 10.0
    """Time for a byte that a short command may take to look at what it reads, 100 MB/s: it goes with the
    reading. Who takes much longer computes."""
    least_files: int = 8
    """So many files one process must read whole in turn, with hardly any computing in between."""
    least_piece_bytes: int = 65536
    """It must read them in requests of this size on average: who reads in small ones works on each. Between
    those below 256 KiB, which lie in a cache, it must go on four times as fast."""
    most_look_ns: float = 0.04
    """Time for a byte, from the first read of a file to the next file, that is hardly looking: 25 GB/s, which
    only the plainest loop over bytes in a cache reaches."""
    large_file_bytes: int = 1048576
    """Files of this size on average lie in no near cache once they are read whole."""
    most_large_look_ns: float = 0.12
    """`most_look_ns` for those after their last read: 8 GB/s. What is done with the few bytes that were
    wanted, and giving back the memory, goes into it."""
    most_helped_ns: float = 0.08
    """Time for a byte that helping threads and children may compute: a JIT and a garbage collector do so
    beside the reading. Who is handed the data takes longer, as it lies in another processor's cache. Where
    threads read by turns, as goroutines do, all that they compute counts."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for files that short commands read whole, each anew, and one for those that a process
    read whole and hardly looked at."""
    yield from _read_anew(facts, settings)
    yield from _not_looked_at(facts, settings)


def _read_anew(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """All readings but one are the cost."""
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
        work_ns=cost or 0,
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="read",
        gain=(0.4, 1.0),
    )


def _not_looked_at(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """All reading is the cost: a page of each file would do."""
    if not facts.sees(Need.DURATIONS) or not facts.rows(f"{_whole_sql(settings)} SELECT 1 FROM many LIMIT 1"):
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


# What is read in smaller pieces than this lies in a cache that is several times as fast as memory.
_LARGE_PIECE = 262144


# Ranks hand on what they read without a call, and so do threads and children that were not started anew. What
# was written before the first of the files was read holds nothing of them. Who asks for the size by going to
# the end, as C++ does it, and reads as much, has read all.
def _whole_sql(settings: Settings) -> str:
    return f"""WITH output AS (SELECT upid, sum(written_bytes) AS written, sum(read_bytes) AS taken,
    count(*) FILTER (WHERE read_bytes > 0) AS inputs FROM file_work GROUP BY upid),
gave AS (SELECT q.upid, sum(u.bytes) AS bytes FROM uses u JOIN processes q ON q.utid = u.utid
  WHERE u.direction = 2 GROUP BY q.upid),
begun AS (SELECT w.upid, min(w.first_ts) AS ts FROM file_work w JOIN files f ON f.file_id = w.file_id
    JOIN output o ON o.upid = w.upid JOIN gave g ON g.upid = w.upid
  WHERE o.inputs >= {settings.least_files} AND g.bytes > {settings.most_output} * o.taken
    AND w.read_bytes >= 0.9 * f.size_bytes AND w.read_bytes >= 65536 AND f.file_id IN (FROM data_files)
  GROUP BY w.upid HAVING count(*) >= {settings.least_files}),
earlier AS (SELECT b.upid, sum(e.bytes) AS bytes FROM begun b JOIN processes q ON q.upid = b.upid
    JOIN events e ON e.utid = q.utid
  WHERE e.direction = 2 AND e.bytes > 0 AND e.ts < b.ts GROUP BY b.upid),
sent AS (SELECT g.upid, g.bytes - coalesce(e.bytes, 0) AS bytes FROM gave g
  LEFT JOIN earlier e ON e.upid = g.upid),
quiet AS (SELECT o.upid, s.bytes AS written FROM output o LEFT JOIN sent s ON s.upid = o.upid
  WHERE o.inputs >= {settings.least_files} AND coalesce(s.bytes, 0) <= {settings.most_output} * o.taken
    AND o.upid NOT IN (SELECT upid FROM processes WHERE rank IS NOT NULL)),
finished AS (SELECT DISTINCT e.file_id FROM events e JOIN processes p ON p.utid = e.utid
  WHERE e.direction = 1 AND e.bytes < e.requested_bytes AND p.upid IN (SELECT upid FROM quiet)),
begins AS (SELECT file_id, min(first_ts) AS ts FROM uses WHERE direction = 1 AND bytes > 0 GROUP BY file_id),
ends AS (SELECT e.file_id, max(e.offset_bytes) AS size FROM events e JOIN processes p ON p.utid = e.utid
    JOIN begins b ON b.file_id = e.file_id
  WHERE e.call_id IN (SELECT id FROM calls WHERE class = 'seek') AND e.offset_bytes >= 65536
    AND p.upid IN (SELECT upid FROM quiet) AND e.ts < b.ts
  GROUP BY e.file_id),
whole AS (SELECT w.upid, w.file_id, w.reads, w.read_bytes, w.read_ns, q.written, greatest(1, least(w.opens,
    coalesce(round(w.read_bytes / nullif(coalesce(f.size_bytes, n.size), 0)), w.opens))) AS times
  FROM file_work w
  JOIN quiet q ON q.upid = w.upid JOIN files f ON f.file_id = w.file_id
    LEFT JOIN ends n ON n.file_id = w.file_id
  WHERE (w.read_bytes BETWEEN 0.9 * times * f.size_bytes AND 1.1 * times * f.size_bytes
      OR f.size_bytes IS NULL AND (w.read_bytes = times * n.size OR w.file_id IN (FROM finished)))
    AND f.file_id IN (FROM data_files) AND w.read_bytes >= {settings.least_piece_bytes} * (w.reads - times)
    AND w.read_bytes >= 65536 * times),
many AS (SELECT upid, sum(read_bytes) AS bytes FROM whole GROUP BY upid
  HAVING count(*) >= {settings.least_files})"""


# The thread that reads need not be the process's first: Java's main is not. What it computes, it does in
# between.
def _passed_sql(settings: Settings) -> str:
    return f"""{_whole_sql(settings)},
readers AS (SELECT p.upid, u.utid FROM uses u JOIN processes p ON p.utid = u.utid
    JOIN whole w ON w.upid = p.upid AND w.file_id = u.file_id
  WHERE u.direction = 1 AND u.bytes > 0 AND w.upid IN (SELECT upid FROM many) GROUP BY ALL),
single AS (SELECT upid, any_value(utid) AS utid FROM readers GROUP BY upid HAVING count(*) = 1),
helped AS (SELECT m.upid FROM many m
    JOIN processes p ON p.upid = m.upid OR p.parent_utid IN (SELECT utid FROM processes WHERE upid = m.upid)
    LEFT JOIN programs g ON g.upid = p.upid
  WHERE (p.how = 'thread' OR p.utid IN (SELECT utid FROM readers) OR p.upid <> m.upid AND NOT g.own)
    AND p.utid NOT IN (SELECT utid FROM single)
  GROUP BY m.upid, m.bytes HAVING coalesce(sum(p.cpu_user_ns), 0) > {settings.most_helped_ns} * m.bytes
    OR sum(p.cpu_user_ns) IS NULL AND m.upid NOT IN (SELECT upid FROM single)),
seen AS (SELECT w.upid, w.file_id, sum(e.bytes) FILTER (WHERE e.direction = 1) AS bytes,
    any_value(CASE WHEN w.read_bytes >= {_LARGE_PIECE} * (w.reads - w.times) THEN 1 ELSE 4 END) AS strictness,
    min(e.ts) AS since, min(e.ts) FILTER (WHERE e.direction = 1) AS begun,
    max(e.ts + e.dur) FILTER (WHERE e.direction = 1) AS reads_end,
    max(e.ts + e.dur) FILTER (WHERE e.direction = 1) - min(e.ts) FILTER (WHERE e.direction = 1)
      - sum(e.dur) FILTER (WHERE e.direction = 1) AS between_ns
  FROM events e JOIN processes p ON p.utid = e.utid
    JOIN whole w ON w.upid = p.upid AND w.file_id = e.file_id
  WHERE w.upid IN (SELECT upid FROM many) AND w.upid NOT IN (SELECT upid FROM helped)
  GROUP BY w.upid, w.file_id, e.handle_id HAVING bytes > 0),
turns AS (SELECT upid, bytes, strictness * greatest(0, between_ns) AS between_ns,
    CASE WHEN lead(since) OVER w < reads_end THEN lead(begun) OVER w ELSE lead(since) OVER w END - reads_end
      AS rest
  FROM seen WINDOW w AS (PARTITION BY upid ORDER BY begun)),
hurried AS (SELECT upid FROM turns GROUP BY upid
  HAVING median(between_ns / bytes) <= {settings.most_look_ns}
    AND median((between_ns + rest) / bytes) <= CASE WHEN median(bytes) >= {settings.large_file_bytes}
      THEN {settings.most_large_look_ns} ELSE {settings.most_look_ns} END)
SELECT p.name, w.upid, count(*) AS file_count, CAST(sum(w.reads) AS BIGINT) AS count,
  CAST(sum(w.read_bytes) AS BIGINT) AS bytes, CAST(any_value(w.written) AS BIGINT) AS written,
  CAST(sum(w.read_ns) AS BIGINT) AS time_ns
FROM whole w JOIN hurried h ON h.upid = w.upid JOIN places l ON l.file_id = w.file_id
  JOIN place_names p ON p.place = l.place
GROUP BY p.place, p.name, w.upid ORDER BY time_ns DESC NULLS LAST, bytes DESC, p.name"""


_PIPES = "f.kind IN ('pipe', 'fifo')"


# What goes through a pipe into commands of which little comes is no output: `cat table | grep`. Looking at
# what was read goes with the reading. A process that reads the file several times itself is the business of
# `redundant-reads`.
def _sql(settings: Settings) -> str:
    return f"""WITH work AS (SELECT u.file_id, q.upid, CAST(sum(u.count) AS BIGINT) AS count,
    sum(u.bytes) AS bytes, sum(u.time_ns) AS time_ns, min(u.first_ts) AS since
  FROM uses u JOIN processes q ON q.utid = u.utid
  WHERE u.direction = 1 AND u.bytes > 0 AND u.side = 0 GROUP BY u.file_id, q.upid),
flows AS (SELECT q.upid,
    coalesce(sum(u.bytes) FILTER (WHERE u.direction = 2), 0) AS given,
    coalesce(sum(u.bytes) FILTER (WHERE u.direction = 2 AND {_PIPES}), 0) AS piped,
    coalesce(sum(u.bytes) FILTER (WHERE u.direction = 1), 0) AS taken,
    coalesce(sum(u.bytes) FILTER (WHERE u.direction = 1 AND {_PIPES}), 0) AS fetched
  FROM uses u JOIN processes q ON q.utid = u.utid LEFT JOIN files f ON f.file_id = u.file_id
  GROUP BY q.upid),
absorbed AS (SELECT coalesce(sum(o.fetched), 0) AS bytes FROM flows o JOIN siblings s ON s.upid = o.upid
  WHERE s.program IS NOT NULL AND NOT regexp_matches(s.program, '{SHELLS}')
    AND s.alike_of_owner >= {settings.least_times} AND o.given <= {settings.most_output} * o.fetched),
output AS (SELECT o.upid, o.taken,
    o.given - o.piped * least(1.0, a.bytes / nullif(sum(o.piped) OVER (), 0)) AS written
  FROM flows o, absorbed a),
sizes AS (SELECT w.file_id, max(coalesce(f.size_bytes, w.bytes)) AS size FROM work w
  JOIN files f ON f.file_id = w.file_id GROUP BY w.file_id HAVING size >= {settings.least_size_bytes}),
ended AS (SELECT upid, max(end_ts) AS ts FROM processes GROUP BY upid),
readers AS (SELECT w.file_id, w.upid, w.count, w.bytes, coalesce(o.written, 0) AS written,
    w.time_ns + CASE WHEN e.ts - w.since - w.time_ns <= 3 * {settings.look_ns} * w.bytes
      THEN greatest(0, e.ts - w.since - w.time_ns) ELSE 0 END AS time_ns
  FROM work w JOIN ended e ON e.upid = w.upid JOIN sizes s ON s.file_id = w.file_id
    JOIN output o ON o.upid = w.upid JOIN programs g ON g.upid = w.upid
  WHERE w.bytes BETWEEN {settings.least_part} * s.size AND 1.9 * s.size
    AND coalesce(o.written, 0) <= {settings.most_output} * o.taken AND g.own)
SELECT p.name, count(DISTINCT r.file_id) AS file_count, CAST(sum(r.count) AS BIGINT) AS count,
  count(*) AS times, CAST(sum(r.bytes) AS BIGINT) AS bytes,
  CAST(sum(r.written) AS BIGINT) AS written,
  CAST(sum(r.time_ns) * (1 - count(DISTINCT r.file_id) / count(*)) AS BIGINT) AS time_ns
FROM readers r JOIN places l ON l.file_id = r.file_id JOIN place_names p ON p.place = l.place
  LEFT JOIN processes k ON k.utid = r.upid
WHERE p.place IN (FROM data_places) AND k.rank IS NULL GROUP BY p.place, p.name
HAVING count(*) >= {settings.least_times} * count(DISTINCT r.file_id)
ORDER BY time_ns DESC NULLS LAST, bytes DESC, p.name"""


_QUERY = """SELECT e.file, e.pid, any_value(c.path) AS program,
  sum(e.bytes) AS read_bytes, sum(e.dur) AS time_ns
FROM call_ends e LEFT JOIN processes p ON p.tid = e.tid LEFT JOIN commands c ON c.utid = p.utid
WHERE e.direction = 'read' GROUP BY e.file, e.pid ORDER BY read_bytes DESC"""
_MESSAGE = N_(
    "Read {times} times from the beginning, {read_bytes} in all, by processes that wrote {written_bytes}; "
    "files: {files}"
)

_PASSED = N_(
    "Read whole, one after the other, with hardly any computing in between: {files} files, {read_bytes}; the "
    "same process wrote {written_bytes}"
)
_ADVICE_PASSED = advise(
    any=N_(
        "Where only a header or a few values of each file are needed, read the first pages (or seek to them) "
        "in place of the file."
    ),
    c=N_("Read the header with one pread of a few KiB; mmap reads only the pages that are looked at."),
    cpp=N_("Read the header with one std::ifstream::read, in place of the file into a string or vector."),
    fortran=N_("Open with ACCESS='STREAM' and read only the header's variables."),
    python=N_(
        "Call file.read(512), numpy.memmap or numpy.fromfile(..., count=n) in place of reading the file."
    ),
)

RULE = Rule(
    name="whole-file-for-a-few-bytes",
    title=N_("A whole file is read for a few bytes"),
    looks_for=N_(
        "Files that short commands read from beginning to end again and again, each of them anew, while less "
        "than a hundredth of it is written; and many files that a process reads whole with hardly any "
        "computing in between."
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
    fine_when=N_(
        "The file changes between the readings, the questions come from different users, or what was read is "
        "kept in memory and used later, or is looked at as a whole, quickly: a sum or maximum of all values."
    ),
    settings=Settings,
    find=find,
    views=("uses", "places", "place_names", "programs", "file_work", "siblings", "data_files", "data_places"),
    case="shell-loop",
)
