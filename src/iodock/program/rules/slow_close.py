"""Explains close calls that take most of the I/O time because the file system writes out the data when a
file is closed. Otherwise a user might search for a fault in the program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `slow-close`."""

    least_share: float = 0.5
    "Minimum share of the time in I/O calls that closes of written files take."
    least_bytes: int = 262144
    """Minimum mean number of bytes written before each close; after fewer bytes a close has nothing to write
    out."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate, which is always a note."""
    faults = Faults(facts.rows(_sql(settings)))
    spent = faults.time_ns
    if not spent or not facts.summed_io_ns or spent < settings.least_share * facts.summed_io_ns:
        return
    count, moved = faults.total("count"), faults.total("bytes")
    values = {
        "count": count,
        "close_share": spent / facts.summed_io_ns,
        "write_share": faults.total("write_ns") / facts.summed_io_ns,
        "rate_bytes_per_s": moved / ((spent + faults.total("write_ns")) / 1e9),
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=spent,
        evidence={"count": count, "time_ns": spent, "written_bytes": moved, **values},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="close",
        confidence=0.9,
        gain=None,
        at_most=Severity.NOTE,
    )


def _sql(settings: Settings) -> str:
    return f"""SELECT p.name, count(DISTINCT w.file_id) AS file_count, CAST(sum(w.closes) AS BIGINT) AS count,
  CAST(sum(w.close_ns) AS BIGINT) AS time_ns, CAST(sum(w.write_ns) AS BIGINT) AS write_ns,
  CAST(sum(w.written_bytes) AS BIGINT) AS bytes
FROM file_work w JOIN places p ON p.file_id = w.file_id
WHERE w.closes > 0 AND w.written_bytes >= {settings.least_bytes} * w.closes
GROUP BY p.place, p.name ORDER BY time_ns DESC NULLS LAST, p.name"""


_QUERY = """SELECT file, call, count(*) AS count, sum(dur) AS time_ns, sum(bytes) AS bytes FROM call_ends
WHERE family IN ('close', 'write') GROUP BY file, call ORDER BY time_ns DESC"""
_MESSAGE = N_(
    "{close_share} of the I/O time is in {count} closes, and {write_share} in the writes before them: "
    "close waits until the server has the data. Both together wrote {rate_bytes_per_s}. This is expected "
    "and needs no change."
)

RULE = Rule(
    name="slow-close",
    title=N_("Close waits for the data to be written"),
    looks_for=N_("Closes of written files that take most of the I/O time."),
    why=N_(
        "On NFS, and some other network file systems, write only fills the client's memory and close "
        "sends it to the server. The time belongs to the writes; the close is not a separate problem."
    ),
    advice=advise(
        any=N_(
            "No change is needed. To save time, write less, write to a local disk, or close the "
            "file in a separate thread."
        ),
    ),
    fine_when=N_("Always: it shows where the time of the writes is spent."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS,),
    views=("file_work", "places"),
)
