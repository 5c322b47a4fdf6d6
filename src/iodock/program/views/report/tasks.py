"""Makes the process tree for the page. It has the tasks with the highest cost, and all their ancestors."""

from __future__ import annotations

from typing import Any

from iodock.program.store import Store
from iodock.program.views.report.ask import PageTable, Row, ask, page_table, rows_of

COLUMNS = (
    "process", "pid", "rank", "host", "how", "start_ns", "end_ns", "exit", "count", "failed",
    "total_time_ns", "read_bytes", "written_bytes",
)  # fmt: skip
_ASKED = (
    "pid", "parent_pid", "how", "rank", "host", "commands", "start_ts", "end_ts", "exit_code",
    "exit_signal", "count", "failed", "total_time_ns", "read_bytes", "written_bytes",
)  # fmt: skip
_LONGEST_NAME = 120


def processes_table(store: Store, most: int) -> PageTable:
    """Returns tasks in the order of the tree. Each row has its `depth` in the tree. `threads` of the table
    is the number of tasks that are additional threads of a process."""
    rows = rows_of(ask(store, "processes"), _ASKED)
    parents = _parents(rows)
    chosen = _chosen(rows, parents, most)
    order = _tree(sorted(chosen), parents)
    start = store.manifest.first_ts or 0
    names = _command_names(rows, parents)
    table = page_table(
        COLUMNS, [_shown(rows[place], names[place], start) for place, _ in order], of=len(rows)
    )
    threads = sum(row[2] == "thread" for row in rows)
    return table | {"depth": [depth for _, depth in order], "threads": threads}


def _parents(rows: list[Row]) -> list[int | None]:
    """Returns the index of each task's parent; None if it has none. Ids are reused, so the parent is the
    latest earlier task with the parent's id."""
    latest: dict[tuple[Any, Any], int] = {}
    parents: list[int | None] = []
    for place, row in enumerate(rows):
        host = row[4]
        parents.append(latest.get((host, row[1])) if row[1] is not None else None)
        latest[(host, row[0])] = place
    return parents


def _chosen(rows: list[Row], parents: list[int | None], most: int) -> set[int]:
    costliest = sorted(range(len(rows)), key=lambda place: (-(rows[place][12] or 0), -rows[place][10], place))
    chosen: set[int] = set()
    for place in costliest:
        line = _ancestry(place, parents)
        if len(chosen | set(line)) > most:
            break
        chosen.update(line)
    return chosen


def _ancestry(place: int, parents: list[int | None]) -> list[int]:
    line = [place]
    while (parent := parents[line[-1]]) is not None:
        line.append(parent)
    return line


def _tree(chosen: list[int], parents: list[int | None]) -> list[tuple[int, int]]:
    """Returns the index and depth of each task, parents before their children. The function does not
    recurse, because a chain of shells can be long."""
    children: dict[int | None, list[int]] = {}
    for place in chosen:
        children.setdefault(parents[place], []).append(place)
    waiting = [(place, 0) for place in reversed(children.get(None, []))]
    order = []
    while waiting:
        place, depth = waiting.pop()
        order.append((place, depth))
        waiting += [(child, depth + 1) for child in reversed(children.get(place, []))]
    return order


def _command_names(rows: list[Row], parents: list[int | None]) -> list[str]:
    """Returns the programs that each task ran. A task that ran none gets the last program of its parent."""
    names: list[str] = []
    for place, row in enumerate(rows):
        ran = [path.rsplit("/", 1)[-1] or path for path in row[5] or []]
        parent = parents[place]
        inherited = names[parent].rsplit(" → ", 1)[-1] if parent is not None else "?"
        names.append(" → ".join(ran[-4:])[:_LONGEST_NAME] if ran else inherited)
    return names


def _shown(row: Row, name: str, start: int) -> Row:
    pid, _, how, rank, host, _, begin, end, code, signal, *measures = row
    ended = signal if signal is not None else None if code is None else str(code)
    since = [None if ts is None else ts - start for ts in (begin, end)]
    return [name, pid, rank, host, how, *since, ended, *measures]
