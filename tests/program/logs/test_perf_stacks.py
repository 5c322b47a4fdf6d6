"""Tests the stacks of `perf trace --call-graph`, as perf 6.1 printed them (paths changed)."""

from __future__ import annotations

from pathlib import Path

from in_process import shown
from iodock.program.capture import import_logs

CALL = "    40.{n:03d} ( 0.016 ms): solver/951 write(fd: 4</data/out>, buf: 0x564, count: 3)     = 3\n"
STEP = """\
                                       __GI___libc_write (/usr/lib/x86_64-linux-gnu/libc.so.6)
                                       write_step (/home/u/solver)
                                       main (/home/u/solver)
                                       __libc_start_call_main (/usr/lib/x86_64-linux-gnu/libc.so.6)
                                       __libc_start_main_impl (inlined)
                                       _start (/home/u/solver)
"""
STRIPPED = """\
                                       __lseek64 (inlined)
                                       [0x1179] (/home/u/stripped)
"""


def imported(folder: Path) -> Path:
    lines = "".join(CALL.format(n=10 + n) + STEP for n in range(20))
    seek = "    41.097 ( 0.014 ms): solver/951 lseek(fd: 4</data/out>, whence: SET)                    = 0\n"
    (folder / "log").write_text(lines + seek + STRIPPED)
    return import_logs([str(folder / "log")], folder / "run.iodock").store


def test_calls_have_the_function_of_the_program(tmp_path: Path) -> None:
    store = imported(tmp_path)
    for key in ("line", "function"):
        rows = shown(store, "summary", "--by", key, "--call", "write")["rows"]
        assert [(row[key], row["count"]) for row in rows] == [("write_step", 20)], key
    (row,) = shown(store, "summary", "--by", "line", "--call", "lseek")["rows"]
    assert (row["line"], row["count"]) == ("stripped+0x1179", 1)


def test_stacks_have_all_frames_of_the_process(tmp_path: Path) -> None:
    (stack,) = shown(imported(tmp_path), "stacks", "--call", "write")["rows"]
    names = [
        "__GI___libc_write",
        "write_step",
        "main",
        "__libc_start_call_main",
        "__libc_start_main_impl",
        "_start",
    ]
    assert stack["frames"] == names and stack["count"] == 20
