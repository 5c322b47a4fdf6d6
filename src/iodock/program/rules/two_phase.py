"""Finds collective calls in which few ranks move the bytes of all ranks. This is collective buffering, so
the rule explains that it is no imbalance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `two-phase`."""

    least_bytes: int = 65536
    "Minimum number of bytes that a collective call transferred; a header is too small to matter."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate, which is always a note."""
    rows = facts.rows(_sql(settings))
    if not rows:
        return
    largest = rows[0]
    moved = sum(row["bytes"] for row in rows)
    values: dict[str, Scalar] = {
        "call": largest["call"],
        "aggregators": largest["movers"],
        "ranks": largest["ranks"],
        "moved_bytes": moved,
        "each_bytes": largest["bytes"] / largest["movers"],
        "named": ", ".join(map(str, largest["numbers"])),
    }
    time_ns = sum(row["time_ns"] or 0 for row in rows)
    names = tuple(dict.fromkeys(row["file"] for row in rows))
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=sum(row["calls"] for row in rows),
        time_ns=time_ns,
        evidence={"count": sum(row["calls"] for row in rows), "time_ns": time_ns, **values},
        query=_QUERY,
        files=names,
        confidence=0.95,
        gain=None,
        at_most=Severity.NOTE,
    )


def _sql(settings: Settings) -> str:
    return f"""SELECT c.call, f.name AS file, count(*) AS ranks,
  count(*) FILTER (c.moved_bytes > 0) AS movers,
  CAST(sum(c.moved_bytes) AS BIGINT) AS bytes, CAST(sum(c.calls) AS BIGINT) AS calls,
  CAST(sum(c.moving_ns) AS BIGINT) AS time_ns,
  list_sort(list(coalesce(c.rank, c.upid)) FILTER (c.moved_bytes > 0))[:8] AS numbers
FROM collective_io c JOIN files f ON f.file_id = c.file_id
GROUP BY c.call, f.name HAVING movers > 0 AND movers < ranks AND bytes >= {settings.least_bytes}
ORDER BY bytes DESC, f.name, c.call"""


_QUERY = """SELECT k.call, p.rank, sum(e.bytes) AS bytes, sum(e.dur) AS time_ns FROM events e
JOIN interface_calls k ON k.id = e.interface_call_id AND k.file_id = e.file_id
JOIN processes p ON p.utid = k.utid WHERE k.interface = 'MPI-IO' AND k.is_collective AND e.bytes > 0
GROUP BY k.call, p.rank ORDER BY bytes DESC"""
_MESSAGE = N_(
    "Collective buffering is in use: in {call} {aggregators} of {ranks} ranks transferred the bytes of "
    "all, {each_bytes} each; in all collective calls {moved_bytes}. Aggregators: ranks {named}. This is "
    "expected and needs no change."
)

RULE = Rule(
    name="two-phase",
    title=N_("In collective calls few ranks transfer the data of all ranks"),
    looks_for=N_("Collective calls of MPI-IO in which fewer ranks read or write than request data."),
    why=N_(
        "With two-phase I/O the ranks send their pieces to aggregators, which write large, ordered ranges."
        " So one rank may make all system calls without a problem in the program. The messages between "
        "ranks take time, and few aggregators may not use all servers."
    ),
    advice=advise(
        any=N_(
            "No change is needed. If the servers could do more, request more aggregators: with the hints "
            "cb_nodes and cb_config_list of ROMIO, or with OMPI_MCA_io_ompio_num_aggregators of Open MPI."
        ),
    ),
    fine_when=N_("Always: it shows which ranks are the aggregators."),
    settings=Settings,
    needs=(Need.EVERY_RANK,),
    find=find,
    views=("collective_io",),
    yields_to=("collective-overhead",),
)
