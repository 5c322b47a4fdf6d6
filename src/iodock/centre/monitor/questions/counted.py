"""Where operations and bytes are counted, and what is a metadata operation.

The same bytes are counted at several places: sums are only taken within one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

SERVERS, PROCESSES, CGROUPS = "servers", "processes", "cgroups"
PLACES = {
    SERVERS: ("mdt_job_stats", "obdfilter_job_stats", "mfs_sessions"),
    # Of a step's total only what samples had not given has a row: together they are the total.
    PROCESSES: ("process_io", "slurm_step"),
    CGROUPS: ("cgroup_io",),
}
"""Place -> kinds of sources whose rows may be added up."""
SERVED = "(source LIKE 'mdt%' OR source LIKE 'obdfilter%' OR source IN ('mfs_master', 'mfs_sessions'))"
"""A condition in SQL: who has such a row serves a file system."""
OF_METADATA = "source IN ('mdt_job_stats', 'mfs_sessions')"
"""A condition in SQL: a row of `job_io` counts what jobs asked of a metadata server."""
_NO_METADATA = (
    *("read_bytes", "write_bytes", "reads", "writes", "call_read_bytes", "call_write_bytes"),
    *("read_calls", "write_calls", "cancelled_write_bytes", "time_us"),
)


@cache
def metadata_operations() -> tuple[str, ...]:
    """Columns of `job_io` that count metadata operations."""
    from iodock.centre.store import counters

    return tuple(name for name in counters() if name not in _NO_METADATA)


def sums(place: str) -> tuple[str, ...]:
    """Columns with bytes and metadata operations of that place."""
    if place == PROCESSES:
        return ("call_read_bytes", "call_write_bytes")
    return ("read_bytes", "write_bytes", *(metadata_operations() if place == SERVERS else ()))


_CALLS = ("call_read_bytes", "call_write_bytes", "read_calls", "write_calls", "cancelled_write_bytes")
_DATA = ("read_bytes", "write_bytes", "reads", "writes")
_OF_PROCESSES = (*_CALLS, "read_bytes", "write_bytes")


@cache
def _sources_of(column: str) -> tuple[str, ...]:
    """Kinds of sources that count what a column of `job_io` has; rows of others have 0 there."""
    counted = {
        "obdfilter_job_stats": (*_DATA, *metadata_operations(), "time_us"),
        "mdt_job_stats": (*_DATA, *metadata_operations(), "time_us"),
        # Data goes to chunk servers.
        "mfs_sessions": metadata_operations(),
        "process_io": _OF_PROCESSES,
        "slurm_step": _OF_PROCESSES,
        "cgroup_io": _DATA,
    }
    return tuple(source for source, columns in counted.items() if column in columns)


def known(column: str) -> str:
    """A column of `job_io` as an SQL expression that is NULL where the row's source does not count it, so
    that a sum over such rows is NULL and not 0."""
    sources = ", ".join(map(text, _sources_of(column)))
    value = f'"{column}"'
    if column == "time_us":
        # Lustre before 2.13 counts no times of operations.
        value = f"nullif({value}, 0)"
    elif column in _DATA:
        # Of metadata servers only those that have files' data themselves count it.
        value = f"CASE WHEN source = 'mdt_job_stats' THEN nullif({value}, 0) ELSE {value} END"
    return f"CASE WHEN source IN ({sources}) THEN {value} END"


def metadata() -> str:
    """How many metadata operations a row of `job_io` has, in SQL: those of metadata servers, NULL of other
    sources. What object servers create and destroy follows from them."""
    total = " + ".join(f'"{name}"' for name in metadata_operations())
    return f"CASE WHEN {OF_METADATA} THEN {total} END"


ASKED_OF_SERVERS = {
    "opens": f'CASE WHEN {OF_METADATA} THEN "open" END',
    "closes": f'CASE WHEN {OF_METADATA} THEN "close" END',
    "creates": f'CASE WHEN {OF_METADATA} THEN mknod + "create" END',
    "object_creates": "CASE WHEN source = 'obdfilter_job_stats' THEN \"create\" END",
}
"""What jobs asked of metadata servers, and the objects that object servers made for it: name -> SQL over rows
of `job_io`, NULL of those that count something else."""


def zero_if_counted(column: str, among: str) -> str:
    """COLUMN of summed rows in SQL, 0 instead of NULL where another row of the same AMONG (keys) has it:
    then somebody counts it there, and this row's owner did nothing."""
    return f"coalesce({column}, CASE WHEN count({column}) OVER (PARTITION BY {among}) > 0 THEN 0 END)"


def of_place(place: str) -> str:
    """A condition in SQL: a row's counters are of that place."""
    return f"source IN ({', '.join(repr(source) for source in PLACES[place])})"


def text(value: str) -> str:
    """As an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def listed(values: Iterable[str]) -> str:
    """Literals for `IN (...)`; of none, one that nothing equals."""
    return ", ".join(map(text, values)) or "NULL"
