"""Tests that tables that the recorder makes while the program runs equal, byte for byte, those made after the
run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from iodock import _native
from recorded import IODOCK, compiled, count, live, needs_gcc, needs_root, run, wait_until

pytestmark = [live, needs_gcc]

DRIVER = """
import json, shutil, sys
from pathlib import Path
from iodock import _native
from iodock.program import recording

store = Path("run.iodock")
recorded = recording.record(sys.argv[1:], str(store), backend="rewrite")
begun = len(list(store.glob(".partial-*")))
shutil.copytree(store, "copy.iodock", ignore=shutil.ignore_patterns(".partial-*"))
made = _native.finish_recording(str(store))
print(json.dumps({"begun": begun, "meanwhile": made["meanwhile"], "failure": recorded["failure"]}))
"""
"""Records, and keeps a copy of what was recorded before the tables are finished."""

UNTIL_BEGUN = "until ls -d run.iodock/.partial-* > begun 2>&1; do sleep 0.1; done"
"""Shell commands that wait until tables are made."""


def recorded(folder: Path, program: str, **variables: str) -> dict[str, Any]:
    environment = {**os.environ, "IODOCK_TABLES": "meanwhile", **variables}
    command = [sys.executable, "-c", DRIVER, "sh", "-c", program]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, timeout=240, check=True
    )
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert said["failure"] is None
    return said


def tables(store: Path) -> dict[str, bytes]:
    files = (path for path in store.rglob("*") if path.is_file() and path.name != "manifest.json")
    return {str(path.relative_to(store)): path.read_bytes() for path in files}


def facts(store: Path) -> dict[str, Any]:
    """Returns the manifest without its checksum and time of creation."""
    manifest: dict[str, Any] = json.loads((store / "manifest.json").read_text())
    return {key: value for key, value in manifest.items() if key not in ("created_ns", "checksum")}


def is_as_afterwards(folder: Path) -> None:
    """Makes the tables of the copy after the run, and compares them with those made during the run."""
    afterwards = _native.finish_recording(str(folder / "copy.iodock"))
    assert afterwards["meanwhile"] == 0
    made, expected = tables(folder / "run.iodock"), tables(folder / "copy.iodock")
    assert sorted(made) == sorted(expected)
    assert [name for name in made if made[name] != expected[name]] == []
    assert facts(folder / "run.iodock") == facts(folder / "copy.iodock")
    assert not (folder / "run.iodock" / "journal").exists()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    compiled(tmp_path, "long_run")
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "ending",
    [
        "exec ./long_run data 4",
        pytest.param("exec ./long_run data 4 killed", marks=pytest.mark.whole),
        pytest.param(
            "./long_run data 4; ./long_run data 1 killed; cat data/log > data/all", marks=pytest.mark.whole
        ),
    ],
)
def test_tables_made_meanwhile_are_those_made_afterwards(folder: Path, ending: str) -> None:
    said = recorded(folder, f"{UNTIL_BEGUN}; {ending}")
    assert said["begun"] == 1 and said["meanwhile"] > 0
    is_as_afterwards(folder)


@pytest.mark.whole
def test_a_thread_that_waits_in_a_call_until_it_is_killed_holds_tables_up(folder: Path) -> None:
    program = "import os, threading, time\n"
    program += "threading.Thread(target=os.read, args=(os.pipe()[0], 1), daemon=True).start()\n"
    program += "end = time.monotonic() + 4\n"
    program += "while time.monotonic() < end: open('data/x', 'w').close(); time.sleep(0.001)\n"
    program += "os.kill(os.getpid(), 9)\n"
    (folder / "waits.py").write_text(program)
    said = recorded(folder, f"{UNTIL_BEGUN}; {sys.executable} -S waits.py; true")
    assert said["begun"] == 1
    is_as_afterwards(folder)
    assert count(folder / "run.iodock", "call = 'read' AND result IS NULL AND errno IS NULL") == 1


@pytest.mark.whole
def test_calls_that_are_traced_make_all_tables_be_made_afterwards(folder: Path) -> None:
    source = Path(__file__).parents[3] / "fixtures/programs/between.c"
    if subprocess.run(["gcc", "-static", "-w", "-o", folder / "between", source], check=False).returncode:
        pytest.skip("no static program can be made here")
    said = recorded(folder, f"{UNTIL_BEGUN}; ./long_run data 3; ./between; true")
    assert (said["begun"], said["meanwhile"]) == (1, 0)
    is_as_afterwards(folder)


@pytest.mark.whole
@needs_root
def test_without_room_on_the_disk_tables_are_made_afterwards(folder: Path) -> None:
    small = folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", small], check=True)
    try:
        (small / "data").mkdir()
        shutil.copy(folder / "long_run", small)
        said = recorded(small, "./long_run data 3")
        assert (said["begun"], said["meanwhile"]) == (0, 0)
        is_as_afterwards(small)
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.whole
def test_nothing_is_lost_or_left_if_the_recorder_is_killed(folder: Path) -> None:
    program = "import os, time\nf = os.open('out.dat', os.O_WRONLY | os.O_CREAT)\n"
    program += "while os.write(f, b'x' * 997) and not os.path.exists('stop'): time.sleep(0.001)\n"
    program += "os.rename('out.dat', 'all.dat')\n"
    command = [*IODOCK, "record", "--backend", "rewrite", "-q", "-o", "run.iodock", "--"]
    command += [sys.executable, "-S", "-c", program]
    environment = {**os.environ, "IODOCK_TABLES": "meanwhile"}
    store = folder / "run.iodock"
    with subprocess.Popen(command, cwd=folder, env=environment) as recorder:
        wait_until(lambda: any(store.glob(".partial-*")))
        time.sleep(4)
        recorder.send_signal(signal.SIGKILL)
    assert any(store.glob(".partial-*"))
    (folder / "stop").touch()
    wait_until((folder / "all.dat").exists)
    written = (folder / "all.dat").stat().st_size // 997
    assert count(store, "call = 'write' AND file LIKE '%out.dat' AND bytes = 997") == written
    assert not any(store.glob(".partial-*"))


@pytest.mark.whole
def test_tables_are_made_afterwards_if_that_is_wanted(folder: Path) -> None:
    said = recorded(folder, "./long_run data 4", IODOCK_TABLES="afterwards")
    assert (said["begun"], said["meanwhile"]) == (0, 0)
    done = run([*IODOCK, "show", "summary", folder / "run.iodock"], folder)
    assert done.returncode == 0, done.stderr
