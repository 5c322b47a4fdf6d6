"""Defines the measurements of a check-up: three tests, each repeated for several I/O sizes and numbers of
processes. The class (S, M or L) determines these numbers.

The tests and process counts are those of the file-system health check of the SS research group (file I/O
analysis report, 2015). The tests are `large transfer`, `constant volume`, which divides one volume into files
of different sizes, and `metadata`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
TESTS = ("large-transfer", "constant-volume", "metadata")


@dataclass(frozen=True)
class Class:
    """Sizes and volumes of one class of check-up. A volume is the number of bytes of all processes
    together."""

    name: str
    sizes: tuple[int, ...]
    """Request sizes of the test `large transfer`, bytes."""
    processes: tuple[int, ...]
    volume_bytes: int
    """Volume of the test `large transfer`. Each process makes at least one request."""
    constant_volumes: tuple[int, ...]
    pieces: tuple[int, ...]
    """File sizes of the test `constant volume`, bytes."""
    items: int
    """Number of files, and of directories, that each process creates."""
    limit_s: float
    """Time limit of one phase of a data test."""
    metadata_limit_s: float
    budget_s: float | None
    """Time limit of the whole check-up. Volumes are reduced to meet it."""


CLASSES: Mapping[str, Class] = {
    one.name: one
    for one in (
        Class(
            name="S",
            sizes=(4 * KIB, 64 * KIB, MIB, 16 * MIB),
            processes=(1, 5, 10),
            volume_bytes=64 * MIB,
            constant_volumes=(32 * MIB,),
            pieces=(64 * KIB, MIB, 16 * MIB),
            items=500,
            limit_s=0.35,
            metadata_limit_s=0.2,
            budget_s=80.0,
        ),
        Class(
            name="M",
            sizes=(4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB),
            processes=(1, 5, 10, 50),
            volume_bytes=GIB,
            constant_volumes=(100 * MIB, GIB),
            pieces=(64 * KIB, MIB, 16 * MIB, 100 * MIB),
            items=2_000,
            limit_s=3.0,
            metadata_limit_s=2.0,
            budget_s=None,
        ),
        Class(
            name="L",
            sizes=(4 * KIB, 64 * KIB, MIB, 16 * MIB, 100 * MIB),
            processes=(1, 5, 10, 50, 100, 500),
            volume_bytes=16 * GIB,
            constant_volumes=(100 * MIB, GIB),
            pieces=(64 * KIB, MIB, 16 * MIB, 100 * MIB),
            items=5_000,
            limit_s=12.0,
            metadata_limit_s=10.0,
            budget_s=None,
        ),
    )
}


@dataclass(frozen=True)
class Cell:
    """One point of the grid: the work that the engine does there, and the names under which the result is
    stored."""

    test: str
    size_bytes: int | None
    processes: int
    """Total number of processes of all ranks."""
    pattern: Mapping[str, Any]
    """The engine's work, in the form of crates/iodock-load/src/plan.rs."""
    limit_s: float
    variant: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """Options of the user. They select tests, and replace sizes and process counts of the class."""

    tests: Sequence[str] = TESTS
    sizes: Sequence[int] = ()
    processes: Sequence[int] = ()
    ranks: int = 1
    direct: bool = False
    shared: bool = False
    """Whether all processes write blocks of one file in the test `large transfer`."""
    memory_bytes: int = 1 << 62
    """Memory of the machine. The read buffers of all processes stay below a quarter of it."""


def cells(of: Class, choice: Choice, shrunk: float = 1.0) -> list[Cell]:
    """Returns the cells of a class. Volumes and numbers of files are multiplied by SHRUNK. Process counts are
    rounded up to a multiple of the number of ranks."""
    counts = choice.processes or of.processes
    processes = sorted({-(-count // choice.ranks) * choice.ranks for count in counts})
    makers = {"large-transfer": _large, "constant-volume": _constant, "metadata": _metadata}
    made = [
        cell
        for test in choice.tests
        for count in processes
        for cell in makers[test](of, choice, count, shrunk)
    ]
    return [cell for cell in made if _fits(cell, choice)]


def _fits(cell: Cell, choice: Choice) -> bool:
    return int(cell.pattern.get("request_bytes", 0)) * cell.processes <= choice.memory_bytes // 4


def _large(of: Class, choice: Choice, processes: int, shrunk: float) -> Iterator[Cell]:
    for size in choice.sizes or of.sizes:
        wanted = int(of.volume_bytes * shrunk) // processes
        # A file consists of whole requests, so its size is rounded down to a multiple of the request size,
        # but to no less than one request.
        file_bytes = max(wanted // size, 1) * size
        pattern = {
            "kind": "data",
            "files": 1,
            "file_bytes": file_bytes,
            "request_bytes": size,
            "direct": choice.direct,
            "reread": not choice.direct,
            "shared": choice.shared,
        }
        variant = _opened(choice) | ({"access": "shared-file"} if choice.shared else {})
        yield Cell("large-transfer", size, processes, pattern, of.limit_s, variant)


def _constant(of: Class, choice: Choice, processes: int, shrunk: float) -> Iterator[Cell]:
    for volume in of.constant_volumes:
        for piece in of.pieces:
            files = int(volume * shrunk) // (processes * piece)
            if files < 1:
                continue
            pattern = {
                "kind": "data",
                "files": files,
                "file_bytes": piece,
                "request_bytes": min(piece, 16 * MIB),
                "direct": choice.direct,
            }
            variant = {**_opened(choice), "volume_bytes": str(volume)}
            yield Cell("constant-volume", piece, processes, pattern, of.limit_s, variant)


def _metadata(of: Class, choice: Choice, processes: int, shrunk: float) -> Iterator[Cell]:
    items = max(int(of.items * shrunk), 20)
    pattern = {"kind": "metadata", "items": items}
    yield Cell("metadata", None, processes, pattern, of.metadata_limit_s)


def _opened(choice: Choice) -> dict[str, str]:
    return {"open": "O_DIRECT"} if choice.direct else {}


@dataclass(frozen=True)
class Step:
    """One repeat of a cell, which the engine executes."""

    id: int
    cell: Cell

    def request(self, ranks: int) -> dict[str, Any]:
        """Returns the step in the JSON form that the engine reads. Each rank executes its share of the
        processes."""
        return {
            "id": self.id,
            "processes": self.cell.processes // ranks,
            "limit_seconds": self.cell.limit_s,
            "pattern": dict(self.cell.pattern),
        }


def shuffled(grid: Sequence[Cell], repeats: int, seed: int) -> list[Step]:
    """Returns each cell REPEATS times, in rounds that contain every cell once. The order within a round is
    random. Otherwise, a slow change of the machine's speed would look like a difference between cells."""
    chance = random.Random(seed)
    steps: list[Step] = []
    for _ in range(repeats):
        order = list(grid)
        chance.shuffle(order)
        steps += [Step(len(steps) + at, cell) for at, cell in enumerate(order)]
    return steps


def written_bytes(step: Step) -> int:
    """Returns the largest number of bytes that a step may write, over all processes."""
    pattern = step.cell.pattern
    if pattern["kind"] == "data":
        return int(pattern["files"]) * int(pattern["file_bytes"]) * step.cell.processes
    if pattern["kind"] == "mixed":
        many = int(pattern["operations"]) + int(pattern["files"])
        return many * int(max(pattern["sizes_bytes"])) * step.cell.processes
    return 0


def made_files(step: Step) -> int:
    """Returns the largest number of files and directories that a step may create, over all processes."""
    pattern = step.cell.pattern
    each = {"data": "files", "metadata": "items", "mixed": "operations"}[pattern["kind"]]
    return int(pattern[each]) * step.cell.processes * (2 if pattern["kind"] == "metadata" else 1)
