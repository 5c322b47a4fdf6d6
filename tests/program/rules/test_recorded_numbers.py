"""Compares the numbers in messages about recorded programs with independent queries to the store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from iodock.program.diagnosis import diagnose
from iodock.program.findings import Finding
from iodock.program.store import Store
from recorded import live, record

pytestmark = [pytest.mark.whole, live]
PROGRAM = """
import os
def tiny():
    for number in range(600):
        with open(f"part{number:04d}.txt", "w") as out: out.write("x" * 3000)
    for _ in range(3):
        for number in range(600): open(f"part{number:04d}.txt").read()
def table():
    with open("table.bin", "wb", 0) as out:
        for _ in range(64): out.write(bytes(65536))
    for _ in range(40):
        with open("table.bin", "rb", 0) as source:
            while source.read(65536): pass
def random():
    with open("index.bin", "wb") as out: out.truncate(256 << 20)
    source = os.open("index.bin", os.O_RDONLY)
    for number in range(5000): os.pread(source, 700, number * number * 31 % 60013 * 4096)
def reopened():
    for number in range(2000):
        with open("steps.log", "a") as out: out.write("a step of the run\\n")
def asked():
    open("input.nml", "w").write("n=1")
    for _ in range(20000): os.stat("input.nml")
def small():
    out = os.open("field.out", os.O_WRONLY | os.O_CREAT)
    for _ in range(20000): os.write(out, b"0.123456789")
def seeks():
    open("cells.bin", "wb").write(bytes(1 << 20))
    source = os.open("cells.bin", os.O_RDONLY)
    for number in range(20000): os.lseek(source, number * 50, 0); os.read(source, 50)
"""
OPENS = "count(*) FILTER (WHERE family = 'open' AND errno IS NULL) AS opens"
ASKED = "count(*) FILTER (WHERE family = 'stat') AS asked"
READS, WRITES = "direction = 'read' AND bytes > 0", "direction = 'write'"
CASES = {
    "tiny": (
        "tiny-file-flood",
        "part%",
        f"""count(DISTINCT file) AS files, {OPENS}, count(*) FILTER (WHERE class = 'metadata') AS calls,
  sum(bytes) FILTER (WHERE {WRITES}) / count(DISTINCT file) AS mean_bytes""",
    ),
    "table": (
        "redundant-reads",
        "table.bin",
        f"""sum(bytes) FILTER (WHERE {READS}) AS read_bytes,
  max(offset_bytes + bytes) AS needed_bytes""",
    ),
    "random": (
        "random-access",
        "index.bin",
        f"count(*) FILTER (WHERE {READS}) AS count, avg(bytes) FILTER (WHERE {READS}) AS mean_bytes",
    ),
    "reopened": (
        "open-close-loop",
        "steps.log",
        f"{OPENS}, sum(bytes) / (count(*) FILTER (WHERE {WRITES})) AS mean_bytes",
    ),
    "asked": ("stat-storm", "input.nml", f"{ASKED}, {OPENS}"),
    "small": (
        "small-requests",
        "field.out",
        f"count(*) FILTER (WHERE {WRITES}) AS count, avg(bytes) FILTER (WHERE {WRITES}) AS mean_bytes",
    ),
    "seeks": ("seek-storm", "cells.bin", "count(*) FILTER (WHERE class = 'seek') AS seeks"),
}


def recorded(folder: Path, step: str) -> Path:
    (folder / "program.py").write_text(f"{PROGRAM}\n{step}()\n")
    done = record(folder, "--", sys.executable, "-S", "program.py")
    assert done.returncode == 0, done.stderr
    return folder / "run.iodock"


def found_and_true(path: Path, rule: str, file: str, sql: str) -> tuple[list[Finding], dict[str, Any]]:
    with Store.open(path) as store:
        truth = store.rows(f"SELECT {sql} FROM call_ends WHERE file LIKE '%/{file}'")[0]
        return [one for one in diagnose(store).findings if one.rule == rule], truth


@pytest.mark.parametrize("step", list(CASES))
def test_the_numbers_in_a_message_match_the_calls(tmp_path: Path, step: str) -> None:
    (found,), truth = found_and_true(recorded(tmp_path, step), *CASES[step])
    said = {name: value for name, value in found.message.values.items() if name in truth}
    # The tolerance is for Python itself, which reads a small file twice when it starts.
    assert said == pytest.approx({name: float(value) for name, value in truth.items()}, rel=0.002), (
        found.message
    )
