"""Reads and writes far smaller than what a file system handles at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.findings import Message
from iodock.language import N_
from iodock.rules.base import Candidate, Facts, Rule, advise
from iodock.rules.places import Faults


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `small-requests`."""

    below_bytes: int = 32768
    """Requests up to this size are small; counted in powers of two."""
    least_count: int = 1000
    """Fewer small requests than this are not worth a word."""
    least_share: float = 0.5
    """Of a place's transfers that must be small."""
    least_ordered: float = 0.5
    """Share that must follow the access before it: only those can be put together."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for reads and one for writes: all places with mostly small, mostly ordered requests."""
    for direction, verb in ((1, "read"), (2, "write")):
        faults = Faults(facts.rows(_sql(direction, settings)))
        if faults.total("count") < settings.least_count:
            continue
        count, moved = faults.total("count"), faults.total("bytes")
        values = {"count": count, "mean_bytes": moved / count, "files": faults.file_count}
        yield Candidate(
            message=Message(_MESSAGES[verb], values),
            count=count,
            time_ns=faults.time_ns,
            evidence={"count": count, "bytes": moved, "time_ns": faults.time_ns},
            query=_query(direction, settings),
            files=faults.files,
            file_count=faults.file_count,
            call=faults.rows[0]["call"],
            gain=(0.4, 0.95),
        )


def _sql(direction: int, settings: Settings) -> str:
    small = f"t.size_bin BETWEEN 0 AND {settings.below_bytes.bit_length() - 1}"
    return f"""SELECT p.name, p.file_count, arg_max(c.name, t.count) AS call,
  CAST(sum(t.count) FILTER (WHERE {small}) AS BIGINT) AS count,
  CAST(sum(t.time_ns) FILTER (WHERE {small}) AS BIGINT) AS time_ns,
  CAST(sum(t.bytes) FILTER (WHERE {small}) AS BIGINT) AS bytes
FROM transfers t JOIN place_names p ON p.place = t.place JOIN calls c ON c.id = t.call_id
WHERE t.direction = {direction} AND p.kind IN ('file', 'regular', 'standard', 'unknown')
GROUP BY p.place, p.name, p.file_count
HAVING sum(t.count) FILTER (WHERE {small}) >= {settings.least_share} * sum(t.count)
  AND sum(t.count) FILTER (WHERE t.pattern IN (0, 1, 2, 3, 4)) >= {settings.least_ordered} * sum(t.count)
ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


def _query(direction: int, settings: Settings) -> str:
    side = "read" if direction == 1 else "write"
    return f"""SELECT file, call, count(*) AS count, avg(bytes) AS mean_bytes, sum(dur) AS time_ns
FROM calls_seen WHERE direction = '{side}' AND bytes BETWEEN 1 AND {settings.below_bytes}
GROUP BY file, call ORDER BY time_ns DESC"""


_MESSAGES = {
    "read": N_("{count} reads of {mean_bytes} on average; files: {files}"),
    "write": N_("{count} writes of {mean_bytes} on average; files: {files}"),
}

RULE = Rule(
    name="small-requests",
    title=N_("Small requests"),
    looks_for=N_(
        "Files that are mostly read or written, one piece after the other, in requests far below what a file "
        "system handles at once."
    ),
    why=N_(
        "Each request costs a system call, and on a network or parallel file system perhaps a trip to the "
        "server, however few bytes it moves."
    ),
    advice=advise(
        any=N_("Read and write in pieces of 1 MiB or more, or let a buffer do it."),
        c=N_("Use fread/fwrite with setvbuf(file, NULL, _IOFBF, 1 << 20) in place of read/write."),
        cpp=N_("Give the stream a large buffer before opening: stream.rdbuf()->pubsetbuf(buffer, 1 << 20)."),
        fortran=N_("Write whole arrays in one WRITE statement; raise the run-time library's buffer size."),
        python=N_("Open with buffering=1 << 20, and read or write many records at a time."),
        shell=N_("Let one command handle the whole file: awk, sort or sed in place of a loop over lines."),
        mpi_io=N_("Use collective calls (MPI_File_write_all): they put the ranks' small pieces together."),
        hdf5=N_("Write whole hyperslabs, and choose chunks of 1 MiB or more."),
    ),
    fine_when=N_("A program answers requests one by one (a database, a log that must be complete at once)."),
    settings=Settings,
    find=find,
    tables=("transfers", "place_names"),
    yields_to=("bytewise-read", "redundant-reads", "seek-storm"),
    case="small-writes",
)
