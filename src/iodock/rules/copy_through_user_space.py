"""A file copied by reading and writing it, where the kernel or file system could do it alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iodock.findings import Message
from iodock.language import N_
from iodock.rules import costs
from iodock.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.rules.places import Faults


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `copy-through-user-space`."""

    least_bytes: int = 1048576
    """Smaller files are copied as quickly by hand."""
    most_pairs: int = 200
    """So many pairs of files are looked at, the largest first."""
    least_same: float = 0.9
    """Share of the writes that must follow a read of the same size."""
    least_commands: int = 3
    """Copies by dd or cat, which are told from so many on: one was asked for, a script that makes all of its
    copies so can call cp."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: pairs of files of which one process read the one and wrote the other, piece by piece.
    What copying in the kernel leaves out, the reads, is the cost."""
    pairs = _without_few(facts.rows(_pairs(settings)), settings)
    spent = [row["time_ns"] for row in pairs if row["time_ns"] is not None]
    # Whether it is a copy shows only in the order of all calls on both files.
    if not pairs or not costs.worth_a_word(
        facts, sum(spent) if spent else None, sum(row["calls"] for row in pairs)
    ):
        return
    faults = Faults(facts.rows(_sql(pairs, settings)))
    count, cost = faults.total("count"), faults.time_ns
    if not faults or not costs.worth_a_word(facts, cost, count):
        return
    moved = faults.total("bytes")
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


def _without_few(pairs: list[dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    """The pairs without those of commands that copy, where these are few."""
    others = [row for row in pairs if not row["is_command"]]
    return pairs if len(pairs) - len(others) >= settings.least_commands else others


# Programs that are made to do it so, or that change the bytes on the way without changing their number.
_COMMANDS = r"(^|/)(dd|cat)$"
_TOOLS = r"/(tee|tr|sed|awk|gawk|mawk|sort|shuf|tac|rev|openssl|gpg|rsync|pv|perl)$"


def _pairs(settings: Settings) -> str:
    """Files of which a process read as many bytes as it wrote into another one, each with that which came
    into use at the nearest time: sources of others may lie between them."""

    def side(moved: str, other: str) -> str:
        # Their sizes come on the other side too: large files without a copy shall not push out others.
        return f"""SELECT upid, file_id, {moved} AS bytes, read_ns, reads, coalesce(first_ts, 0) AS since
  FROM file_work WHERE {moved} >= {settings.least_bytes} AND {other} = 0
    AND (upid, {moved}) IN (SELECT (upid, {other}) FROM file_work WHERE {moved} = 0)
  ORDER BY bytes DESC, since, file_id LIMIT {2 * settings.most_pairs}"""

    taken, given = side("read_bytes", "written_bytes"), side("written_bytes", "read_bytes")
    return f"""WITH taken AS ({taken}), given AS ({given}),
converters AS (SELECT q.upid FROM commands c JOIN processes q ON q.utid = c.utid
  WHERE contains(array_to_string(c.argv, chr(10)), chr(10) || 'conv=')),
near AS (SELECT t.upid, t.file_id AS source, g.file_id AS target, t.read_ns, t.reads, t.bytes,
    abs(t.since - g.since) AS apart,
    coalesce(regexp_matches(r.program, '{_COMMANDS}'), false) AS is_command
  FROM taken t JOIN given g ON g.upid = t.upid AND g.bytes = t.bytes AND g.file_id <> t.file_id
  JOIN files a ON a.file_id = t.file_id JOIN files b ON b.file_id = g.file_id
  LEFT JOIN programs r ON r.upid = t.upid
  WHERE {costs.files("a")} AND {costs.files("b")}
    AND NOT coalesce(regexp_matches(r.program, '{_TOOLS}'), false)
    AND NOT (is_command AND t.upid IN (SELECT upid FROM converters))),
nearest AS (SELECT * FROM near
  QUALIFY row_number() OVER (PARTITION BY upid, target ORDER BY apart, source) = 1)
SELECT upid, source, target, read_ns AS time_ns, reads AS calls, is_command FROM nearest
QUALIFY row_number() OVER (PARTITION BY upid, source ORDER BY apart, target) = 1
ORDER BY bytes DESC, upid, source LIMIT {settings.most_pairs}"""


def _sql(pairs: list[dict[str, Any]], settings: Settings) -> str:
    listed = ", ".join(f"({row['upid']}, {row['source']}, {row['target']})" for row in pairs)
    ids = sorted({row[end] for row in pairs for end in ("source", "target")})
    # A change to the bytes shows in the time between the read and the write, more than round about them.
    return f"""WITH pairs(upid, source, target) AS (VALUES {listed}),
seen AS (SELECT e.file_id, q.upid, e.ts, e.dur, e.bytes, e.direction FROM events e
  JOIN processes q ON q.utid = e.utid
  WHERE e.file_id IN ({", ".join(map(str, ids))}) AND e.direction IN (1, 2) AND e.bytes > 0
    AND e.side = 0),
steps AS (SELECT p.source, p.target, s.*, lag(s.direction) OVER w AS before, lag(s.bytes) OVER w AS size,
    s.ts - lag(s.ts + coalesce(s.dur, 0)) OVER w AS pause
  FROM pairs p JOIN seen s ON s.upid = p.upid
    AND s.file_id = CASE s.direction WHEN 1 THEN p.source ELSE p.target END
  WINDOW w AS (PARTITION BY p.source, p.target, s.upid ORDER BY s.ts)),
copies AS (SELECT source, target, upid, count(*) AS count,
    sum(bytes) FILTER (WHERE direction = 1) AS bytes, sum(dur) FILTER (WHERE direction = 1) AS time_ns,
    avg(CASE WHEN before = 1 AND size = bytes THEN 1.0 ELSE 0 END) FILTER (WHERE direction = 2) AS same,
    median(pause) FILTER (WHERE direction = 2 AND before = 1) AS between_ns,
    coalesce(median(pause) FILTER (WHERE direction = 1 AND before = 2), 20000) AS round_ns,
    median(bytes) AS piece
  FROM steps GROUP BY source, target, upid)
SELECT f.name, CAST(c.count AS BIGINT) AS count, CAST(c.time_ns AS BIGINT) AS time_ns,
  CAST(c.bytes AS BIGINT) AS bytes
FROM copies c JOIN files f ON f.file_id = c.target
WHERE c.same >= {settings.least_same} AND c.between_ns <= 2 * c.round_ns + 5000 + 0.1 * c.piece
ORDER BY time_ns DESC NULLS LAST, bytes DESC, f.name"""


_QUERY = """SELECT file, pid, direction, count(*) AS count, sum(bytes) AS bytes, sum(dur) AS time_ns
FROM calls_seen WHERE direction IS NOT NULL GROUP BY file, pid, direction ORDER BY bytes DESC"""
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
    tables=("file_work", "programs"),
)
