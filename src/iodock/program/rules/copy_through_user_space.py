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

    most_pause: float = 0.5
    """What may pass beside the calls from the first read to the last write, as a share of the time in the
    calls: these copy each byte twice, and who changes bytes on the way takes longer than that."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: files of which one process read as much as it wrote into others. What copying in the
    kernel leaves out, the reads, is the cost."""
    faults = Faults(facts.rows(_sql(facts, settings)))
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


# Each written file, with the last of the files of its size that the same process read before. Opening and
# closing a file is no change of its bytes.
def _sql(facts: Facts, settings: Settings) -> str:
    return f"""WITH moved AS (SELECT q.upid, u.file_id, max(u.direction) AS direction, sum(u.bytes) AS bytes,
    sum(u.count) FILTER (WHERE u.direction > 0) AS count, sum(u.count) AS calls, sum(u.time_ns) AS spent_ns,
    sum(u.time_ns) FILTER (WHERE u.direction > 0) AS time_ns,
    min(u.first_ts) FILTER (WHERE u.direction > 0) AS since,
    max(u.last_ts + u.time_ns / u.count) FILTER (WHERE u.direction > 0) AS until
  FROM uses u JOIN processes q ON q.utid = u.utid LEFT JOIN programs g ON g.upid = q.upid
  WHERE u.side = 0 AND u.file_id IN (FROM plain_files) AND g.is_tool IS NOT TRUE GROUP BY q.upid, u.file_id
  HAVING count(DISTINCT u.direction) FILTER (WHERE u.bytes > 0) = 1),
pairs AS (SELECT g.file_id, t.count + g.count AS count, t.time_ns, t.bytes,
    t.spent_ns + g.spent_ns AS spent_ns, {facts.added_ns} * (t.calls + g.calls) AS tracing_ns,
    greatest(0, g.until - t.since - t.spent_ns - g.spent_ns - tracing_ns) AS pause_ns
  FROM moved g ASOF JOIN moved t
    ON t.upid = g.upid AND t.bytes = g.bytes AND t.direction = g.direction - 1 AND t.since <= g.since
  QUALIFY row_number() OVER (PARTITION BY t.upid, t.file_id ORDER BY g.since) = 1)
SELECT f.name, p.count::BIGINT AS count, p.time_ns::BIGINT AS time_ns, p.bytes::BIGINT AS bytes
FROM pairs p JOIN files f ON f.file_id = p.file_id
WHERE coalesce(p.pause_ns <= {settings.most_pause} * p.spent_ns, true)
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
    views=("uses", "programs", "plain_files"),
)
