"""Builds and records programs that call MPI-IO, HDF5 or other libraries above system calls, and queries the
recordings."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from recorded import PROGRAMS, record, rows, run


def built(folder: Path, source: str, package: str, *options: object, compiler: str = "gcc") -> Path:
    """Compiles a program with the flags that pkg-config prints for PACKAGE. Skips the test if a tool or the
    package is missing."""
    for program in (compiler, "pkg-config"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    found = subprocess.run(["pkg-config", "--cflags", "--libs", package], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"pkg-config knows no {package}")
    program = folder / Path(source).stem
    command = [compiler, "-o", program, *options, PROGRAMS / source, *found.stdout.split()]
    subprocess.run(command, check=True)
    return program


def recorded(folder: Path, *command: object, **options: Any) -> Path:
    done = record(folder, "--force", "--", *command, **options)
    assert done.returncode == 0, done.stderr
    return folder


def asked(folder: Path, sql: str) -> list[dict[str, Any]]:
    return rows(folder / "run.iodock", sql)


def counted(folder: Path) -> dict[str, tuple[int, int]]:
    """Returns (calls, bytes) by name from the `*.counted.*` files that the program wrote about its own
    calls."""
    calls, sizes = Counter[str](), Counter[str]()
    for file in folder.glob("*.counted.*"):
        for line in file.read_text().splitlines():
            name, size = line.split()
            calls[name] += 1
            sizes[name] += int(size)
    assert calls
    return {name: (calls[name], sizes[name]) for name in calls}


def told(folder: Path, interface: str) -> dict[str, tuple[int, int]]:
    found = asked(
        folder,
        f"""SELECT call, count(*) AS calls, CAST(coalesce(sum(requested_bytes), 0) AS BIGINT) AS bytes
        FROM interface_calls WHERE interface = '{interface}' GROUP BY call""",
    )
    return {row["call"]: (row["calls"], row["bytes"]) for row in found}


def outside_the_innermost(folder: Path, name: str) -> int:
    """Returns the number of system calls on the file that the store does not assign to the innermost
    enclosing library call."""
    (counts,) = asked(
        folder,
        f"""SELECT count(*) AS calls, count(*) FILTER (k.utid = e.utid AND k.ts <= e.ts
          AND e.ts + e.dur <= k.end_ts AND NOT EXISTS (FROM interface_calls i
            WHERE i.utid = e.utid AND i.ts > k.ts AND i.ts <= e.ts AND e.ts + e.dur <= i.end_ts)) AS innermost
        FROM events e JOIN files f ON f.file_id = e.file_id
        LEFT JOIN interface_calls k ON k.id = e.interface_call_id
        WHERE f.name LIKE '%/{name}'""",
    )
    assert counts["calls"] > 0
    return int(counts["calls"] - counts["innermost"])


def pythons_with(module: str) -> list[str]:
    pythons = dict.fromkeys((sys.executable, shutil.which("python3") or "", "/usr/bin/python3"))
    can = [one for one in pythons if one and run([one, "-c", f"import {module}"], Path.cwd()).returncode == 0]
    if not can:
        pytest.skip(f"no Python here has {module}")
    return can
