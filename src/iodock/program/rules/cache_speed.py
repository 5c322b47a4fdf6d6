"""Finds rates that are faster than any link or disk. They are the speed of a cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iodock.program.findings import Severity
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `cache-speed`."""

    least_bytes: int = 67108864
    "Bytes below which the rate of a file is not judged."
    most_bytes_per_s: int = 8000000000
    "Maximum rate that a process can reach for a file, if the settings give no rate of the link."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one note for each direction in which data was moved faster than the file system or its link
    could."""
    for direction, verb in ((1, "read"), (2, "write")):
        rows = [row for row in facts.rows(_sql(direction, settings)) if _too_fast(row, facts, settings)]
        if not rows:
            continue
        worst = max(rows, key=lambda row: float(row["rate"]))
        yield Candidate(
            message=Message(_MESSAGES[verb], {"rate_bytes_per_s": worst["rate"], "files": len(rows)}),
            count=sum(int(row["count"]) for row in rows),
            time_ns=sum(int(row["time_ns"]) for row in rows),
            evidence={
                "rate_bytes_per_s": worst["rate"],
                "bytes": worst["bytes"],
                "time_ns": worst["time_ns"],
            },
            query=_query(verb),
            files=tuple(row["name"] for row in rows),
            file_count=len(rows),
            confidence=0.9,
            gain=None,
            at_most=Severity.NOTE,
        )


def _too_fast(row: dict[str, Any], facts: Facts, settings: Settings) -> bool:
    system = facts.settings.file_system(row["mount_point"])
    link = system.link_bytes_per_s if system else None
    return float(row["rate"]) > (link or settings.most_bytes_per_s)


def _sql(direction: int, settings: Settings) -> str:
    return f"""SELECT p.name, p.mount_point, CAST(sum(t.count) AS BIGINT) AS count,
  CAST(sum(t.bytes) AS BIGINT) AS bytes, CAST(sum(t.time_ns) AS BIGINT) AS time_ns,
  sum(t.bytes) / (sum(t.time_ns) / 1e9) AS rate
FROM transfers t JOIN place_names p ON p.place = t.place
WHERE t.direction = {direction} AND p.place IN (FROM plain_places) GROUP BY p.place, p.name, p.mount_point
HAVING sum(t.bytes) >= {settings.least_bytes} AND sum(t.time_ns) > 0 ORDER BY bytes DESC, p.name"""


def _query(verb: str) -> str:
    return f"""SELECT file, sum(bytes) AS bytes, sum(bytes) / (sum(dur) / 1e9) AS bytes_per_s
FROM call_ends WHERE direction = '{verb}' GROUP BY file ORDER BY bytes_per_s DESC"""


_MESSAGES = {
    "read": N_(
        "Up to {rate_bytes_per_s} were read, more than the link or disk can carry: this measured a "
        "cache, so its rates are not judged; files: {files}"
    ),
    "write": N_(
        "Up to {rate_bytes_per_s} were written, more than the link or disk can carry: this measured a "
        "cache, so its rates are not judged; files: {files}"
    ),
}

RULE = Rule(
    name="cache-speed",
    title=N_("Faster than the link: these rates are those of a cache"),
    looks_for=N_(
        "Files that were transferred faster than the site's link can carry (`link_bytes_per_s`), or faster"
        " than any disk if the site does not specify one."
    ),
    why=N_("The rate is that of memory: when the cache is cold or full the same calls take far longer."),
    advice=advise(
        any=N_(
            "Don't compare this rate with other systems. To measure the file system, use more data than "
            "memory holds, or direct I/O."
        ),
    ),
    fine_when=N_("Always. A cache that works well is not a problem."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS,),
    views=("transfers", "place_names", "plain_places"),
)
