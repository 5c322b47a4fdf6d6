"""Defines the places where operations and bytes are counted, and which operations are metadata operations.

The same bytes are counted at several places, for example in the process and on the file server. Therefore a
query adds only counts of one place."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

SERVERS, PROCESSES, CGROUPS = "servers", "processes", "cgroups"
PLACES = {
    SERVERS: ("mdt_job_stats", "obdfilter_job_stats", "mfs_sessions"),
    # The row with a step's total contains only the part that the samples of its processes missed, so the sum
    # of both sources counts nothing twice.
    PROCESSES: ("process_io", "slurm_step"),
    CGROUPS: ("cgroup_io",),
}
"""Maps each place to the kinds of sources whose rows may be added up."""
SERVED = "(source LIKE 'mdt%' OR source LIKE 'obdfilter%' OR source IN ('mfs_master', 'mfs_sessions'))"
"""SQL condition: a machine with such a row serves a file system."""
OF_METADATA = "source IN ('mdt_job_stats', 'mfs_sessions')"
"""SQL condition: a row of `job_io` counts requests of jobs to a metadata server."""
_NO_METADATA = (
    *("read_bytes", "write_bytes", "reads", "writes", "call_read_bytes", "call_write_bytes"),
    *("read_calls", "write_calls", "cancelled_write_bytes", "time_us"),
)


@cache
def metadata_operations() -> tuple[str, ...]:
    """Returns the columns of `job_io` that count metadata operations."""
    from iodock.centre.store import counters

    return tuple(name for name in counters() if name not in _NO_METADATA)


def sums(place: str) -> tuple[str, ...]:
    """Returns the columns of `job_io` with the bytes and metadata operations that are counted at PLACE."""
    if place == PROCESSES:
        return ("call_read_bytes", "call_write_bytes")
    return ("read_bytes", "write_bytes", *(metadata_operations() if place == SERVERS else ()))


_CALLS = ("call_read_bytes", "call_write_bytes", "read_calls", "write_calls", "cancelled_write_bytes")
_DATA = ("read_bytes", "write_bytes", "reads", "writes")
_OF_PROCESSES = (*_CALLS, "read_bytes", "write_bytes")


@cache
def _sources_of(column: str) -> tuple[str, ...]:
    """Returns the kinds of sources that count a column of `job_io`. Rows of other sources have 0 in this
    column."""
    counted = {
        "obdfilter_job_stats": (*_DATA, *metadata_operations(), "time_us"),
        "mdt_job_stats": (*_DATA, *metadata_operations(), "time_us"),
        # Clients of MooseFS read and write on chunk servers. The master, which this source reads, does not
        # count reads and writes.
        "mfs_sessions": metadata_operations(),
        "process_io": _OF_PROCESSES,
        "slurm_step": _OF_PROCESSES,
        "cgroup_io": _DATA,
    }
    return tuple(source for source, columns in counted.items() if column in columns)


def known(column: str) -> str:
    """Returns SQL for a column of `job_io` that is NULL if the row's source does not count it, so that a sum
    over such rows is NULL and not 0."""
    sources = ", ".join(map(text, _sources_of(column)))
    value = f'"{column}"'
    if column == "time_us":
        # Lustre before 2.13 does not measure the time of operations, so 0 means unknown.
        value = f"nullif({value}, 0)"
    elif column in _DATA:
        # A metadata server counts reads and writes only if it stores the data of files itself. Otherwise its
        # 0 means that it does not count them.
        value = f"CASE WHEN source = 'mdt_job_stats' THEN nullif({value}, 0) ELSE {value} END"
    return f"CASE WHEN source IN ({sources}) THEN {value} END"


def metadata() -> str:
    """Returns SQL for the metadata operations in a row of `job_io`: NULL unless a metadata server counted the
    row. Object servers create and destroy objects as a result of these operations, so those are not added."""
    total = " + ".join(f'"{name}"' for name in metadata_operations())
    return f"CASE WHEN {OF_METADATA} THEN {total} END"


ASKED_OF_SERVERS = {
    "opens": f'CASE WHEN {OF_METADATA} THEN "open" END',
    "closes": f'CASE WHEN {OF_METADATA} THEN "close" END',
    "creates": f'CASE WHEN {OF_METADATA} THEN mknod + "create" END',
    "object_creates": "CASE WHEN source = 'obdfilter_job_stats' THEN \"create\" END",
}
"""SQL for requests of jobs to metadata servers, by name, and for the objects that object servers created for
these requests. NULL for rows that count something else."""


def zero_if_counted(column: str, among: str) -> str:
    """Returns SQL for COLUMN of rows with sums. It is 0 instead of NULL if another row with the same value of
    AMONG (a list of columns) is not NULL. In this case the source counts the column, and the row's owner did
    no such operations."""
    return f"coalesce({column}, CASE WHEN count({column}) OVER (PARTITION BY {among}) > 0 THEN 0 END)"


def of_place(place: str) -> str:
    """Returns the SQL condition that a row of `job_io` was counted at PLACE."""
    return f"source IN ({', '.join(repr(source) for source in PLACES[place])})"


def text(value: str) -> str:
    """Quotes a text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def listed(values: Iterable[str]) -> str:
    """Returns texts as a list of SQL literals for `IN (...)`. Without texts it is NULL, which equals no
    value."""
    return ", ".join(map(text, values)) or "NULL"
