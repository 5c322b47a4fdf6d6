"""Lists counters from Darshan's logs, which contain no calls."""

from __future__ import annotations

from iodock.program.analyses.base import Analysis, Option, Request, answered
from iodock.program.relations.profiled.chosen import CHOSEN, choose
from iodock.program.relations.profiled.operations import sum_or_none
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column
from iodock.shared.errors import RequestError, meant

_KEYS = {
    "file": Column("file", "str", None, "key", "the file's, data set's or variable's name"),
    "pattern": Column("pattern", "str", None, "key", "the name with its varying part starred"),
    "folder": Column("folder", "str", None, "key", "the folder of the file"),
    "fs_type": Column("fs_type", "str", None, "key", "type of its file system"),
    "rank": Column("rank", "int", None, "key", "MPI rank, empty for all ranks together"),
    "interface": Column(
        "interface", "str", None, "key", "posix, stdio, mpi-io, hdf5, pnetcdf, or objects inside files"
    ),
}
_COUNTS = {
    "opens": "calls that open files",
    "reads": "calls that read",
    "writes": "calls that write",
    "seeks": "calls that only change the file position",
    "stats": "calls that query attributes",
    "syncs": "calls that write data to the disk or server, and flushes",
}
_BYTES = {"read_bytes": "bytes that were read", "written_bytes": "bytes that were written"}
_TIMES = {
    "read_time_ns": "in reads, of all ranks together",
    "write_time_ns": "in writes, of all ranks together",
    "meta_time_ns": "in opens, closes, seeks, stats and similar calls, of all ranks together",
}
_HEADINGS = {"meta_time_ns": "metadata time"}
_SUMS = {**_COUNTS, **_BYTES, **_TIMES}
_MEASURES = (
    Column("profiles", "int", "profiles", "measure", "records of the log", importance="last"),
    Column("files", "int", "files", "measure", "different files, data sets or variables"),
    *(Column(name, "int", "calls", "measure", doc) for name, doc in _COUNTS.items()),
    *(Column(name, "int", "bytes", "measure", doc, importance="first") for name, doc in _BYTES.items()),
    *(
        Column(name, "int", "ns", "measure", doc, own_heading=_HEADINGS.get(name))
        for name, doc in _TIMES.items()
    ),
    Column("first_ts", "int", "ns", "time", "start of the first known operation"),
    Column("last_ts", "int", "ns", "time", "end of the last known operation"),
    Column("estimated", "str", None, "detail", "stored columns in which some value is not exact"),
)


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per key and interface, those with most time first."""
    keys, notes = _keys(asked), choose(store, asked.filters)
    table = store.table(_rows(keys))
    columns = (*(_KEYS[key] for key in keys), *_MEASURES)
    title = f"Counters by {', '.join(keys)}"
    return answered("profiles", title, store, asked, table, columns, notes, keys=keys)


def _keys(asked: Request) -> tuple[str, ...]:
    """Returns the requested keys and the interface. The interface is always a key: the same bytes pass
    through several interfaces, and a sum over interfaces would count them several times. Raises RequestError
    for an unknown key."""
    for key in asked.options["by"]:
        if key not in _KEYS:
            raise RequestError(f"no such key: {key}", meant(key, tuple(_KEYS), f"keys: {', '.join(_KEYS)}"))
    return tuple(dict.fromkeys((*asked.options["by"], "interface")))


def _rows(keys: tuple[str, ...]) -> str:
    grouped = ", ".join(f'p.{key} AS "{key}"' for key in keys)
    numbers = ", ".join(str(at + 1) for at in range(len(keys)))
    sums = ", ".join(f"{sum_or_none('p.' + name)} AS {name}" for name in _SUMS)
    spent = " + ".join(f"coalesce({name}, 0)" for name in _TIMES)
    names = "list_sort(list_distinct(flatten(list(p.estimated))))"
    return f"""WITH g AS (SELECT {grouped}, count(*) AS profiles, count(DISTINCT p.file_id) AS files, {sums},
    min(p.first_ts) AS first_ts, max(p.last_ts) AS last_ts,
    nullif(array_to_string({names}, ', '), '') AS estimated
  FROM {CHOSEN} p GROUP BY {numbers})
SELECT * FROM g ORDER BY {spent} DESC, {numbers}"""


ANALYSIS = Analysis(
    name="profiles",
    title="Counters",
    doc="""Counters by interface of a store that has counters instead of calls (iodock import of a log of
    Darshan): calls, bytes and times, added up over ranks and files. The same bytes are counted in each
    interface that they pass: those of mpi-io appear again in posix. Values that Darshan, or that version of
    it, does not count are empty. Only the filters --file and --rank apply. To read the tables themselves, use
    `iodock query`.""",
    columns=(_KEYS["interface"], *_MEASURES),
    run=run,
    profiles=True,
    calls=False,
    options=(Option("by", "keys", (), f"group by these keys, and the interface: {', '.join(_KEYS)}"),),
    examples=(
        "iodock show profiles job.iodock",
        "iodock show profiles job.iodock --by file --top 20",
        "iodock show profiles job.iodock --by rank --file '**/out.h5'",
    ),
)
