"""Tests the flame graph as numbers and as a tree in a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.cells import cell_len

from in_process import asked, printed, shown
from iodock.program.analyses import find
from iodock.program.analyses.base import request
from iodock.program.store import Store
from iodock.program.views.flame_text import flame_text
from iodock.shared.language import language_in
from stacked import CALLS, stacked_store

STEPS = CALLS - CALLS // 100


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stacked_store(tmp_path_factory.mktemp("stacked"))


def paths(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns the rows by the names of all frames on their path."""
    found, around = {}, []
    for row in rows:
        around = [*around[: row["depth"]], row["frame"]]
        found[" > ".join(around)] = row
    return found


WRITE = "solver > main solver.c:77 > write_step solver.c:412 > __write > write"


def test_rows_are_a_tree_of_sums(store: Path) -> None:
    rows = shown(store, "flame", "--weigh", "calls")["rows"]
    whole = rows[0]
    assert whole["count"] == sum(row["count"] for row in shown(store, "summary", "--by", "call")["rows"])
    tree = paths(rows)
    assert tree["solver"]["count"] == whole["count"]
    assert tree["solver"]["share"] == 1
    assert tree[WRITE]["count"] == STEPS
    assert tree[WRITE]["bytes"] == STEPS * 16
    assert tree[WRITE]["total_time_ns"] == STEPS * 900_000
    assert tree[WRITE]["share"] == pytest.approx(STEPS / whole["count"])
    assert tree["solver > (stack unknown) > openat"]["count"] == 2
    for at, row in enumerate(rows):
        inside = []
        for later in rows[at + 1 :]:
            if later["depth"] <= row["depth"]:
                break
            if later["depth"] == row["depth"] + 1:
                inside.append(later)
        assert inside == sorted(inside, key=lambda one: -one["share"])
        assert sum(one["count"] for one in inside) in (0, row["count"])


def test_filters_are_applied_and_unknown_weights_refused(tmp_path: Path) -> None:
    store = stacked_store(tmp_path, times=False)
    rows = shown(store, "flame", "--call", "write")["rows"]
    assert rows[0]["count"] == CALLS
    assert rows[0]["total_time_ns"] is None
    status, _, said = asked("show", "flame", store, "--weigh", "time")
    assert status != 0
    assert "does not contain the durations" in said


def test_a_store_without_stacks_gets_a_note(tmp_path: Path) -> None:
    store = stacked_store(tmp_path, stacks=False)
    answer = shown(store, "flame")
    assert [row["kind"] for row in answer["rows"][:3]] == ["program", "file", "call"]
    assert any("--stacks" in note for note in answer["notes"])


@pytest.mark.parametrize("width", [80, 40, 20, None])
def test_the_flame_tree_is_drawn_in_a_terminal(store: Path, width: int | None) -> None:
    flame = find("flame")
    with Store.open(store) as opened:
        answer = flame.run(opened, request(flame, {"weigh": "time"}))
    lines = flame_text(answer, width, False, language_in("en")).splitlines()
    tree = lines[1:-1]
    assert [line.split()[0] for line in tree[:2]] == ["100.0%", "99.0%"]
    assert lines[-1] == "7 frames of less than 1 % are not shown; --format csv has them"
    if width == 80:
        assert all(cell_len(line) <= width for line in tree)
        assert tree[2].endswith("█████████▉ write_step solver.c:412")


def test_branches_of_the_tree_are_drawn(store: Path) -> None:
    usual = {"kind": "function", "count": 1, "total_time_ns": 1, "bytes": 0}
    frames = {
        "a": (0, 1),
        "b": (1, 0.6),
        "c": (2, 0.6),
        "d": (3, 0.3),
        "e": (3, 0.3),
        "f": (1, 0.4),
        "g": (2, 0.4),
    }
    rows = [
        usual | {"frame": name, "depth": depth, "share": float(share)}
        for name, (depth, share) in frames.items()
    ]
    flame = find("flame")
    with Store.open(store) as opened:
        answer = flame.run(opened, request(flame, {}))
    drawn = flame_text(replace(answer, table=pa.Table.from_pylist(rows)), 80, False, language_in("en"))
    assert [line[23:].rstrip() for line in drawn.splitlines()[1:]] == [
        "a", "├ b", "│ c", "│ ├ d", "│ └ e", "└ f", "  g",
    ]  # fmt: skip


def test_sorted_rows_are_a_table(store: Path) -> None:
    assert "main solver.c:77" in printed("show", "flame", store, "--sort", "count", "--top", "2")
    assert "█" not in printed("show", "flame", store, "--sort", "count")
