"""Finds files that several processes write in pieces whose borders lie inside blocks. These blocks then
move back and forth between the processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iodock.program.rules import costs, counted
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `unaligned-shared-file`."""

    block_bytes: int = 4096
    """Unit that the file system locks. A recording does not contain its size. 4096 is the page: every
    block or stripe consists of whole pages, so requests that share a page also share a block or stripe. If
    a site specifies its stripe size here, requests that are aligned to pages but not to stripes are found
    too."""
    least_turns: int = 20
    """Number of times that such a request must follow a request of another process. Fewer come from parts
    of the file that only touch each other."""
    least_slower: float = 2.0
    """For a file that is not known to be on a file system shared by several nodes: how many times longer,
    per byte, requests must take that follow another process's request in a block. A smaller factor may be
    chance."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields files that several processes wrote alternately, in pieces of a block or more whose borders
    lie inside blocks. One candidate is for files for which the run shows the cost. Another is for other
    files on file systems that several nodes share."""
    rows = facts.rows(_sql(settings))
    shown = [row for row in rows if float(row["slower"] or 0) >= settings.least_slower]
    remote = [row for row in rows if row not in shown and row["is_remote"] and facts.nodes != 1]
    for chosen, cost_of, gain in ((shown, _waited_ns, (0.5, 1.0)), (remote, _most_ns, (0.2, 0.6))):
        faults = Faults([{**row, "extra_ns": cost_of(row)} for row in chosen])
        if faults and costs.worth_a_word(facts, faults.sum_of("extra_ns"), faults.total("count")):
            yield _candidate(faults, settings, gain)


def _waited_ns(row: dict[str, Any]) -> int:
    """Returns the additional time in ns of writes to a block that another process wrote before."""
    return round(int(row["late_ns"]) * (1 - 1 / float(row["slower"])))


def _most_ns(row: dict[str, Any]) -> int | None:
    """Returns the time in ns of the writes without the transfer of their bytes. The run does not show
    which part of it is waiting."""
    if row["time_ns"] is None:
        return None
    return max(0, int(row["time_ns"]) - round(int(row["bytes"]) / costs.WRITE_BYTES_PER_S * 1e9))


def _candidate(faults: Faults, settings: Settings, gain: tuple[float, float]) -> Candidate:
    count = faults.total("count")
    values: dict[str, Scalar] = {
        "count": count,
        "writers": max(int(row["writers"]) for row in faults.rows),
        "mean_bytes": faults.total("bytes") / count,
        "block_bytes": settings.block_bytes,
        "files": faults.file_count,
    }
    is_told = settings.block_bytes != Settings().block_bytes
    return Candidate(
        message=Message(_MESSAGE if is_told else _MESSAGE_UNKNOWN, values),
        count=count,
        time_ns=faults.sum_of("extra_ns"),
        evidence={"time_ns": faults.time_ns, "bytes": faults.total("bytes"), **values},
        query=_query(settings),
        files=faults.files,
        file_count=faults.file_count,
        call="write",
        confidence=0.6,
        gain=gain,
    )


# Processes on one node share its client and its pages, so they count as one writer. If a process overwrites
# bytes of another, both want to write the same bytes, so the borders of blocks do not matter.
def _sql(settings: Settings) -> str:
    block = settings.block_bytes
    return f"""WITH pieces AS (SELECT e.file_id, e.ts, e.dur, e.bytes, q.upid,
    e.any_written_bytes > e.own_written_bytes AS is_again, CASE WHEN
      (SELECT count(DISTINCT host) > 1 FROM processes) THEN q.host ELSE CAST(q.upid AS VARCHAR) END AS client,
    CASE WHEN e.offset_bytes % {block} <> 0 THEN e.offset_bytes // {block} END AS head,
    CASE WHEN (e.offset_bytes + e.bytes) % {block} <> 0 THEN (e.offset_bytes + e.bytes) // {block} END AS tail
  FROM events e JOIN processes q ON q.utid = e.utid
  WHERE e.direction = 2 AND e.bytes > 0 AND e.file_id IN (SELECT file_id FROM file_work
    WHERE writes > 0 AND file_id IN (FROM plain_files) GROUP BY file_id HAVING count(*) > 1)),
blocks AS (SELECT file_id, block, arg_min(client, ts) AS first_client
  FROM (SELECT *, unnest([head, tail]) AS block FROM pieces) GROUP BY file_id, block
  HAVING count(DISTINCT client) > 1 AND NOT coalesce(bool_or(is_again), false)),
met AS (SELECT p.*, p.client <> lag(p.client) OVER (PARTITION BY p.file_id ORDER BY p.ts, p.client) AS turn,
    p.client <> coalesce(h.first_client, p.client) OR p.client <> coalesce(t.first_client, p.client) AS late
  FROM pieces p LEFT JOIN blocks h ON h.file_id = p.file_id AND h.block = p.head
    LEFT JOIN blocks t ON t.file_id = p.file_id AND t.block = p.tail
  WHERE h.block IS NOT NULL OR t.block IS NOT NULL)
SELECT l.name, l.place IN (FROM remote_places) AS is_remote, count(DISTINCT m.file_id) AS file_count,
  count(DISTINCT m.upid) AS writers, count(*) AS count, CAST(sum(m.bytes) AS BIGINT) AS bytes,
  CAST(sum(m.dur) AS BIGINT) AS time_ns, CAST(sum(m.dur) FILTER (WHERE late) AS BIGINT) AS late_ns,
  median(m.dur / m.bytes) FILTER (WHERE late) / median(m.dur / m.bytes) FILTER (WHERE NOT late) AS slower
FROM met m JOIN places l ON l.file_id = m.file_id GROUP BY l.place, l.name HAVING sum(m.bytes)
  >= {block} * count(*) AND count(*) FILTER (WHERE turn) >= {settings.least_turns} ORDER BY time_ns DESC"""


def _query(settings: Settings) -> str:
    block = settings.block_bytes
    return f"""SELECT file, offset_bytes // {block} AS block, count(DISTINCT pid) AS writers, sum(dur) AS ns
FROM call_ends WHERE direction = 'write' AND bytes > 0 GROUP BY ALL ORDER BY writers DESC, ns DESC"""


_MESSAGE = N_(
    "{writers} processes wrote the same file alternately: {count} of their writes, {mean_bytes} on "
    "average, begin or end in the same block of {block_bytes} as another process's; files: {files}"
)
_MESSAGE_UNKNOWN = N_(
    "{writers} processes wrote the same file alternately: {count} of their writes, {mean_bytes} on "
    "average, begin or end in the same page of {block_bytes} as another process's, and so in the "
    "same block or stripe, whose size is unknown here; files: {files}"
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields files with known stripes that several processes wrote in pieces beginning inside stripes, so
    that several processes wrote to the same stripe."""
    faults = counted.transfers(facts, _COUNTED_SQL)
    count = faults.total("unaligned")
    cost = Faults([{**row, "extra_ns": _most_ns(row)} for row in faults.rows]).sum_of("extra_ns")
    if not faults or not counted.matters(facts, cost, count):
        return
    values: dict[str, Scalar] = {
        "count": count, "writers": max(int(row["movers"]) for row in faults.rows),
        "mean_bytes": faults.total("bytes") / faults.total("count"),
        "block_bytes": max(int(row["alignment_bytes"]) for row in faults.rows), "files": faults.file_count,
    }  # fmt: skip
    yield counted.candidate(facts, faults, _COUNTED, values, cost_ns=cost, count=count, call="write")


_COUNTED_SQL = """t.interface = 'posix' AND t.direction = 2 AND t.movers > 1 AND 2 * t.unaligned >= t.count
  AND t.file_id IN (SELECT file_id FROM layouts WHERE stripe_bytes > 0)"""
_COUNTED = N_(
    "{writers} processes wrote the same file: {count} of their writes, {mean_bytes} on average, begin within "
    "a stripe of {block_bytes}; files: {files}"
)


RULE = Rule(
    name="unaligned-shared-file",
    title=N_("Unaligned writes into a shared file"),
    looks_for=N_(
        "Files that several processes write alternately, in pieces that begin or end within a block in "
        "which a piece of another process begins or ends."
    ),
    why=N_(
        "A parallel file system locks whole blocks or stripes: two processes that never write the same byte "
        "still wait for each other, and the block goes from one client to the other with each turn."
    ),
    advice=advise(
        any=N_(
            "Start each process's part at a multiple of the block or stripe size, and let it fill whole "
            "blocks or stripes: add padding, or divide the file between processes at such multiples."
        ),
        c=N_(
            "Round the size of a part up, (size + block - 1) / block * block, and use it to place the "
            "parts. `lfs getstripe` (Lustre) or `mmlsfs FILESYSTEM -B` (GPFS) shows the stripe or block "
            "size."
        ),
        fortran=N_("Choose RECL so that a record fills whole blocks, with padding at its end."),
        python=N_("Start each process's part at a multiple of the block size, with os.pwrite."),
        mpi_io=N_(
            "Write collectively, and set the hints striping_unit and cb_buffer_size to the stripe size: then "
            "the file is divided at stripes."
        ),
        hdf5=N_(
            "Call H5Pset_alignment with the stripe size before the file is made, and let chunks fill whole "
            "stripes."
        ),
        administrator=N_(
            "For such files choose a stripe size that divides the processes' parts evenly (lfs setstripe -S)."
        ),
    ),
    fine_when=N_(
        "All processes run on one node or the file lies on a local disk, as then they share its pages; or "
        "each writes one long part, so that only the ends of parts meet."
    ),
    settings=Settings,
    find=find,
    counters=in_counters,
    counters_need=(Need.LAYOUT,),
    needs=(Need.OFFSETS, Need.TIMES),
    views=("file_work", "plain_files", "places", "remote_places", "counted_transfers"),
    yields_to=(
        *("shared-file-contention", "direct-io-unaligned"),
        "independent-io-where-collective-would-do",
    ),
)
