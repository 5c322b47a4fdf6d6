"""Compares two stores of counters: the operations on each interface and file before and after a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from iodock.program.analyses import find
from iodock.program.analyses.base import request
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column, Totals
from iodock.shared.errors import RequestError
from iodock.shared.language import N_

_MEASURES = (("count", "calls"), ("total_time_ns", "ns"), ("read_bytes", "bytes"), ("written_bytes", "bytes"))
_HEADINGS = {
    ("count", "before"): N_("operations before"),
    ("count", "after"): N_("operations after"),
    ("total_time_ns", "before"): N_("time before"),
    ("total_time_ns", "after"): N_("time after"),
    ("read_bytes", "before"): N_("read before"),
    ("read_bytes", "after"): N_("read after"),
    ("written_bytes", "before"): N_("written before"),
    ("written_bytes", "after"): N_("written after"),
}
_NULL = N_("null if there is none, or if it is unknown")
_Key = tuple[str | None, str]
_Sums = dict[_Key, dict[str, Any]]


def are_counters(stores: Sequence[str]) -> bool:
    """Returns whether these are stores of counters. Raises RequestError if only some of them are, and
    StoreError."""
    kinds = {}
    for path in dict.fromkeys(stores):
        with Store.open(path) as store:
            kinds[path] = store.manifest.profiles_only
    if len(set(kinds.values())) > 1:
        of_counters = next(path for path, is_one in kinds.items() if is_one)
        of_calls = next(path for path, is_one in kinds.items() if not is_one)
        raise RequestError(
            f"{of_counters} contains counters, and {of_calls} calls: the former count operations of "
            "interfaces, the latter are system calls, and their times are summed up differently",
            "compare stores of the same kind: record both runs in the same way, or import both logs of "
            "Darshan",
        )
    return any(kinds.values())


def compare_counters(before: Sequence[str], after: Sequence[str], by: str, top: int | None) -> Answer:
    """Returns an answer with a row for each interface as a whole, and then a row for each file or pattern of
    files. The largest change in time comes first. BY is `pattern` or `file`. Raises RequestError if there are
    several runs on a side, and StoreError and QueryError."""
    if len(before) > 1 or len(after) > 1:
        raise RequestError(
            "counters can be compared only for one run before and one after", "iodock diff BEFORE AFTER"
        )
    with Store.open(before[0]) as one, Store.open(after[0]) as other:
        totals = _rows(_sums(one, None), _sums(other, None), by)
        files = _rows(_sums(one, by), _sums(other, by), by)
        losses = tuple(dict.fromkeys((*one.manifest.losses, *other.manifest.losses)))
        name = f"{one.name} → {other.name}"
        notes = _notes(one, other)
    changed = sorted((row for row in files if _is_changed(row)), key=_by_change)
    shown = changed[:top] if top else changed
    if same := len(files) - len(changed):
        notes.append(f"{same:,} more have the same numbers")
    is_cut = len(shown) < len(changed)
    cut = Totals({}, None, len(shown), len(changed), "that changed") if is_cut else None
    columns = _columns(by)
    schema = pa.schema(
        [(column.name, pa.string() if column.type == "str" else pa.int64()) for column in columns]
    )
    return Answer(
        analysis="diff",
        title=f"Counters compared: {name}",
        columns=columns,
        table=pa.Table.from_pylist([*totals, *shown], schema=schema),
        clock="none",
        source={},
        losses=losses,
        notes=tuple(notes),
        totals=cut,
        keys=(by, "interface"),
        store_name=name,
    )


def _notes(before: Store, after: Store) -> list[str]:
    notes = [
        "one run of each: differences in time may be chance",
        (
            "a row without a name is the whole interface; the same bytes are counted in each interface "
            "that they pass"
        ),
    ]
    ranks = [store.manifest.raw.get("ranks") for store in (before, after)]
    if ranks[0] != ranks[1]:
        known = ["an unknown number of" if one is None else f"{one:,}" for one in ranks]
        notes.append(f"{known[0]} processes before and {known[1]} after: sums are over all of them")
    return notes


def _sums(store: Store, by: str | None) -> _Sums:
    analysis = find("summary")
    answer = analysis.run(store, request(analysis, {"by": (by,) if by else ("interface",)}))
    return {(row[by] if by else None, row["interface"]): row for row in answer.table.to_pylist()}


def _rows(before: _Sums, after: _Sums, by: str) -> list[dict[str, Any]]:
    rows = []
    for key in dict.fromkeys((*before, *after)):
        one, other = before.get(key), after.get(key)
        row: dict[str, Any] = {by: key[0], "interface": key[1]}
        row["where"] = "both" if one and other else "before" if one else "after"
        for name, _ in _MEASURES:
            row[f"before_{name}"] = None if one is None else one[name]
            row[f"after_{name}"] = None if other is None else other[name]
        row["change_time_ns"] = _difference(row["before_total_time_ns"], row["after_total_time_ns"])
        rows.append(row)
    return rows


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _is_changed(row: dict[str, Any]) -> bool:
    return row["where"] != "both" or any(
        row[f"before_{name}"] != row[f"after_{name}"] for name, _ in _MEASURES
    )


def _by_change(row: dict[str, Any]) -> tuple[int, str]:
    # A file that only one side has is sorted by its whole time.
    change = (row["after_total_time_ns"] or 0) - (row["before_total_time_ns"] or 0)
    return -abs(change), str(row)


def _columns(by: str) -> tuple[Column, ...]:
    sides = []
    for name, unit in _MEASURES:
        for side in ("before", "after"):
            heading = _HEADINGS[name, side]
            sides.append(Column(f"{side}_{name}", "int", unit, "measure", _NULL, own_heading=heading))
    return (
        Column(by, "str", None, "key", f"the {by} of files; null for an interface as a whole"),
        Column("interface", "str", None, "key", "posix, stdio, mpi-io, hdf5, pnetcdf, ..."),
        Column(
            "where",
            "str",
            None,
            "detail",
            "found in both runs, only before or only after",
            importance="first",
        ),
        Column(
            "change_time_ns",
            "int",
            "ns",
            "measure",
            "time after less time before",
            own_heading="change of time",
        ),
        *sides,
    )
