"""Draws the process tree as a timeline. It shows which process started which, the programs that they ran,
and how they ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from iodock.program.views.charts.clock import run_start, time_axis
from iodock.program.views.charts.source import MOST_BARS, CannotDraw, need_rows
from iodock.shared.answer import Answer
from iodock.shared.charts.frame import Picture, colour, theme_of, tips, values
from iodock.shared.charts.options import ChartOptions
from iodock.shared.text import TIP_CELLS, labels, shorten
from iodock.shared.units import NANOSECONDS

_ROW_PIXELS = 30
_WELL, _STATUS, _SIGNAL, _UNSEEN = (
    "ended with 0",
    "ended with another status",
    "killed by a signal",
    "end not seen",
)


@dataclass(slots=True)
class Task:
    """Describes a process or thread as the picture shows it. Times are in the clock's ns."""

    identity: Any
    parent: Any
    label: str
    command: str
    how: str
    start: float
    end: float | None
    ending: str
    outcome: str
    depth: int = 0
    children: list[Task] = field(default_factory=list)


def draw_processes(answer: Answer, options: ChartOptions) -> Picture:
    """Processes and threads from start to end, children below parents; the longest where there are many."""
    need_rows(answer)
    tasks = [task for row in answer.table.to_pylist() if (task := _task(row)) is not None]
    if not tasks:
        raise CannotDraw("this source has no time stamps, so the times of processes are unknown")
    ordered = _tree_order(tasks)
    last = max(max(task.start, task.end or 0.0) for task in tasks)
    longest = sorted(ordered, key=lambda task: -((task.end or last) - task.start))[:MOST_BARS]
    kept = {id(task) for task in longest}
    shown = [task for task in ordered if id(task) in kept]
    origin = run_start(answer, min(task.start for task in tasks))
    span = max(last - origin, 1.0)
    rows = [
        _row(task, label, origin, last, span) for task, label in zip(shown, _row_labels(shown), strict=True)
    ]
    theme = theme_of(options)
    colours = {_WELL: theme.read, _STATUS: theme.failed, _SIGNAL: theme.both, _UNSEEN: theme.other}
    present = [name for name in colours if any(row["ending"] == name for row in rows)]
    chart = _marks(rows, answer, origin, span, present, [colours[name] for name in present], theme.ink)
    hidden = len(tasks) - len(shown)
    notes = [f"the {len(shown)} longest of {len(tasks):,} processes and threads"] if hidden else []
    return Picture(chart, "Processes over time", notes, max(90, len(rows) * _ROW_PIXELS))


def _marks(
    rows: list[dict[str, Any]],
    answer: Answer,
    origin: float,
    span: float,
    names: list[str],
    hues: list[str],
    ink: str,
) -> Any:
    import altair

    y = altair.Y(
        field="label",
        type="nominal",
        title="process",
        sort=None,
        scale=altair.Scale(domain=[row["label"] for row in rows], padding=0),
        axis=altair.Axis(ticks=False, domain=False, grid=True, bandPosition=1, labelPadding=6),
    )
    base = altair.Chart(values(rows)).encode(y=y)
    bars = base.mark_bar(height=9, yOffset=6, cornerRadius=1).encode(
        x=time_axis(answer, origin, span),
        x2="end:Q",
        color=colour("ending", names, hues),
        tooltip=tips(
            ("command", "ran"),
            ("task", "task"),
            ("how", "made by"),
            ("from", "from"),
            ("took", "for"),
            ("outcome", "ended"),
        ),
    )
    texts = [
        base.transform_filter(f"datum.side == '{side}'")
        .mark_text(align=side, dy=-7, dx=1 if side == "left" else -1, fontSize=10.5, color=ink)
        .encode(x=altair.X(field="anchor", type="quantitative"), text="text:N")
        for side in ("left", "right")
    ]
    return altair.layer(bars, *texts)


def _row(task: Task, label: str, origin: float, last: float, span: float) -> dict[str, Any]:
    start, end = task.start - origin, (task.end or last) - origin
    # A name that begins in the right part of the plot would extend beyond the plot, so it ends at the bar's
    # end instead.
    side = "left" if start < 0.55 * span else "right"
    shown_end = max(end, start + span / 400)
    return {
        "label": label,
        "at": min(start, span - span / 400),
        "end": shown_end,
        "anchor": start if side == "left" else min(shown_end, span),
        "side": side,
        "text": f"{'└ ' if task.depth else ''}{shorten(task.command, 56)}{_ended(task)}",
        "command": shorten(task.command, TIP_CELLS),
        "task": task.label,
        "how": task.how,
        "from": NANOSECONDS.text(start),
        "took": NANOSECONDS.text(end - start),
        "ending": task.ending,
        "outcome": task.outcome,
    }


def _ended(task: Task) -> str:
    return f"  ({task.outcome})" if task.ending in (_STATUS, _SIGNAL) else ""


def _row_labels(tasks: list[Task]) -> list[str]:
    return labels([task.label for task in tasks], 24)


def _task(row: dict[str, Any]) -> Task | None:
    start = row.get("start_ts")
    if start is None:
        return None
    # If these ids differ, the task is a thread: `pid` is its own id, and `process_pid` that of its process.
    is_thread = row.get("process_pid", row["pid"]) != row["pid"]
    label = f"{'thread' if is_thread else 'pid'} {row['pid']}"
    ending, outcome = _outcome(row)
    end = row.get("end_ts")
    command = _command(row)
    how = row.get("how") or "not known"
    return Task(
        row["pid"],
        row.get("parent_pid"),
        label,
        command,
        how,
        float(start),
        None if end is None else float(end),
        ending,
        outcome,
    )


def _outcome(row: dict[str, Any]) -> tuple[str, str]:
    signal, status = row.get("exit_signal"), row.get("exit_code")
    if signal:
        return _SIGNAL, str(signal)
    if status is None:
        return (_UNSEEN, "not known")
    return (_WELL, "status 0") if status == 0 else (_STATUS, f"status {status}")


def _command(row: dict[str, Any]) -> str:
    """Returns the programs that the task ran. If there are several, arrows join them."""
    for name in ("commands", "command"):
        found = row.get(name)
        if found:
            return " → ".join(_words(one) for one in found) if isinstance(found, list) else str(found)
    return str(row.get("how") or "")


def _words(command: Any) -> str:
    if isinstance(command, dict):
        command = command.get("argv") or command.get("path") or ""
    return " ".join(str(word) for word in command) if isinstance(command, list) else str(command)


def _tree_order(tasks: list[Task]) -> list[Task]:
    """Orders tasks so that parents come before their children, and siblings are sorted by start. Tasks
    without a known parent are roots.

    The function does not recurse, and also ends if a reused pid made the tree cyclic.
    """
    known: dict[Any, Task] = {}
    for task in sorted(tasks, key=lambda task: task.start):
        known.setdefault(task.identity, task)
    roots: list[Task] = []
    for task in tasks:
        parent = known.get(task.parent)
        (roots if parent is None or parent is task else parent.children).append(task)
    ordered: list[Task] = []
    seen: set[int] = set()
    for root in [*_by_start(roots), *_by_start(tasks)]:
        stack = [(root, 0)]
        while stack:
            task, depth = stack.pop()
            if id(task) in seen:
                continue
            seen.add(id(task))
            task.depth = depth
            ordered.append(task)
            stack += [(child, depth + 1) for child in reversed(_by_start(task.children))]
    return ordered


def _by_start(tasks: Iterable[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: task.start)
