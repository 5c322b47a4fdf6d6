"""Finds direct I/O (O_DIRECT) whose requests don't fit the blocks of the file system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message

O_DIRECT = 0o40000
"""Value of the flag on Linux for x86, and on machines with the same numbers. Stores always use this value."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `direct-io-unaligned`."""

    block_bytes: int = 4096
    """Offsets and sizes must be multiples of this number: the block size of most file systems. Requests
    that only fit the device's 512 bytes are accepted, but are handled one after the other, and parts of
    blocks are first read or cleared."""
    least_count: int = 20
    "Number of such requests (for example the last one of a file) below which nothing is reported."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: requests on files opened with O_DIRECT that fail because they don't fit the
    blocks, or that the file system has to handle without direct I/O."""
    if not facts.rows(f"SELECT 1 FROM opens WHERE {_DIRECT} LIMIT 1"):
        return
    faults = Faults(facts.rows(_sql(settings)))
    count, cost = faults.total("count"), faults.time_ns
    if count < settings.least_count or not costs.worth_a_word(facts, cost, count):
        return
    failed = faults.total("failed")
    values = {
        "count": count, "failed": failed, "block_bytes": settings.block_bytes, "files": faults.file_count,
    }  # fmt: skip
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=cost,
        evidence={"count": count, "failed": failed, "time_ns": cost},
        query=_query(settings),
        **faults.where,
        confidence=0.9,
        gain=(0.35, 1.0),
    )


_DIRECT = f"errno_id IS NULL AND flags & {O_DIRECT} <> 0"


def _sql(settings: Settings) -> str:
    block = settings.block_bytes
    odd = f"(e.offset_bytes % {block} <> 0 OR e.requested_bytes % {block} <> 0)"
    # The last read of a file reaches its end, so only its requested size must fit the blocks, not the bytes
    # that it returns. The last write may fit no block: a tool such as dd clears the flag O_DIRECT before it.
    return f"""WITH direct AS (SELECT file_id FROM opens WHERE {_DIRECT}),
switched AS (SELECT handle_id, ts, flags & {O_DIRECT} <> 0 AS is_on FROM events
  WHERE direction = 0 AND flags IS NOT NULL AND errno_id IS NULL AND file_id IN (FROM direct)
    AND handle_id IS NOT NULL),
moved AS (SELECT e.* FROM events e JOIN calls c ON c.id = e.call_id
  WHERE e.file_id IN (FROM direct) AND c.family IN ('read', 'write'))
SELECT f.name, arg_max(c.name, e.dur) AS call, count(*) AS count,
  count(*) FILTER (WHERE x.name = 'EINVAL') AS failed,
  CAST(sum(coalesce(e.dur, e.sys_cpu_ns)) AS BIGINT) AS time_ns
FROM moved e ASOF LEFT JOIN switched s ON s.handle_id = e.handle_id AND s.ts <= e.ts
  JOIN files f ON f.file_id = e.file_id JOIN calls c ON c.id = e.call_id
  LEFT JOIN errnos x ON x.id = e.errno_id
WHERE coalesce(s.is_on, true)
  AND (x.name = 'EINVAL' OR e.errno_id IS NULL AND e.bytes > 0 AND {odd})
GROUP BY f.file_id, f.name ORDER BY time_ns DESC NULLS LAST, count DESC, f.name"""


def _query(settings: Settings) -> str:
    return f"""SELECT file, call, errno, offset_bytes, requested_bytes, bytes, dur FROM call_ends
WHERE errno = 'EINVAL' OR requested_bytes % {settings.block_bytes} <> 0 ORDER BY ts"""


_MESSAGE = N_(
    "{count} requests on files opened with O_DIRECT are not aligned to blocks of {block_bytes}; "
    "{failed} of them failed with EINVAL; files: {files}"
)

RULE = Rule(
    name="direct-io-unaligned",
    title=N_("Direct I/O that is not aligned to blocks"),
    looks_for=N_(
        "Reads and writes on files opened with O_DIRECT that fail, or are not multiples of the block size."
    ),
    why=N_(
        "Many file systems refuse such requests (EINVAL), and the program must repeat them in another way;"
        " others send them through the cache, which direct I/O is meant to avoid."
    ),
    advice=advise(
        any=N_(
            "Make address, offset and size multiples of 4096 bytes; or open without O_DIRECT, if the "
            "file may fill the page cache: the cache helps where the data are read again, or written in "
            "small pieces."
        ),
        c=N_(
            "Get the buffer from posix_memalign(&buffer, 4096, size), round sizes up to 4096, and cut the "
            "file with ftruncate at the end."
        ),
        python=N_(
            "Use mmap.mmap(-1, size) as an aligned buffer with os.preadv/os.pwritev; or leave O_DIRECT out, "
            "if the file may fill the page cache."
        ),
        shell=N_("Give dd a bs= that is a multiple of 4096 with iflag=direct or oflag=direct."),
    ),
    fine_when=N_("Only the last piece of a file is unaligned."),
    settings=Settings,
    find=find,
    needs=(Need.FLAGS,),
    views=("opens",),
)
