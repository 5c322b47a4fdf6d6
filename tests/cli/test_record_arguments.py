"""Tests `record`, which parses plain arguments without click. Both parsers must give the same result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iodock.cli.record import command, counting
from iodock.cli.recording import plain
from places import ROOT

SOURCE = ROOT / "src"
PLAIN = (
    "true",
    "-- true",
    "-q --force -o run.iodock -- ./a.out -o x --force",
    "--output s --backend ptrace --quiet sh -c 'exit 3'",
    "-o -- true",
    "-o -q a b -- c",
    "-- -- a",
    "-o a -o b true -- -x",
    "--force -- -strange",
    "--complete true",
    "--light true",
    "--lang ja true",
)
OTHERS = (
    "",
    "--",
    "-q",
    "-o",
    "-h",
    "--help",
    "--ranks 0,1 true",
    "-p 12",
    "-oname true",
    "--output=name true",
    "-qx true",
)


def by_click(arguments: list[str]) -> dict[str, Any]:
    context = command.make_context("record", list(arguments))
    asked = {**context.params, "command": list(context.params["command"])}
    memory, first = asked.pop("light_memory"), asked.pop("light_first")
    assert not asked.pop("begin")
    return {**asked, **counting(asked["light"], memory, first, asked["ranks"], asked["command"])}


@pytest.mark.parametrize("line", PLAIN)
def test_plain_arguments_are_parsed_as_by_click(line: str) -> None:
    asked = plain(line.split())
    assert asked is not None
    own = {**asked, "command": list(asked["command"]), "pid": asked["pids"]}
    del own["pids"]
    assert own == by_click(line.split())


@pytest.mark.parametrize("line", OTHERS)
def test_other_arguments_are_parsed_by_click(line: str) -> None:
    assert plain(line.split()) is None


def test_recording_loads_only_required_modules(tmp_path: Path) -> None:
    # The test runs without the module site, which imports what installed packages request.
    start = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); "
        f"sys.argv = ['iodock', 'record', '-q', '-o', {str(tmp_path / 's')!r}, 'true']; import os; "
        "os._exit = lambda status: print(status, *sys.modules); from iodock.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", start], capture_output=True, text=True, check=False, timeout=60
    )
    status, *loaded = done.stdout.split()
    assert status == "0", done.stderr
    slow = {"click", "typing", "pathlib", "dataclasses", "collections", "contextlib", "inspect", "duckdb"}
    assert "iodock.cli.recording" in loaded and not slow & set(loaded)
