"""Tests how iodock diff matches the source lines of one version of a program to those of the next."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from in_process import printed
from iodock.program.capture import import_logs

Line = tuple[int, str, str, int, int]
"""Number in solver.c, function, call, how often, and its microseconds."""


def made(folder: Path, lines: Iterable[Line], stacks: bool = True) -> Path:
    """Imports a run of a program that makes these calls and returns the store."""
    folder.mkdir()
    text = ['7 1700000001.000000 openat(AT_FDCWD, "/data/out", O_RDWR|O_CREAT, 0644) = 4 <0.000010>\n']
    at = 1_700_000_002.0
    calls = {
        "write": 'write(4, "x"..., 16) = 16',
        "lseek": "lseek(4, 0, SEEK_SET) = 0",
        "read": 'read(4, "x"..., 9) = 9',
    }
    for number, function, call, count, duration in lines:
        for _ in range(count):
            at += 0.01
            text.append(f"7 {at:.6f} {calls[call]} <{duration / 1e6:.6f}>\n")
            if stacks:
                place = f"[0x{0x1000 + number:x}] /home/u/src/solver.c:{number}"
                text.append(
                    f" > /usr/lib/libc.so.6(__{call}+0x14) [0xf78d4]\n"
                    f" > /home/u/solver({function}+0x20) {place}\n"
                )
    (folder / "log").write_text("".join(text))
    return import_logs([str(folder / "log")], folder / "run.iodock").store


def lines(before: Path, after: Path) -> dict[tuple[int | None, int | None], tuple[int, int]]:
    found = json.loads(printed("diff", before, after, "--format", "json"))["lines"]
    return {
        (one["line_before"], one["line_after"]): (one["count"]["before"], one["count"]["after"])
        for one in found
    }


BEFORE: tuple[Line, ...] = (
    (10, "step", "write", 300, 900),
    (12, "step", "lseek", 300, 500),
    (40, "load", "read", 300, 900),
)


def test_a_shifted_source_line_is_recognised(tmp_path: Path) -> None:
    before = made(tmp_path / "before", BEFORE)
    after = made(
        tmp_path / "after",
        [(17, "step", "write", 30, 900), (19, "step", "lseek", 300, 500), (55, "load", "read", 600, 900)],
    )
    assert lines(before, after) == {(10, 17): (300, 30), (40, 55): (300, 600)}
    said = printed("diff", before, after)
    assert "solver.c:10 -> 17 in step" in said
    assert "Lines of the program" in said
    page = printed("diff", before, after, "--format", "html")
    assert "solver.c:40 -&gt; 55 in load" in page
    assert "プログラムの行" in printed("diff", before, after, "--lang", "ja")


@pytest.mark.parametrize(
    ("after", "found"),
    [
        # The second of two similar lines was removed. The remaining one did not move.
        ([(10, "step", "write", 300, 900)], {(30, None): (300, 0)}),
        ([(30, "step", "write", 300, 900)], {(10, None): (300, 0)}),
        # iodock does not match lines with different calls.
        (
            [(10, "step", "write", 300, 900), (30, "step", "lseek", 300, 900)],
            {(30, None): (300, 0), (None, 30): (0, 300)},
        ),
        # iodock does not match lines in different functions.
        (
            [(10, "step", "write", 300, 900), (90, "end", "write", 300, 900)],
            {(30, None): (300, 0), (None, 90): (0, 300)},
        ),
        # A line with the same calls was added in between. The other lines keep their order.
        (
            [
                (10, "step", "write", 300, 900),
                (20, "step", "write", 300, 900),
                (31, "step", "write", 300, 900),
            ],
            {(None, 20): (0, 300)},
        ),
    ],
)
def test_equal_lines_are_matched_in_order(
    tmp_path: Path, after: list[Line], found: dict[tuple[int | None, int | None], tuple[int, int]]
) -> None:
    before = made(tmp_path / "before", [(10, "step", "write", 300, 900), (30, "step", "write", 300, 900)])
    assert lines(before, made(tmp_path / "after", after)) == found


def test_without_stacks_there_is_no_table_of_lines(tmp_path: Path) -> None:
    before, after = made(tmp_path / "before", BEFORE), made(tmp_path / "after", BEFORE[:1], stacks=False)
    assert lines(before, after) == {}
    assert "Lines of the program" not in printed("diff", before, after)
