"""Where operations and bytes are counted, and what is a metadata operation.

The same bytes are counted at several places: sums are only taken within one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

SERVERS, PROCESSES, CGROUPS = "servers", "processes", "cgroups"
PLACES = {
    SERVERS: ("mdt_job_stats", "obdfilter_job_stats"),
    # Of a step's total only what samples had not given has a row: together they are the total.
    PROCESSES: ("process_io", "slurm_step"),
    CGROUPS: ("cgroup_io",),
}
"""Place -> kinds of sources whose rows may be added up."""
_NO_METADATA = (
    *("read_bytes", "write_bytes", "reads", "writes", "call_read_bytes", "call_write_bytes"),
    *("read_calls", "write_calls", "cancelled_write_bytes", "time_us"),
)


@cache
def metadata_operations() -> tuple[str, ...]:
    """Columns of `job_io` that count metadata operations."""
    from iodock.store.monitored import counters

    return tuple(name for name in counters() if name not in _NO_METADATA)


def sums(place: str) -> tuple[str, ...]:
    """Columns with bytes and metadata operations of that place."""
    if place == PROCESSES:
        return ("call_read_bytes", "call_write_bytes")
    return ("read_bytes", "write_bytes", *(metadata_operations() if place == SERVERS else ()))


def metadata() -> str:
    """How many metadata operations a row of `job_io` has, in SQL: those of metadata servers. What object
    servers create and destroy follows from them."""
    total = " + ".join(f'"{name}"' for name in metadata_operations())
    return f"CASE WHEN source = 'mdt_job_stats' THEN {total} ELSE 0 END"


def of_place(place: str) -> str:
    """A condition in SQL: a row's counters are of that place."""
    return f"source IN ({', '.join(repr(source) for source in PLACES[place])})"


def text(value: str) -> str:
    """As an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def listed(values: Iterable[str]) -> str:
    """Literals for `IN (...)`; of none, one that nothing equals."""
    return ", ".join(map(text, values)) or "NULL"
