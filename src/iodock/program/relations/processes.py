"""Derived tables about processes: what each ran, what it did with each file, and who did the same."""

from __future__ import annotations

from iodock.program.relations.derived import Derived

PROGRAMS = Derived(
    "what each process ran: the last program it became, or its parent's where it became none",
    {
        "upid": "-> processes",
        "program": "path; NULL where not known",
        "own": "whether it ran a program itself",
    },
    lambda store: (
        """WITH RECURSIVE own AS (SELECT p.upid, arg_max(c.path, c.ts) AS program
  FROM commands c JOIN processes p ON p.utid = c.utid GROUP BY p.upid),
made AS (SELECT p.upid, any_value(q.upid) FILTER (WHERE q.upid <> p.upid) AS parent
  FROM processes p LEFT JOIN processes q ON q.utid = p.parent_utid GROUP BY p.upid),
known AS (SELECT m.upid, o.program, o.upid IS NOT NULL AS own FROM made m LEFT JOIN own o ON o.upid = m.upid
  WHERE o.upid IS NOT NULL OR m.parent IS NULL
UNION ALL SELECT m.upid, k.program, false FROM made m JOIN known k ON k.upid = m.parent
  WHERE m.upid NOT IN (SELECT upid FROM own))
SELECT upid, program, own FROM known"""
    ),
)


# Calls by what they do, as small numbers: comparing names for each row would take most of the time.
_ROLES = """SELECT id, class = 'metadata' AS metadata, CAST(CASE family WHEN 'open' THEN 1 WHEN 'stat' THEN 2
  WHEN 'access' THEN 2 WHEN 'readlink' THEN 2 WHEN 'close' THEN 3 WHEN 'lseek' THEN 4
  ELSE CASE class WHEN 'other' THEN 5 ELSE 0 END END AS UTINYINT) AS role FROM calls"""
_WORK_SUMS = (
    ("opens", "open", "role = 1 AND worked"),
    ("stats", "stat", "role = 2"),
    ("closes", "close", "role = 3"),
    ("seeks", "seek", "role = 4"),
    ("others", "other", "role = 5"),
    ("reads", "read", "direction = 1"),
    ("writes", "write", "direction = 2"),
    ("metadata", "metadata", "metadata"),
)


def _sums(plural: str, name: str, condition: str) -> str:
    """The columns `PLURAL`, their number, and `NAME_ns` of `file_work`. Sums of DOUBLE take half the time of
    those of BIGINT, and are exact to 104 days."""
    return f"""
  CAST(sum(CASE WHEN {condition} THEN CAST(count AS DOUBLE) ELSE 0 END) AS BIGINT) AS {plural},
  CAST(sum(CASE WHEN {condition} THEN CAST(time_ns AS DOUBLE) END) AS BIGINT) AS {name}_ns,"""


_LONGEST = ("open", "stat", "close", "metadata")
"""Of these the longest is known, too: the first may wait for the disk, the others find what it brought."""


def _longest(name: str, condition: str) -> str:
    return f"""
  max(CASE WHEN {condition} THEN longest_ns END) AS longest_{name}_ns,"""


FILE_WORK = Derived(
    "what each process did with each file that has a name",
    {
        "file_id": "-> files",
        "upid": "-> processes",
        "opens": "successful opens",
        "open_ns": "time inside them",
        "stats": "calls of the stat, access and readlink families, failed ones too",
        "stat_ns": "time inside them",
        "closes": "closes",
        "close_ns": "time inside them",
        "seeks": "lseeks",
        "seek_ns": "time inside them",
        "others": "calls that are neither metadata nor transfers, ioctl above all",
        "other_ns": "time inside them",
        "reads": "calls that read",
        "read_ns": "time inside them",
        "writes": "calls that write",
        "write_ns": "time inside them",
        "metadata": "all metadata calls",
        "metadata_ns": "time inside them",
        "longest_open_ns": "time inside the longest of these opens",
        "longest_stat_ns": "time inside the longest of these stats",
        "longest_close_ns": "time inside the longest of these closes",
        "longest_metadata_ns": "time inside the longest of all metadata calls",
        "read_bytes": "read",
        "written_bytes": "written",
        "first_ts": "start of the first call",
        "last_ts": "start of the last call",
    },
    lambda store: (
        f"""SELECT file_id, upid,{"".join(_sums(*one) for one in _WORK_SUMS)}{
            "".join(_longest(name, condition) for _, name, condition in _WORK_SUMS if name in _LONGEST)
        }
  CAST(sum(CASE WHEN direction = 1 THEN CAST(bytes AS DOUBLE) ELSE 0 END) AS BIGINT) AS read_bytes,
  CAST(sum(CASE WHEN direction = 2 THEN CAST(bytes AS DOUBLE) ELSE 0 END) AS BIGINT) AS written_bytes,
  min(first_ts) AS first_ts, max(last_ts) AS last_ts
FROM (SELECT u.file_id, p.upid, r.role, r.metadata, u.direction, u.count, u.time_ns, u.longest_ns, u.bytes,
    u.first_ts, u.last_ts, u.errno_id IS NULL AS worked
  FROM uses u JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid
    JOIN ({_ROLES}) r ON r.id = u.call_id
  WHERE u.side <> 4 AND f.kind IN ('file', 'regular', 'directory', 'symlink'))
GROUP BY file_id, upid"""
    ),
    after=("uses",),
)

# A shell starts another one for each $(...), and so does who runs a line by `sh -c`: the commands in it have
# a parent of their own each time.
SIBLINGS = Derived(
    "processes that one process started to run the same program: a shell loop's commands, a pool's workers",
    {
        "upid": "-> processes",
        "parent": "-> processes.upid: who started it",
        "program": "what it ran; NULL: nothing of its own (a sub-shell, a forked worker)",
        "start_ts": "first sign of life",
        "end_ts": "end",
        "alike": "how many of them there are, itself included",
        "median_ns": "the median of their lifetimes; NULL where not known",
        "owner": "-> processes.upid: who has the loop: the parent; of many parents alike, who started these",
        "alike_of_owner": "how many of its program there are with the same owner, itself included",
    },
    lambda store: (
        """WITH first AS (SELECT upid, min_by(parent_utid, utid) AS parent_utid, min(start_ts) AS start_ts,
    max(end_ts) AS end_ts FROM processes GROUP BY upid),
made AS (SELECT f.upid, q.upid AS parent, CASE WHEN g.own THEN g.program END AS program, f.start_ts, f.end_ts
  FROM first f JOIN processes q ON q.utid = f.parent_utid JOIN programs g ON g.upid = f.upid
  WHERE q.upid <> f.upid),
counted AS (SELECT *, count(*) OVER w AS alike, CAST(median(end_ts - start_ts) OVER w AS BIGINT) AS median_ns
  FROM made WINDOW w AS (PARTITION BY parent, program)),
owned AS (SELECT c.*, CASE WHEN s.alike >= 10 THEN s.parent ELSE c.parent END AS owner
  FROM counted c LEFT JOIN counted s ON s.upid = c.parent)
SELECT *, count(*) OVER (PARTITION BY owner, program) AS alike_of_owner FROM owned"""
    ),
    after=("programs",),
)
# A program starts others before and after its workers: a shell's commands, a second pool. Who began when all
# before had ended belongs to another team. A pipeline's stages are none, be they copies of one program: each
# works on what the one before gives it. Tokens that go round in a pipe are no work, and logs that have one
# name for all pipes tell nothing of it. What a worker starts itself works for it (a sub-shell's commands),
# unless that is a team of its own.
WORKERS = Derived(
    "the ranks of a parallel job, or processes that did the same side by side",
    {
        "team": "-1 for the ranks of a job, else the first of the processes",
        "worker": "rank, or upid",
        "upid": "-> processes: the worker, or one that it started",
        "size": "workers of the team",
    },
    lambda store: (
        """WITH RECURSIVE ranked AS (SELECT DISTINCT -1 AS team, p.rank AS worker, p.upid FROM processes p
  WHERE p.rank IS NOT NULL),
ends AS (SELECT *, max(end_ts) OVER (PARTITION BY parent, program ORDER BY start_ts, upid
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM siblings),
turns AS (SELECT *, count(*) FILTER (WHERE start_ts >= before) OVER (PARTITION BY parent, program
    ORDER BY start_ts, upid) AS turn FROM ends),
piped AS (SELECT u.file_id, p.upid, u.direction, sum(u.bytes) AS bytes FROM uses u
    JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid
  WHERE f.kind = 'pipe' AND f.name <> 'pipe' AND u.bytes > 0 GROUP BY ALL HAVING sum(u.bytes) >= 4096),
ended AS (SELECT t.parent, t.program, t.turn, e.file_id, e.direction, min(t.upid) AS one, max(t.upid) AS other
  FROM piped e JOIN turns t ON t.upid = e.upid GROUP BY ALL),
stages AS (SELECT DISTINCT w.parent, w.program, w.turn FROM ended w
    JOIN ended r ON r.file_id = w.file_id AND r.parent = w.parent AND r.turn = w.turn
      AND r.program IS NOT DISTINCT FROM w.program
  WHERE w.direction = 2 AND r.direction = 1
    AND (w.one <> w.other OR r.one <> r.other OR w.one <> r.one)),
pools AS (SELECT t.upid, min(t.upid) OVER w AS team, count(*) OVER w BETWEEN 3 AND 1024
    AND max(start_ts) OVER w < min(end_ts) OVER w AS together FROM turns t
  WHERE NOT EXISTS (FROM stages s WHERE s.parent = t.parent AND s.turn = t.turn
    AND s.program IS NOT DISTINCT FROM t.program)
  WINDOW w AS (PARTITION BY t.parent, t.program, t.turn)),
chosen AS (SELECT * FROM pools WHERE together AND (SELECT count(DISTINCT worker) FROM ranked) < 2),
started AS (SELECT team, upid AS worker, upid FROM chosen
UNION ALL SELECT s.team, s.worker, c.upid FROM started s JOIN siblings c ON c.parent = s.upid
  WHERE c.upid NOT IN (SELECT upid FROM chosen)),
pooled AS (SELECT CAST(team AS INTEGER) AS team, CAST(worker AS INTEGER) AS worker, upid FROM started),
every AS (SELECT * FROM ranked UNION ALL SELECT * FROM pooled)
SELECT e.*, n.size FROM every e
  JOIN (SELECT team, count(DISTINCT worker) AS size FROM every GROUP BY team) n ON n.team = e.team"""
    ),
    after=("siblings", "uses"),
)

# Files of the system, of programs and of MPI itself say nothing about who does the work.
_NOT_DATA = (
    r"^/(proc|sys|dev|usr|lib|lib32|lib64|bin|sbin|etc|opt|nix|snap)/"
    r"|\.(so|pyc|py)(\.[0-9.]+)?$|/ompi[^/]*/|/pmix"
)
WORKER_IO = Derived(
    "what each worker did with the user's files",
    {
        "team": "as in `workers`",
        "worker": "as in `workers`",
        "calls": "calls; NULL: none",
        "bytes": "read and written",
        "time_ns": "inside the calls",
        "longest_ns": "inside the longest of them",
        "first_ts": "start of the first",
        "last_ts": "start of the last",
    },
    lambda store: (
        f"""WITH data AS (SELECT file_id FROM files WHERE kind IN ('file', 'regular', 'unknown')
  AND NOT regexp_matches(name, '{_NOT_DATA}')),
used AS (SELECT p.upid, sum(u.count) AS calls, sum(u.bytes) AS bytes, sum(u.time_ns) AS time_ns,
    max(u.longest_ns) AS longest_ns, min(u.first_ts) AS first_ts, max(u.last_ts) AS last_ts
  FROM uses u JOIN data d ON d.file_id = u.file_id JOIN processes p ON p.utid = u.utid
  WHERE u.side IN (0, 1, 3) AND p.upid IN (SELECT upid FROM workers) GROUP BY p.upid)
SELECT w.team, w.worker, CAST(sum(d.calls) AS BIGINT) AS calls, CAST(sum(d.bytes) AS BIGINT) AS bytes,
  CAST(sum(d.time_ns) AS BIGINT) AS time_ns, max(d.longest_ns) AS longest_ns,
  min(d.first_ts) AS first_ts, max(d.last_ts) AS last_ts
FROM workers w LEFT JOIN used d ON d.upid = w.upid WHERE w.size >= 2 GROUP BY w.team, w.worker"""
    ),
    after=("workers", "uses"),
)

THREAD_IO = Derived(
    "what each thread did with the user's files, of processes with at least three threads",
    {
        "upid": "-> processes",
        "utid": "-> processes",
        "parent_utid": "the thread that started it",
        "is_main": "whether it is the process's first thread",
        "start_ts": "its start",
        "end_ts": "its end",
        "user_ns": "its own CPU time; NULL where not known",
        "busy_ns": "CPU time, and what its calls on the user's files waited beside it",
        "calls": "calls; NULL: none",
        "bytes": "read and written",
        "time_ns": "inside the calls",
        "first_ts": "start of the first",
        "last_ts": "start of the last",
    },
    lambda store: (
        f"""WITH threaded AS (SELECT upid FROM processes GROUP BY upid HAVING count(*) >= 3),
members AS (SELECT p.*, min(utid) OVER (PARTITION BY upid) = utid AS is_main FROM processes p
  WHERE upid IN (SELECT upid FROM threaded)),
data AS (SELECT file_id FROM files WHERE kind IN ('file', 'regular', 'unknown')
  AND NOT regexp_matches(name, '{_NOT_DATA}')),
used AS (SELECT u.utid, sum(u.count) AS calls, sum(u.bytes) AS bytes, sum(u.time_ns) AS time_ns,
    min(u.first_ts) AS first_ts, max(u.last_ts) AS last_ts
  FROM uses u JOIN data d ON d.file_id = u.file_id
  WHERE u.side IN (0, 1, 3) AND u.utid IN (SELECT utid FROM members) GROUP BY u.utid)
SELECT m.upid, m.utid, m.parent_utid, m.is_main, m.start_ts, m.end_ts, m.cpu_user_ns AS user_ns,
  m.cpu_user_ns + greatest(m.cpu_system_ns, coalesce(CAST(d.time_ns AS BIGINT), 0)) AS busy_ns,
  CAST(d.calls AS BIGINT) AS calls, CAST(d.bytes AS BIGINT) AS bytes, CAST(d.time_ns AS BIGINT) AS time_ns,
  d.first_ts, d.last_ts
FROM members m LEFT JOIN used d ON d.utid = m.utid"""
    ),
    after=("uses",),
)
