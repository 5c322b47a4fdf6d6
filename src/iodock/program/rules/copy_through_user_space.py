"""Finds files that a program copied by reading and writing them, although the kernel or file system can
copy files without passing the data through the program."""

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
    """Holds the thresholds of the rule `copy-through-user-space`."""

    most_pause: float = 0.5
    """Maximum time outside of the calls from the first read to the last write, as a share of the time in
    the calls; and at most the time of four copies of the bytes in memory. A program that changes the bytes
    takes longer."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: files from which one process read as many bytes as it then wrote to another
    file. The cost is the time of the reads, which the program would not need if the kernel copied the
    data."""
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
        call="write",
        confidence=0.7,
        gain=(0.35, 1.0),
    )


_IN_MEMORY_NS = 2 * (1e9 / costs.READ_BYTES_PER_S + 1e9 / costs.WRITE_BYTES_PER_S)


# The query pairs each written file with the last file of the same size that the same process read before. It
# ignores calls that open or close a file, because they do not change its bytes. A process that reads all
# pieces before it writes any needs the file as a whole, for example to sort it, so this is not a copy.
def _sql(facts: Facts, settings: Settings) -> str:
    return f"""WITH pairs AS (SELECT g.file_id, t.count + g.count AS count, t.time_ns, t.bytes,
    t.spent_ns + g.spent_ns AS spent_ns, {facts.added_ns} * (t.calls + g.calls) AS tracing_ns,
    greatest(0, g.until - t.since - t.spent_ns - g.spent_ns - tracing_ns) AS pause_ns
  FROM one_way_files g ASOF JOIN one_way_files t
    ON t.upid = g.upid AND t.bytes = g.bytes AND t.direction = g.direction - 1 AND t.since <= g.since
  WHERE t.count <= 2 OR g.since <= t.moved_ts
  QUALIFY row_number() OVER (PARTITION BY t.upid, t.file_id ORDER BY g.since) = 1)
SELECT f.name, p.count::BIGINT AS count, p.time_ns::BIGINT AS time_ns, p.bytes::BIGINT AS bytes
FROM pairs p JOIN files f ON f.file_id = p.file_id
WHERE p.pause_ns <= least({settings.most_pause} * p.spent_ns, {_IN_MEMORY_NS} * p.bytes)
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
        "Each byte is copied into the program and out again. The kernel would copy it once, and some file "
        "systems only record that two files share it."
    ),
    advice=advise(
        any=N_(
            "Let the kernel copy the data; on XFS, Btrfs, NFS 4.2 and some parallel file systems this "
            "transfers no data."
        ),
        c=N_(
            "Call copy_file_range(in, NULL, out, NULL, size, 0) in a loop, or sendfile(out, in, NULL, size)."
        ),
        cpp=N_("Call std::filesystem::copy_file(from, to) in place of the loop."),
        python=N_("Call shutil.copyfile(source, target), or os.sendfile / os.copy_file_range for a part."),
        shell=N_("Use `cp --reflink=auto` in place of cat, dd or a loop."),
    ),
    fine_when=N_("The bytes are changed or checked on the way, or the files are on different file systems."),
    settings=Settings,
    find=find,
    needs=(Need.TIMES,),
    views=("one_way_files",),
)
