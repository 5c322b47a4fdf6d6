"""Makes a tree of boxes from the paths of calls. Each box has the sums of all paths that pass through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from iodock.program.relations.flames import Frame
from iodock.program.relations.paths import Path, Paths

_ROOT = Frame("program", "")


@dataclass(slots=True)
class Box:
    """Holds a frame in a tree of call paths. The same frame below other callers is a box of its own."""

    frame: Frame
    time_ns: int = 0
    bytes: int = 0
    calls: int = 0
    inside: dict[int, Box] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        """Adds the time, the bytes and the number of the calls on a path to the box's sums."""
        self.time_ns += path.time_ns or 0
        self.bytes += path.bytes or 0
        self.calls += path.calls

    def weight(self, name: str) -> int:
        """Returns the box's sum that NAME selects: calls, bytes, or else time in ns."""
        return self.calls if name == "calls" else self.bytes if name == "bytes" else self.time_ns

    def share(self, whole: Box, weights: Iterable[str]) -> float:
        """Returns the box's share of the tree's root WHOLE (0 to 1). If there are several weights, it is the
        largest of the shares."""
        return max((self.weight(one) / (whole.weight(one) or 1) for one in weights), default=0.0)


def tree_of(paths: Paths) -> Box:
    """Returns the root box, which contains all paths. Its frame has no name."""
    whole = Box(_ROOT)
    for path in paths:
        box = whole
        box.add(path)
        for number in path.frames:
            box = box.inside.setdefault(number, Box(paths.frames[number]))
            box.add(path)
    return whole


def by_name(box: Box) -> tuple[str, str]:
    """Returns the key by which flame graphs sort boxes: title and kind of the frame."""
    return box.frame.title, box.frame.kind


def walked(
    whole: Box, keeps: Callable[[Box], bool], order: Callable[[Box], tuple[object, ...]]
) -> Iterator[tuple[int, Box]]:
    """Yields each box with its depth, and the boxes inside it after it. Leaves out boxes below the root for
    which KEEPS is false. ORDER is the sort key for boxes with the same parent."""
    waiting = [(0, whole)]
    while waiting:
        depth, box = waiting.pop()
        yield depth, box
        inside = sorted(filter(keeps, box.inside.values()), key=order)
        waiting += ((depth + 1, one) for one in reversed(inside))
