"""Lists calls of interfaces, such as MPI-IO, HDF5 and NetCDF, and the bytes that system calls moved inside
them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from iodock.program.analyses.base import Analysis, Option, Request, answer, select
from iodock.program.relations.keys import KEYS
from iodock.program.relations.selection import Selection, as_events
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column
from iodock.shared.language import N_
from iodock.shared.units import BYTES

_CHOSEN = "chosen_interface_calls"
_INSIDE = "inside_interface_calls"
_CHAINS = "chains_of_interface_calls"
_MOST_CHAINS = 5
_ARROW = " -> "
_COLUMNS = (
    KEYS["interface"].column,
    Column("call", "str", None, "key", "interface call; empty: system calls outside of any"),
    Column(
        "within",
        "str",
        None,
        "key",
        "the calls of higher layers that made the call; empty: the program itself",
    ),
    KEYS["file"].column,
    Column("count", "int", "calls", "measure", "calls of all processes", importance="first"),
    Column("failed", "int", "calls", "measure", "calls that returned an error", importance="last"),
    Column("processes", "int", "processes", "measure", "number of processes (ranks) that made the call"),
    Column(
        "requested_bytes",
        "int",
        "bytes",
        "measure",
        "bytes that the program requested; empty for calls that request none",
        importance="first",
    ),
    Column(
        "total_time_ns",
        "int",
        "ns",
        "measure",
        "time inside the calls, added up over all processes; without calls of stdio that made no system call",
        importance="first",
    ),
    Column("system_calls", "int", "calls", "measure", "system calls on the file inside the interface calls"),
    Column("system_time_ns", "int", "ns", "measure", "time inside these system calls"),
    Column(
        "read_bytes",
        "int",
        "bytes",
        "measure",
        "bytes read by system calls inside the interface calls",
        importance="first",
    ),
    Column(
        "written_bytes",
        "int",
        "bytes",
        "measure",
        "bytes written by system calls inside the interface calls",
        importance="first",
    ),
    Column(
        "movers",
        "int",
        "processes",
        "measure",
        "processes whose system calls inside transferred bytes: for collective calls the aggregators",
        importance="first",
    ),
    Column("most_moved_bytes", "int", "bytes", "measure", "bytes that the busiest process transferred"),
)
_HINTS = (
    KEYS["file"].column,
    Column("call", "str", None, "key", "call of MPI-IO that the program gave them to"),
    Column("hint", "str", None, "key", "name of the hint"),
    Column("asked", "str", None, "key", "value that the program requested; empty if it requested none"),
    Column("taken", "str", None, "key", "value that the implementation reports as used; empty: none"),
    Column("count", "int", "calls", "measure", "calls with these values, of all processes"),
)
_OUTSIDE = N_(
    "rows without a call of an interface are system calls on the same files that no such call made: the "
    "program's own, and those of helper threads"
)
_UNKNOWN = N_(
    "no call of MPI-IO, HDF5, PnetCDF or NetCDF was recorded: the program made none, or it was not "
    "recorded by the back end rewrite, or it was recorded with --light, --complete or --interfaces never; "
    "calls of stdio are recorded with --interfaces stdio only"
)


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per call of an interface and file, those with most time first."""
    selection = select(store, asked.filters.without_calls())
    store.keep(_CHAINS, _CHAINS_SQL)
    store.keep(_CHOSEN, _chosen(selection))
    if asked.options["hints"]:
        keys = ("file", "call", "hint", "asked", "taken")
        return answer(
            "interfaces", N_("Hints"), store, asked, store.table(_HINTS_SQL), _HINTS, selection, keys=keys
        )
    store.keep(_INSIDE, _inside())
    table = store.table(_rows(selection))
    noted = replace(selection, notes=(*selection.notes, *_notes(store, table.to_pylist())))
    return answer(
        "interfaces",
        "Calls of interfaces",
        store,
        asked,
        table,
        _COLUMNS,
        noted,
        keys=("interface", "call", "within", "file"),
    )


def _chosen(selection: Selection) -> str:
    return f"""SELECT e.id, e.parent_id, e.interface, e.call, h.within, e.is_collective, e.direction,
  e.file_id, e.dur, e.result, e.requested_bytes, coalesce(e.calls, 1) AS calls,
  coalesce(p.upid, e.utid) AS process
FROM {as_events("interface_calls", "other_file_id")} e LEFT JOIN processes p ON p.utid = e.utid
LEFT JOIN {_CHAINS} h ON h.id = e.id {selection.joins} {selection.where}"""


_CHAINS_SQL = """WITH RECURSIVE chains AS (SELECT id, NULL::VARCHAR AS within, call AS chain
  FROM interface_calls WHERE parent_id IS NULL
UNION ALL SELECT c.id, p.chain, p.chain || ' -> ' || c.call
  FROM interface_calls c JOIN chains p ON c.parent_id = p.id)
SELECT id, within, chain FROM chains"""


def _inside() -> str:
    """Returns the SQL for the system calls inside each call of an interface, summed by file and process. This
    includes the calls of lower layers. System calls on other files are left out, because ranks also exchange
    messages inside a call of MPI-IO."""
    return f"""WITH RECURSIVE nested AS (SELECT id, id AS outer_id, parent_id FROM interface_calls
UNION ALL SELECT n.id, p.id, p.parent_id FROM nested n JOIN interface_calls p ON p.id = n.parent_id)
SELECT c.interface, c.call, c.within, c.file_id, c.process, e.call_id, n.id = n.outer_id AS is_own,
  count(*) AS calls, CAST(sum(e.dur) AS BIGINT) AS time_ns,
  CAST(sum(e.bytes) FILTER (e.direction = 1) AS BIGINT) AS read_bytes,
  CAST(sum(e.bytes) FILTER (e.direction = 2) AS BIGINT) AS written_bytes,
  CAST(coalesce(sum(e.bytes), 0) AS BIGINT) AS moved
FROM events e JOIN nested n ON n.id = e.interface_call_id
JOIN {_CHOSEN} c ON c.id = n.outer_id AND c.file_id = e.file_id
WHERE e.side NOT IN (2, 4)
GROUP BY ALL"""


def _rows(selection: Selection) -> str:
    outside = selection.and_where(
        "e.interface_call_id IS NULL",
        "e.direction > 0",
        "e.side NOT IN (2, 4)",
        f"e.file_id IN (SELECT file_id FROM {_CHOSEN})",
    )
    return f"""WITH made AS (SELECT interface, call, within, file_id, CAST(sum(calls) AS BIGINT) AS count,
    count(*) FILTER (result <> 0) AS failed, count(DISTINCT process) AS processes,
    CAST(sum(requested_bytes) AS BIGINT) AS requested_bytes, CAST(sum(dur) AS BIGINT) AS total_time_ns
  FROM {_CHOSEN} GROUP BY ALL),
each AS (SELECT interface, call, within, file_id, process, sum(calls) AS calls, sum(time_ns) AS time_ns,
    sum(read_bytes) AS read_bytes, sum(written_bytes) AS written_bytes, sum(moved) AS moved
  FROM {_INSIDE} GROUP BY ALL),
moved AS (SELECT interface, call, within, file_id, CAST(sum(calls) AS BIGINT) AS system_calls,
    CAST(sum(time_ns) AS BIGINT) AS system_time_ns, CAST(sum(read_bytes) AS BIGINT) AS read_bytes,
    CAST(sum(written_bytes) AS BIGINT) AS written_bytes, count(*) FILTER (moved > 0) AS movers,
    CAST(max(moved) AS BIGINT) AS most_moved_bytes
  FROM each GROUP BY ALL),
outside AS (SELECT e.file_id, coalesce(p.upid, e.utid) AS process,
    count(*) AS calls, sum(e.dur) AS time_ns,
    sum(e.bytes) FILTER (e.direction = 1) AS read_bytes,
    sum(e.bytes) FILTER (e.direction = 2) AS written_bytes,
    coalesce(sum(e.bytes), 0) AS moved
  FROM events e LEFT JOIN processes p ON p.utid = e.utid {selection.joins} {outside} GROUP BY ALL)
SELECT m.interface, m.call, m.within, f.name AS file, m.count, m.failed, m.processes, m.requested_bytes,
  m.total_time_ns, coalesce(b.system_calls, 0) AS system_calls, b.system_time_ns, b.read_bytes,
  b.written_bytes, coalesce(b.movers, 0) AS movers, b.most_moved_bytes
FROM made m LEFT JOIN moved b ON b.interface = m.interface AND b.call = m.call
  AND b.within IS NOT DISTINCT FROM m.within AND b.file_id IS NOT DISTINCT FROM m.file_id
LEFT JOIN files f ON f.file_id = m.file_id
UNION ALL
SELECT 'POSIX', NULL, NULL, f.name, 0, 0, 0, NULL, NULL, CAST(sum(o.calls) AS BIGINT),
  CAST(sum(o.time_ns) AS BIGINT), CAST(sum(o.read_bytes) AS BIGINT), CAST(sum(o.written_bytes) AS BIGINT),
  count(*) FILTER (o.moved > 0), CAST(max(o.moved) AS BIGINT)
FROM outside o JOIN files f ON f.file_id = o.file_id GROUP BY f.name
ORDER BY 9 DESC NULLS LAST, 1, 2, 3, 4"""


_HINTS_SQL = f"""SELECT f.name AS file, c.call, h.key AS hint, h.asked, h.taken, count(*) AS count
FROM hints h JOIN {_CHOSEN} c ON c.id = h.interface_call_id JOIN files f ON f.file_id = c.file_id
GROUP BY ALL ORDER BY 1, 2, 4 NULLS LAST, 3, 5"""


def _notes(store: Store, rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return [_UNKNOWN]
    asked = {(row["within"], row["call"], row["file"]): row["requested_bytes"] for row in rows}
    chains = [{**one, "is_partial": store.manifest.is_partly_counted} for one in store.rows(_chains())]
    notes = [note for one in chains for note in _chain_notes(one, asked)]
    return [*notes, _OUTSIDE] if any(row["call"] is None for row in rows) else notes


def _chains() -> str:
    """Returns the SQL for interface calls that moved bytes and that are collective or belong to a layer above
    MPI-IO. Each row has the system call that moved most bytes, and the number of ranks that made it."""
    return f"""WITH called AS (SELECT within, call, file_id, count(DISTINCT process) AS ranks,
    any_value(is_collective) AS is_collective FROM {_CHOSEN}
  WHERE direction > 0 AND (is_collective OR within IS NOT NULL OR interface <> 'MPI-IO') GROUP BY ALL),
moved AS (SELECT i.within, i.call, i.file_id, i.process, i.call_id, sum(i.moved) AS bytes FROM {_INSIDE} i
  WHERE i.moved > 0 AND i.is_own GROUP BY ALL)
SELECT m.within, m.call, arg_max(c.name, m.bytes) AS system_call, count(DISTINCT m.process) AS movers,
  any_value(d.ranks) AS ranks, any_value(d.is_collective) AS is_collective,
  CAST(sum(m.bytes) AS BIGINT) AS bytes, any_value(f.name) AS file
FROM moved m JOIN called d ON d.call = m.call AND d.file_id = m.file_id
  AND d.within IS NOT DISTINCT FROM m.within
JOIN calls c ON c.id = m.call_id JOIN files f ON f.file_id = m.file_id
GROUP BY m.within, m.call, m.file_id ORDER BY bytes DESC, file, 1, 2 LIMIT {_MOST_CHAINS}"""


def _chain_notes(one: dict[str, Any], asked: dict[tuple[str | None, str, str], int | None]) -> Iterator[str]:
    """Yields a note with the layers, and with the ranks that moved the bytes. If there are several layers, or
    if the call is not collective, it yields a second note with the bytes that the program requested from each
    layer."""
    calls = [*(one["within"].split(_ARROW) if one["within"] else ()), one["call"]]
    chain = _ARROW.join((*calls, one["system_call"]))
    yield _moved_note(chain, one)
    layers = ", ".join(
        f"{call} {BYTES.text(requested)}"
        for depth, call in enumerate(calls)
        if (requested := asked.get((_ARROW.join(calls[:depth]) or None, call, one["file"])))
    )
    if layers and not (one["is_collective"] and len(calls) == 1):
        size = BYTES.text(one["bytes"])
        yield f"{chain}: requested: {layers}; transferred: {size}"


def _moved_note(chain: str, one: dict[str, Any]) -> str:
    file, movers, ranks = one["file"], one["movers"], one["ranks"]
    size = BYTES.text(one["bytes"] / movers)
    # If some ranks were only counted, the note must not call the other ranks aggregators, because the counted
    # ranks may have moved bytes for the same collective call.
    if not one["is_collective"] or one["is_partial"]:
        return f"{chain}: {movers} of {ranks} processes, {size} each, {file}"
    if movers == ranks:
        return f"{chain}: each of {ranks} ranks by itself, {size} each, {file}"
    if movers == 1:
        return f"{chain}: 1 aggregator of {ranks} ranks, {size}, {file}"
    return f"{chain}: {movers} aggregators of {ranks} ranks, {size} each, {file}"


ANALYSIS = Analysis(
    name="interfaces",
    title="Calls of interfaces",
    doc="""Calls of MPI-IO, HDF5, PnetCDF, NetCDF and (with `record --interfaces stdio`) stdio, with the bytes
that they were asked for, and the system
calls that they made: how many, how long, how many bytes, and how many of the processes moved them. Where
a layer calls another one (NetCDF calls HDF5, and that MPI-IO) each has its rows, and what the lower
one moved counts for all. With collective buffering (two phases) few ranks, the aggregators, move
the bytes of all. Bytes below may be more (data sieving) or fewer than those asked for. `--hints`
lists the hints that the program gave as it opened files or later (MPI_File_set_info,
MPI_File_set_view), and those that the implementation took. It needs a recording by the back end
rewrite. Filters by call, direction, outcome and duration do not apply.""",
    columns=_COLUMNS,
    run=run,
    options=(
        Option("hints", "flag", False, "list the hints of the files, both requested and effective ones"),
    ),
    examples=(
        "iodock show interfaces run.iodock --hints",
        "iodock show interfaces run.iodock --file '**/out.dat'",
    ),
)
