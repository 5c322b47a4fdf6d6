"""Creates a run that is random but always the same, and answers the queries of iodock by brute force in
Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

from synthetic import KNOWN_CALLS, event_row, file_row, process_row, write_store

Row = dict[str, Any]
START = 1_700_000_000_000_000_000
FILES = [
    file_row(0, "/data/in1.dat"),
    file_row(1, "/data/in2.dat"),
    file_row(2, "/data/deep/out.txt", "file"),
    file_row(3, "/etc/hosts"),
    file_row(4, "/usr/lib/libc.so.6"),
    file_row(5, "pipe", "pipe"),
    file_row(6, "stdout", "standard"),
    file_row(7, "/data/[odd]*name.dat"),
    file_row(8, "/データ/結果.dat"),
]
PROCESSES = [
    process_row(0, 100, start_ts=START, end_ts=START + 10**9, exit_code=0, rank=0),
    process_row(1, 100, 101, how="thread", parent_utid=0, parent_pid=100, rank=0),
    process_row(2, 200, how="fork", parent_utid=0, parent_pid=100, exit_signal="SIGKILL", rank=1),
]
COMMANDS = [
    {"utid": 0, "ts": START, "path": "/bin/one", "argv": ["one"]},
    {"utid": 0, "ts": START + 5, "path": "/bin/two", "argv": ["two", "-x"]},
]
PATH_KINDS = {"file", "regular", "directory", "symlink", "device", "fifo"}


def mixed_store(path: Path, calls: int = 600) -> Path:
    """Writes the run as a store."""
    return write_store(path, mixed_events(calls), FILES, PROCESSES, COMMANDS)


def mixed_events(calls: int = 600, seed: int = 7) -> list[Row]:
    """Returns rows of `events`. The two rows of a call with two descriptors, such as sendfile, are
    adjacent."""
    pick = random.Random(seed)
    rows: list[Row] = []
    for number in range(calls):
        rows += _call(pick, START + number * 3_000_000 + pick.randrange(10**6))
    return sorted(rows, key=lambda row: row["ts"] + (row["dur"] or 0))


def _call(pick: random.Random, ts: int) -> list[Row]:
    name = pick.choice([name for name, _, _ in KNOWN_CALLS])
    base: Row = {"ts": ts, "dur": pick.choice([None, pick.randrange(1, 10**6)]), "utid": pick.randrange(3)}
    if name == "exit_group":
        return [event_row(name, **base | {"dur": None})]
    failed = pick.random() < 0.25
    base |= (
        {"errno": pick.choice(["ENOENT", "EACCES"]), "result": -1}
        if failed
        else {"result": pick.randrange(9000)}
    )
    if name in ("brk", "poll"):
        return [event_row(name, **base)]
    one, two = pick.randrange(len(FILES)), pick.randrange(len(FILES))
    if name in ("sendfile", "copy_file_range"):
        moved = None if failed else base["result"]
        asked = {"requested_bytes": 9000, "bytes": moved}
        ends = [(one, two, "in", 1), (two, one, "out", 2)]
        return [
            event_row(name, **base, **asked, file_id=own, other_file_id=other, side=side, direction=way)
            for own, other, side, way in ends
        ]
    if name == "rename":
        ends = [(one, two, "old", 0), (two, one, "new", 0)]
        return [
            event_row(name, **base, file_id=own, other_file_id=other, side=side)
            for own, other, side, _ in ends
        ]
    if name in ("read", "pread64", "write"):
        moved = None if failed else base["result"]
        way = 2 if name == "write" else 1
        base |= {
            "requested_bytes": 9000,
            "bytes": moved,
            "direction": way,
            "offset_bytes": pick.randrange(10**6),
        }
    return [event_row(name, **base, file_id=one)]


def wide(row: Row) -> Row:
    """Returns a row of `events` with names in place of numbers."""
    name, family, kind = KNOWN_CALLS[row["call_id"]]
    file = FILES[row["file_id"]] if row.get("file_id") is not None else None
    task = PROCESSES[row["utid"]]
    errno = {0: "ENOENT", 1: "EACCES"}.get(row.get("errno_id", -1))
    names = {"call": name, "family": family, "class": kind, "interface": "POSIX", "errno": errno}
    of_file = {
        key: file[column] if file else None
        for key, column in (
            ("file", "name"),
            ("folder", "folder"),
            ("ending", "ending"),
            ("kind", "kind"),
            # A pattern is formed from at least 4 similar names. There are fewer here, so the pattern is the
            # name.
            ("pattern", "name"),
        )
    }
    of_task = {"pid": task["pid"], "tid": task["tid"], "rank": task["rank"], "host": None}
    return row | names | of_file | of_task


def brute_summary(
    rows: Iterable[Row], keys: tuple[str, ...], wanted: Callable[[Row], bool]
) -> dict[tuple[Hashable, ...], Row]:
    """Computes the summary by iterating over whole calls."""
    groups: dict[tuple[Hashable, ...], Row] = {}
    for ends in whole_calls(rows):
        chosen = [end for end in map(wide, ends) if wanted(end)]
        for key in {tuple(end[name] for name in keys) for end in chosen}:
            mine = [end for end in chosen if tuple(end[name] for name in keys) == key]
            _add(groups.setdefault(key, _empty()), mine)
    return groups


def whole_calls(rows: Iterable[Row]) -> Iterable[list[Row]]:
    """Groups the rows of each call: one row, or two for a call with two descriptors."""
    waiting: list[Row] = []
    for row in rows:
        waiting.append(row)
        if row["side"] in (1, 3):
            continue
        yield waiting
        waiting = []


def _empty() -> Row:
    sums = dict.fromkeys(("count", "success", "failed", "no_result", "io_count"), 0)
    return sums | {
        "errnos": {},
        "total_time_ns": None,
        "read_bytes": None,
        "written_bytes": None,
        "max_time_ns": None,
    }


def _add(group: Row, ends: list[Row]) -> None:
    call = ends[0]
    group["count"] += 1
    outcome = "failed" if call["errno"] else "no_result" if call.get("result") is None else "success"
    group[outcome] += 1
    if call["errno"]:
        group["errnos"][call["errno"]] = group["errnos"].get(call["errno"], 0) + 1
    if call["dur"] is not None:
        group["total_time_ns"] = (group["total_time_ns"] or 0) + call["dur"]
        group["max_time_ns"] = max(group["max_time_ns"] or 0, call["dur"])
    group["io_count"] += any(end.get("bytes") is not None for end in ends)
    for end in ends:
        if end.get("bytes") is None:
            continue
        name = "read_bytes" if end["direction"] == 1 else "written_bytes"
        group[name] = (group[name] or 0) + end["bytes"]
