"""Paths of calls as a tree of boxes. Each box has the sums of all paths through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from iodock.program.relations.flames import Frame
from iodock.program.relations.paths import Path, Paths

_ROOT = Frame("program", "")


@dataclass(slots=True)
class Box:
    """A frame with a given path of callers above it."""

    frame: Frame
    time_ns: int = 0
    bytes: int = 0
    calls: int = 0
    inside: dict[int, Box] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        """Adds time, bytes and number of the calls on a path."""
        self.time_ns += path.time_ns or 0
        self.bytes += path.bytes or 0
        self.calls += path.calls

    def weight(self, name: str) -> int:
        """Returns the box's value of one of WEIGHTS."""
        return self.calls if name == "calls" else self.bytes if name == "bytes" else self.time_ns

    def share(self, whole: Box, weights: Iterable[str]) -> float:
        """Returns the box's share of the whole, by the weight for which it is largest."""
        return max((self.weight(one) / (whole.weight(one) or 1) for one in weights), default=0.0)


def tree_of(paths: Paths) -> Box:
    """Returns the box of all paths. Its frame has no name."""
    whole = Box(_ROOT)
    for path in paths:
        box = whole
        box.add(path)
        for number in path.frames:
            box = box.inside.setdefault(number, Box(paths.frames[number]))
            box.add(path)
    return whole


def by_name(box: Box) -> tuple[str, str]:
    """Sort key that gives the order of a flame graph."""
    return box.frame.title, box.frame.kind


def walked(
    whole: Box, keeps: Callable[[Box], bool], order: Callable[[Box], tuple[object, ...]]
) -> Iterator[tuple[int, Box]]:
    """Yields depth and box, each before those inside it. Only boxes for which KEEPS is true appear, sorted by
    ORDER."""
    waiting = [(0, whole)]
    while waiting:
        depth, box = waiting.pop()
        yield depth, box
        inside = sorted(filter(keeps, box.inside.values()), key=order)
        waiting += ((depth + 1, one) for one in reversed(inside))
